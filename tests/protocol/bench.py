"""The tools over an in-memory MCP connection, on a real store."""

from __future__ import annotations

import json
import sqlite3
import threading
from contextlib import closing
from pathlib import Path
from typing import Any

from jsonschema import Draft202012Validator
from mcp import Client
from mcp_types import CallToolResult, Implementation
from tests.blank import lay

from agora.app.conversing import known_of
from agora.config.bounds import LimitSettings
from agora.errors import Cancelled, EmbeddingMismatch, WarmingUp
from agora.llm.extractive import ExtractiveSummarizer
from agora.llm.grounding import unfounded
from agora.memory.browsing import Browsing
from agora.memory.conversations.checks import Limits as MessageLimits
from agora.memory.conversations.service import ConversationMemory, Gather
from agora.memory.facts import FactMemory
from agora.memory.notes import Notes
from agora.memory.watching import Watch
from agora.model.deadline import Deadline
from agora.model.fact import Extracted
from agora.ports.encoder import Vector
from agora.ports.extractor import Extraction
from agora.protocol.context import Connection
from agora.protocol.fence import FENCE, FENCE_END
from agora.protocol.prompts.filling import Filling
from agora.protocol.prompts.library import Library
from agora.protocol.prompts.prompts import Prompts
from agora.protocol.resources.resources import Resources
from agora.protocol.server import make_server
from agora.protocol.services import Services
from agora.protocol.tools.conversations import ConversationTools
from agora.protocol.tools.facts import FactTools
from agora.protocol.tools.handlers import Limits, Tools
from agora.protocol.tools.table import CALLABLE
from agora.stores.sqlite.store import SqliteStore
from agora.testing import FakeEncoder, ManualClock
from agora.unseen import shown


class Encoder(FakeEncoder):
    """The fake encoder, which counts its texts and misbehaves when it is told to."""

    def __init__(self) -> None:
        super().__init__()
        self.texts = 0
        self.mood = "well"
        self.entered = threading.Event()
        self.gave_up = threading.Event()
        self.release = threading.Event()

    def encode(self, text: str, deadline: Deadline) -> Vector:
        self.texts += 1
        self.entered.set()
        match self.mood:
            case "slow":
                try:
                    while not self.release.wait(0.01):
                        deadline.check()
                except Cancelled:
                    self.gave_up.set()
                    raise
            case "stuck":
                assert self.release.wait(30)
            case "broken":
                message = "secret words of an exception"
                raise RuntimeError(message)
            case "cold":
                raise WarmingUp("the model is not ready")
            case "other":
                raise EmbeddingMismatch("another model built this store")
        return super().encode(text, deadline)


class Extractor:
    """Finds what it is told to find in each text, in turn; then nothing."""

    def __init__(self) -> None:
        self.finds: list[tuple[Extracted, ...]] = []
        self.asked: list[str] = []

    def extract(self, text: str, deadline: Deadline) -> Extraction:
        deadline.check()
        self.asked.append(text)
        return Extraction(self.finds.pop(0) if self.finds else (), "a list")


class HeardLog:
    """Keeps the names of the events and everything that came with them."""

    def __init__(self) -> None:
        self.heard: list[tuple[str, str, dict[str, Any]]] = []

    def debug(self, event: str, **values: Any) -> None:
        self.heard.append(("debug", event, values))

    def info(self, event: str, **values: Any) -> None:
        self.heard.append(("info", event, values))

    def warning(self, event: str, **values: Any) -> None:
        self.heard.append(("warning", event, values))


LOGS = {"reads", "read_marks"}


