"""`agora reembed` as a process, an agent beside it, and looks at what it left."""

from __future__ import annotations

import queue
import sqlite3
import subprocess
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any, Self

from tests.integration.embedding_server import Asked, EmbeddingServer, Handler, vectors
from tests.integration.processes import AGORA, PATIENCE, environment

from agora.app.agora import opened
from agora.config.load import load_settings
from agora.model.deadline import Deadline
from agora.stores.sqlite.checks import find_problems

TINY = str(Path(__file__).resolve().parents[1] / "data" / "embedding" / "tiny" / "sentence.onnx")
LOCAL = {"AGORA_EMBEDDING_MODEL": TINY}
"""A graph of 16 dimensions that takes no time."""

CALM = {"AGORA_EMBEDDING_RETRIES": "0"}


def to(server: EmbeddingServer, *more: str) -> tuple[str, ...]:
    """The command that moves a store to the server's model."""
    return ("reembed", "--model", "openai:words", "--url", server.url, *more)


def using(server: EmbeddingServer, **more: str) -> dict[str, str]:
    """The environment of a process whose vectors come from `server`."""
    return {"AGORA_EMBEDDING_MODEL": "openai:words", "AGORA_EMBEDDING_URL": server.url, **CALM, **more}


def saved(home: Path, env: Mapping[str, str], texts: Sequence[str]) -> list[str]:
    """Ids of these texts, saved by one Agora."""
    with opened(load_settings(env={"AGORA_HOME": str(home), **env})) as agora:
        connection = agora.connection(origin="user")
        return [
            agora.tools.call("agora_save", {"content": text}, connection, client="test", deadline=Deadline(30))["id"]
            for text in texts
        ]


def found(home: Path, env: Mapping[str, str], *questions: str, mode: str = "semantic") -> list[list[str]]:
    """Ids of the first three notes for each question, by an Agora that is opened for it."""
    with opened(load_settings(env={"AGORA_HOME": str(home), **env})) as agora:
        connection = agora.connection(origin="user")
        return [
            [
                hit["id"]
                for hit in agora.tools.call(
                    "agora_query",
                    {"query": question, "mode": mode, "top_k": 3},
                    connection,
                    client="test",
                    deadline=Deadline(30),
                )["results"]
            ]
            for question in questions
        ]


def encoders(home: Path) -> dict[str, str]:
    with closing(sqlite3.connect(home / "agora.db")) as connection:
        return dict(connection.execute("SELECT state, name FROM encoders WHERE state <> 'retired'").fetchall())


def sound(home: Path) -> None:
    with closing(sqlite3.connect(home / "agora.db")) as connection:
        connection.execute("BEGIN")
        assert find_problems(connection) == []


def committed(home: Path) -> set[str]:
    """Texts whose vectors of the encoder to come are on the disk."""
    with closing(sqlite3.connect(home / "agora.db")) as connection:
        rows = connection.execute(
            "SELECT substr(t.content, p.start + 1, p.stop - p.start) FROM vectors v"
            " JOIN encoders e ON e.id = v.encoder_id AND e.state = 'building'"
            " JOIN passages p ON p.id = v.passage_id JOIN texts t ON t.item_id = p.item_id"
        )
        return {text for (text,) in rows}


def asked(server: EmbeddingServer) -> list[str]:
    """Every text that the server was asked for, but the one by which a dimension is found out."""
    with server.lock:
        return [text for each in server.requests for text in each.texts if text != "dimension"]


class Moving:
    """An `agora reembed` under way."""

    def __init__(self, home: Path, cwd: Path, arguments: Sequence[str], env: Mapping[str, str] | None = None) -> None:
        self.process = subprocess.Popen(
            [*AGORA, *arguments],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            env=environment(home, {**CALM, **(env or {})}),
            cwd=cwd,
            text=True,
            encoding="utf-8",
        )
        self.said: list[str] = []
        self._lines: queue.SimpleQueue[str | None] = queue.SimpleQueue()
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    def _read(self) -> None:
        assert self.process.stderr is not None
        for line in self.process.stderr:
            self._lines.put(line)
        self._lines.put(None)

    def wait_for(self, words: str) -> None:
        """Return once a line on stderr holds `words`."""
        while (line := self._lines.get(timeout=PATIENCE)) is not None:
            self.said.append(line)
            if words in line:
                return
        raise AssertionError(self.said)

    def end(self) -> tuple[int, str]:
        """The exit status and all of stderr."""
        code = self.process.wait(PATIENCE)
        self._reader.join(PATIENCE)
        while not self._lines.empty():
            self.said.append(self._lines.get() or "")
        return code, "".join(self.said)

    def kill(self) -> None:
        self.process.kill()
        self.process.wait(PATIENCE)
        self._reader.join(PATIENCE)
        assert self.process.stdout is not None
        assert self.process.stderr is not None
        self.process.stdout.close()
        self.process.stderr.close()


@contextmanager
def moving(home: Path, cwd: Path, *arguments: str, env: Mapping[str, str] | None = None) -> Iterator[Moving]:
    started = Moving(home, cwd, arguments, env)
    try:
        yield started
    finally:
        started.kill()


def slowly(handler: Handler, asked: Asked) -> None:
    handler.server.owner.released.wait(0.05)
    vectors(handler, asked)


class Busy:
    """An agent that saves and asks all the time, through a server that keeps the old model."""

    def __init__(self, client: Any) -> None:
        self.client = client
        self.acknowledged: dict[str, str] = {}
        self.refused = 0
        self.longest = 0.0
        self._wanted = threading.Event()
        self._thread = threading.Thread(target=self._work)
        self.problem: BaseException | None = None

    def _work(self) -> None:
        try:
            number = 0
            while self.refused < 3 and not self._wanted.is_set():
                number += 1
                self._turn(f"meanwhile{number} agent{number} learned lesson{number} beside the move")
        except BaseException as error:  # noqa: BLE001 - raised where the test waits
            self.problem = error

    def _turn(self, text: str) -> None:
        began = time.monotonic()
        answer = self.client.answer(self.client.post_call("agora_save", content=text))["result"]
        self.longest = max(self.longest, time.monotonic() - began)
        if answer.get("isError"):
            assert answer["structuredContent"]["error"]["code"] == "embedding_mismatch", answer
            self.refused += 1
            return
        assert not self.refused, "a save with the old model after the switch"
        public_id = answer["structuredContent"]["id"]
        self.acknowledged[text] = public_id
        answer = self.client.answer(self.client.post_call("agora_query", query=text, mode="semantic", top_k=1))[
            "result"
        ]
        if answer.get("isError"):
            assert answer["structuredContent"]["error"]["code"] == "embedding_mismatch", answer
        else:
            # The text itself is the nearest to it in one space; across two spaces it would be so by chance.
            assert [hit["id"] for hit in answer["structuredContent"]["results"]] == [public_id]

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._wanted.set()
        self.join()

    def join(self) -> None:
        self._thread.join(PATIENCE)
        assert not self._thread.is_alive()
        if self.problem is not None:
            raise self.problem
