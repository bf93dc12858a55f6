"""Two stores, one of which lacks all that a caller may not see: whatever the caller asks, both must answer alike."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from agora.cache.results import TwoLevelCache
from agora.config.access import AccessTable
from agora.errors import AgoraError
from agora.memory.browsing import Browsing
from agora.memory.facts import FactMemory
from agora.memory.notes import Notes
from agora.model.access import Door, Policy
from agora.model.caller import Origin
from agora.model.deadline import Deadline
from agora.ports.extractor import Extraction
from agora.protocol.context import Calling, Connection
from agora.protocol.prompts.filling import Filling
from agora.protocol.prompts.library import Library
from agora.protocol.prompts.prompts import Prompts
from agora.protocol.resources.resources import Resources
from agora.protocol.tools.facts import FactTools
from agora.protocol.tools.handlers import Limits, Tools
from agora.stores.sqlite.store import SqliteStore
from agora.testing import FakeEncoder, ManualClock, SilentLog

NAMESPACES = ("alpha", "beta", "shared", "team-x", "team-y", "vault")
COMMON = (
    "the port of the gateway is 8080",
    "the port of the gateway is 9090 in src/gateway.py",
    "raise QUEUE_MAX in src/gateway.py before the gateway answers 502",
    "tests of the gateway need a clean database",
)
"""Texts that are saved in several namespaces: what one holds must not show in another."""


def sentinel(namespace: str) -> str:
    """A word that everything in the namespace carries, and nothing else does."""
    return f"zq{namespace.replace('-', '')}"


def allowed(tables: Sequence[AccessTable], door: Door, token: str, client: str, own: str, namespace: str) -> int:
    """How much a connection may do in a namespace, worked out once more and in another way."""

    def holds(table: AccessTable) -> int:
        named = [own if each == "{own}" else each for each in table.namespaces]
        inside = any(re.fullmatch(re.escape(each).replace(r"\*", ".*"), namespace) for each in named)
        return 1 + ("read", "write", "admin").index(table.rights) if inside else 0

    def meant(table: AccessTable) -> bool:
        if table.any or (table.clients and not table.tokens and not table.local):
            return True
        return table.local if door == "local" else bool(token) and bool({token, "*"} & set(table.tokens))

    mine = [table for table in tables if meant(table)]
    level = max([holds(table) for table in mine if not table.clients], default=0)
    limits = [holds(table) for table in mine if client in table.clients]
    return min([level, max(limits)]) if limits else level


class Nothing:
    """Finds no facts in any text."""

    def extract(self, text: str, deadline: Deadline) -> Extraction:
        del text, deadline
        return Extraction((), "nothing")


class World:
    """One store with everything that a server offers on it."""

    def __init__(self, folder: Path) -> None:
        folder.mkdir()
        self.clock = ManualClock()
        encoder = FakeEncoder()
        self.store = SqliteStore(folder / "agora.db", encoder.fingerprint, self.clock)
        cache = TwoLevelCache(self.clock, None, entries=100, seconds=300, disk_seconds=300)
        notes = Notes(self.store, encoder, self.clock, SilentLog(), model_seconds=20, cache=cache)
        limits = Limits(content_bytes=10_000, query_chars=1_000, call_seconds=20)
        facts = FactMemory(
            *(self.store.facts(), encoder, self.clock, SilentLog(), Nothing()),
            model_seconds=20,
            log_read=self.store.log_read,
        )
        self.tools = Tools(
            *(notes, self.clock, limits, lambda: {"version": "test", "home": str(folder)}),
            facts=FactTools(facts, self.clock, content_bytes=10_000, profile_tokens=1_000),
        )
        self.browsing = Browsing(lambda _: self.store)
        self.resources = Resources(self.tools, self.browsing, self.clock, lambda _: facts)
        self.prompts = Prompts(Library(None, "en", SilentLog()), Filling(self.tools, self.browsing))
        self.ids: dict[int, str] = {}
        """Ids of what was saved, by the number of the step that saved it."""

    def close(self) -> None:
        self.store.close()

    def plant(self, step: int, namespace: str, given: Mapping[str, Any]) -> None:
        """Something that others did in a namespace, with its sentinel wherever there is room for one."""
        mark = sentinel(namespace)
        origin: Origin = given.get("origin") or ("user" if given["tool"] == "agora_pin" else "agent")
        others = Connection(at_ms=0, namespace=namespace, session=f"h-{mark}", door="command", origin=origin)
        arguments: dict[str, Any] = dict(given)
        if (tool := arguments.pop("tool")) == "agora_save":
            number = arguments.pop("text")
            arguments = {
                "content": COMMON[number] if number < len(COMMON) else f"{mark} text {number} of the gateway port",
                "title": f"{mark} title",
                "tags": [f"{mark}-tag", "common"],
                "metadata": {f"{mark}_field": mark, "common": 1},
                "agent": f"{mark}-agent{number % 2}",
                "session": f"{mark}-session",
                "kind": f"{mark}-kind",
            } | {name: value for name, value in arguments.items() if value is not None}
        elif tool == "remember":
            arguments = {
                "key": arguments["key"],
                "value": mark if arguments["own"] else 8080,
                "subject": f"{mark} subject" if arguments["own"] else "gateway",
                "valid_from": arguments["valid_from"],
                "agent": f"{mark}-agent0",
                "session": f"{mark}-session",
            }
        else:
            arguments["ids"] = [self.ids[number] for number in arguments["ids"]]
            arguments |= {"dry_run": False, "reason": f"{mark} reason"} if tool == "agora_forget" else {}
        found = self.tools.call(tool, arguments, others, client=f"{mark}-client", deadline=Deadline(20))
        if tool in {"agora_save", "remember"}:
            self.ids[step] = found["id"]


class Visitor:
    """Somebody with rights, in one of the worlds."""

    def __init__(
        self, world: World, policy: Policy, door: Door, token: str, client: str, own: str, origin: Origin
    ) -> None:
        self.world = world
        self.client = client
        self.connection = Connection(
            at_ms=0, namespace=own, session="h-visitor", door=door, token=token, policy=policy, origin=origin
        )

    def answer(self, call: Mapping[str, Any]) -> str:
        """What a call comes back with, whatever it is, as text."""
        # What was read is logged a little later.
        self.world.store.settle_reads(Deadline(20))
        try:
            return json.dumps(self._made(dict(call)), ensure_ascii=False)
        except AgoraError as error:
            return json.dumps(error.details(), ensure_ascii=False)

    def _made(self, call: dict[str, Any]) -> Any:
        calling = Calling(self.connection, self.client, "1", Deadline(20))
        world, caller = self.world, calling.caller()
        match call.pop("do"):
            case "tool":
                return world.tools.answer(call.pop("name"), call, calling)
            case "list":
                rows, following = world.resources.listed(caller, None, calling.deadline)
                return [[row.uri, row.name, row.title, row.description] for row in rows], following
            case "read":
                return json.loads(world.resources.read(call["uri"], calling))
            case "complete":
                return world.resources.complete(
                    call["template"], call["argument"], call["beginning"], caller, calling.deadline
                )
            case "prompt":
                return world.prompts.render(call["name"], call["given"], calling).text
        raise AssertionError(call)