class Bench:
    """One store with its tools, and as many connections to them as a test wants."""

    def __init__(self, home: Path) -> None:
        self.home = home
        self.clock = ManualClock()
        self.encoder = Encoder()
        self.extractor = Extractor()
        self.gather: Gather | None = None
        self.models: list[dict[str, Any]] = []
        self.log = HeardLog()
        lay(home / "agora.db", self.encoder.fingerprint, self.clock)
        self.store = SqliteStore(home / "agora.db", self.encoder.fingerprint, self.clock, busy_timeout=0.5)
        self.tools = self.tools_with(call_seconds=10)
        self.watches: list[Watch] = []

    def close(self) -> None:
        """Let whatever is stuck go on, and the files go."""
        self.encoder.release.set()
        for watch in self.watches:
            watch.close()
        self.store.close()

    def tools_with(self, *, call_seconds: float = 10) -> Tools:
        notes = Notes(self.store, self.encoder, self.clock, self.log, model_seconds=20)
        given = LimitSettings()
        limits = Limits(content_bytes=given.content_bytes, query_chars=given.query_chars, call_seconds=call_seconds)
        self.facts = FactMemory(
            *(self.store.facts(), self.encoder, self.clock, self.log, self.extractor),
            model_seconds=20,
            log_read=self.store.log_read,
        )
        kept = self.store.conversations()
        self.conversations = ConversationMemory(
            *(lambda _: kept, self.encoder, self.clock, self.log, ExtractiveSummarizer(), unfounded),
            facts=known_of(self.facts),
            gather=self.gather,
            limits=MessageLimits(content_bytes=given.content_bytes, query_chars=given.query_chars),
        )
        made = FactTools(self.facts, self.clock, content_bytes=given.content_bytes, profile_tokens=1_000)
        return Tools(
            *(notes, self.clock, limits, lambda: {"version": "test", "home": str(self.home)}),
            facts=made,
            conversations=ConversationTools(self.conversations, self.clock),
            language_models=lambda: self.models,
        )

    def services(self, prompts: Path | None = None, language: str = "en") -> Services:
        """Everything that a server offers, on this store."""
        browsing = Browsing(lambda _: self.store)
        made = Prompts(Library(prompts, language, self.log), Filling(self.tools, browsing))
        self.watches.append(Watch(lambda _: self.store, self.log, 0.05, beside=made.changes()))
        return Services(
            self.tools,
            resources=Resources(self.tools, browsing, self.clock, lambda _: self.facts, lambda _: self.conversations),
            prompts=made,
            watch=self.watches[-1],
        )

    def connection(self, namespace: str | None = "acme/shop", **given: Any) -> Connection:
        return Connection(at_ms=1_700_000_000_000, namespace=namespace, **given)

    def client(
        self,
        namespace: str | None = "acme/shop",
        *,
        mode: str = "auto",
        name: str = "tester",
        connection: Connection | None = None,
        tools: Tools | Services | None = None,
        **given: Any,
    ) -> Client:
        """A client with a server of its own, as each agent has."""
        served = make_server(tools or self.tools, connection or self.connection(namespace), self.log)
        return Client(served, mode=mode, client_info=Implementation(name=name, version="1.2"), **given)

    async def ok(self, client: Client, tool: str, **arguments: Any) -> dict[str, Any]:
        """The structured result of a call that works, checked against the tool's own schema and its text copy."""
        result = await client.call_tool(tool, arguments)
        assert not result.is_error, result.structured_content
        return checked(tool, result)

    async def refused(self, client: Client, tool: str, **arguments: Any) -> dict[str, Any]:
        """The error of a call that does not work, checked for its form."""
        result = await client.call_tool(tool, arguments)
        assert result.is_error, result.structured_content
        return error_of(tool, result)

    def contents(self) -> dict[str, int]:
        """Number of rows in every table, and the last change; the log of reads tells of no note and is left out."""
        with closing(sqlite3.connect(self.home / "agora.db")) as connection:
            tables = [row[0] for row in connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'")]
            counted = (f"SELECT '{name}', count(*) FROM {name}" for name in sorted(tables) if name not in LOGS)  # noqa: S608 - names from the schema
            return dict(connection.execute(" UNION ALL ".join(counted)).fetchall())


def checked(tool: str, result: CallToolResult) -> dict[str, Any]:
    structured = result.structured_content
    assert isinstance(structured, dict)
    Draft202012Validator(CALLABLE[tool].output).validate(structured)
    (block,) = result.content
    assert block.type == "text"
    assert json.loads(block.text) == structured
    assert block.text == shown(block.text), "nothing in the text drives a terminal or is hidden"
    if tool != "agora_status":
        assert set(structured) <= set(CALLABLE[tool].output["properties"]), "the schema tells of every field"
    return unfenced(tool, structured, block.text)


def unfenced(tool: str, structured: dict[str, Any], text: str) -> dict[str, Any]:
    """The result without the marks of its fence, which are there if, and only if, it holds what somebody saved."""
    inside = {name: value for name, value in structured.items() if name not in {FENCE, FENCE_END}}
    if not any(inside.get(name) for name in CALLABLE[tool].recalled):
        assert inside == structured
        return inside
    assert next(iter(structured)) == FENCE
    assert [*structured][-1] == FENCE_END
    assert min(structured) == FENCE, "some clients sort the members"
    assert max(structured) == FENCE_END
    end = structured[FENCE_END]
    assert end.startswith("[/data-")
    assert f" to {end} " in structured[FENCE]
    mark = end.removeprefix("[/").removesuffix("]")
    assert mark not in json.dumps(inside, ensure_ascii=False)
    assert text.startswith(f'{{"{FENCE}":"[{mark}] ')
    assert text.endswith(f'"{FENCE_END}":"[/{mark}]"}}')
    return inside


def error_of(tool: str, result: CallToolResult) -> dict[str, Any]:
    structured = result.structured_content
    assert isinstance(structured, dict)
    # Some clients hold the schema against failures too.
    Draft202012Validator(CALLABLE[tool].output).validate(structured)
    (block,) = result.content
    assert block.type == "text"
    error: dict[str, Any] = structured["error"]
    # The text shows what drives a terminal as an escape.
    assert shown(error["message"]) in block.text
    assert error.get("hint", "") in block.text
    if "param" in error:
        assert {"code", "param", "reason", "received"} <= set(error)
        assert shown(error["param"]) in block.text
        assert shown(error["reason"]) in block.text
    return error
