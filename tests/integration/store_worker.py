"""A process with a store of its own: one JSON command a line in, one JSON answer a line out.

Run as `store_worker.py FOLDER AGENT`. It opens the store when it is told to, so that several can do so at once.
"""

from __future__ import annotations

import json
import sqlite3
import sys
import threading
import time
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from agora.errors import AgoraError
from agora.memory.conversations.service import ConversationMemory
from agora.memory.facts import FactMemory
from agora.memory.notes import Notes
from agora.model.backend import ToolDefinition
from agora.model.caller import Caller, Scope
from agora.model.calls import CallRow
from agora.model.deadline import Deadline
from agora.model.fact import FactDraft, Recollection
from agora.model.message import Message, MessageDraft, Summary
from agora.model.note import Draft
from agora.model.query import Filter, Query
from agora.ports.extractor import Extraction
from agora.ports.summarizer import Folded
from agora.stores.sqlite.store import SqliteStore
from agora.testing import FakeEncoder, SilentLog
from agora.text.analysis import analyse_query

SECONDS = 60.0


class Last:
    """Summarises messages by the last of them."""

    def fold(
        self, before: Summary | None, messages: Sequence[Message], words: int, tokens: int, deadline: Deadline
    ) -> Folded:
        """The text of the last message, and nothing of the summary before."""
        del before, words, tokens, deadline
        return Folded(messages[-1].content, "extractive")


class Clock:
    """The machine's."""

    def now(self) -> datetime:
        """The present."""
        return datetime.now(UTC)


class _Nothing:
    def extract(self, text: str, deadline: Deadline) -> Extraction:  # noqa: ARG002 - the port's form
        return Extraction((), "nothing")


class Worker:
    """What a command calls: its name is the method's."""

    def __init__(self, folder: Path, agent: str) -> None:
        self.folder = folder
        self.caller = Caller(Scope("p", "test"), agent, f"session-{agent}", "worker")
        self.encoder = FakeEncoder()

    def open(self) -> float:
        """Open the store; how long that took, in seconds."""
        began = time.monotonic()
        self.store = SqliteStore(self.folder / "agora.db", self.encoder.fingerprint, Clock())
        self.notes = Notes(self.store, self.encoder, Clock(), SilentLog(), model_seconds=SECONDS)
        self.facts = FactMemory(
            self.store.facts(), self.encoder, Clock(), SilentLog(), _Nothing(), model_seconds=SECONDS
        )
        return time.monotonic() - began

    def save(self, text: str) -> str:
        """The id of the saved text."""
        return self.notes.save(Draft(text, "p"), self.caller, Deadline(SECONDS)).id

    def save_many(self, prefix: str, count: int) -> dict[str, Any]:
        """Ids of as many different texts, and the longest wait, in seconds."""
        ids, longest = [], 0.0
        for number in range(count):
            began = time.monotonic()
            ids.append(self.save(f"common words of {prefix} number {number}"))
            longest = max(longest, time.monotonic() - began)
        return {"ids": ids, "longest": longest}

    def save_again(self, text: str, times: int) -> str:
        """The one id that `times` saves of the same text return."""
        ids = {self.save(text) for _ in range(times)}
        assert len(ids) == 1
        return ids.pop()

    def remember_many(self, key: str, count: int) -> dict[str, int]:
        """Tells one key a value of its own each time; how often each word came back."""
        told: dict[str, int] = {}
        for number in range(count):
            status = self.remember(key, f"{self.caller.agent} says {number}")[1]
            told[status] = told.get(status, 0) + 1
        return told

    def remember(self, key: str, value: str, subject: str = "user") -> tuple[str, str, int]:
        """Id, what came of it, and how many say so."""
        told = self.facts.remember(FactDraft("p", subject, key, value), self.caller, Deadline(SECONDS))
        return told.id, told.status, told.count

    def recall(self, subject: str, key: str | None) -> list[str]:
        """Values that hold."""
        asked = Recollection(("p",), subject, key)
        return [str(each.fact.value) for each in self.facts.recall(asked, self.caller, Deadline(SECONDS)).facts]

    def save_busily(self, prefix: str, seconds: float) -> dict[str, Any]:
        """Saves one after the other for so long: how many, the longest wait, in seconds, and what went wrong."""
        ends, saved, longest, errors = time.monotonic() + seconds, 0, 0.0, []
        while (began := time.monotonic()) < ends:
            try:
                self.save(f"common words of {prefix} number {saved}")
            except AgoraError as error:
                errors.append(str(error))
            saved, longest = saved + 1, max(longest, time.monotonic() - began)
        return {"saved": saved, "longest": longest, "errors": errors}

    def write_busily(self, seconds: float, held: float) -> dict[str, Any]:
        """Transactions of `held` seconds, one right after the other: how many, and the longest wait, in seconds."""

        def work(connection: sqlite3.Connection) -> None:
            connection.execute("DELETE FROM meta WHERE key = 'nothing'")
            threading.Event().wait(held)

        ends, done, longest = time.monotonic() + seconds, 0, 0.0
        while (began := time.monotonic()) < ends:
            self.store._database.write(work, Deadline(SECONDS))
            done, longest = done + 1, max(longest, time.monotonic() - began - held)
        return {"done": done, "longest": longest}

    def hold(self, seconds: float) -> None:
        """One transaction of so many seconds; says when it has begun."""

        def work(connection: sqlite3.Connection) -> None:
            connection.execute("INSERT INTO meta VALUES ('held', 'a write that is taken back')")
            say(json.dumps("held"))
            threading.Event().wait(seconds)
            connection.execute("DELETE FROM meta WHERE key = 'held'")

        self.store._database.write(work, Deadline(SECONDS))

    def fair(self) -> bool:
        """Whether writers take turns here."""
        return bool(self.store.details()["fair"])

    def save_without_end(self, prefix: str) -> None:
        """Saves until it is killed; each acknowledged id is a line."""
        for number in range(1_000_000):
            say(self.save(f"{prefix} {number} of endless saves " * (1 + number % 5)))
            if number % 3 == 0:
                say(self.save(f"version {number} of {prefix}"))

    def append_many(self, session: str, prefix: str, count: int) -> list[int]:
        """The numbers that as many messages got; each folds what is due."""
        return [self.append(session, f"{prefix} {number}") for number in range(count)]

    def append(self, session: str, content: str) -> int:
        """The number that a message got."""
        conversations = self.store.conversations()
        memory = ConversationMemory(
            lambda _: conversations, self.encoder, Clock(), SilentLog(), Last(), lambda *_: (), fold_messages=12
        )
        draft = MessageDraft("p", session, "user", content)
        return memory.append(draft, self.caller, Deadline(SECONDS)).seq

    def append_without_end(self, session: str) -> None:
        """Appends until it is killed; each acknowledged number and text is a line."""
        for number in range(1_000_000):
            content = f"{self.caller.agent} says {number} " * (1 + number % 5)
            say(json.dumps([self.append(session, content), content]))

    def query(self, text: str, mode: str) -> list[str]:
        """Ids of what is found."""
        asked = Query(text, Filter(("p",)), 50, mode, None, 100_000)  # type: ignore[arg-type]
        return [hit.note.id for hit in self.notes.query(asked, self.caller, Deadline(SECONDS)).hits]

    def everything(self, text: str) -> dict[str, list[str]]:
        """Ids that each index finds for `text`, without limit, in one snapshot."""
        with self.store.read(Deadline(SECONDS)) as reading:
            among = reading.among(Filter(("p",)))
            vector = self.encoder.encode(text, Deadline(SECONDS))
            rows = {
                "semantic": reading.vectors.nearest(vector, among, 100_000).rows.tolist(),
                "lexical": reading.text.matching(analyse_query(text), among, 100_000).rows.tolist(),
            }
            return {name: sorted(note.id for note in reading.by_row(found).values()) for name, found in rows.items()}

    def count(self) -> list[int]:
        """Live notes by the counts, live rows that the index finds, and the sequence, in one snapshot."""
        with self.store.read(Deadline(SECONDS)) as reading:
            live = reading.counts(["p"])["notes"]["live"]
            found = reading.vectors.nearest(
                self.encoder.encode("common", Deadline(SECONDS)), reading.among(Filter(("p",))), 1_000_000
            )
            return [live, len(found.rows), reading.sequence]

    def counts_seen(self, file: str) -> list[list[int]]:
        """Each different `count`, in the order in which they were seen, until a file of this name appears."""
        seen: list[list[int]] = []
        while not Path(file).exists():
            found = self.count()
            if seen[-1:] != [found]:
                seen.append(found)
        return seen

    def save_until(self, prefix: str, file: str) -> list[list[Any]]:
        """Id, and time of the acknowledgement, of saves one after the other until a file of this name appears."""
        saved: list[list[Any]] = []
        while not Path(file).exists():
            saved.append([self.save(f"common words of {prefix} number {len(saved)}"), time.time()])
        return saved

    def sight(self, backend: str, tools: dict[str, int], times: int) -> int:
        """See a backend's tools, each in some version, and call one, so many times; how many times that was."""
        seen = [ToolDefinition(backend, name, f"version {number}") for name, number in tools.items()]
        for _ in range(times):
            now = datetime.now(UTC)
            self.store.tool_pins().seen(backend, "x", seen, now, Deadline(SECONDS))
            call = CallRow(now, self.caller, backend, next(iter(tools)), "read", "name", "name", "ok", 0.0)
            self.store.call_log().record(call, Deadline(SECONDS))
        return times

    def watch(self, seconds: float) -> int:
        """Queries for so long; how many snapshots were seen, which must never go back."""
        ends, seen, last = time.monotonic() + seconds, 0, 0
        while time.monotonic() < ends:
            with self.store.read(Deadline(SECONDS)) as reading:
                assert reading.sequence >= last
                last = reading.sequence
                live = reading.counts(["p"])["notes"]["live"]
                among = reading.among(Filter(("p",)))
                found = reading.vectors.nearest(self.encoder.encode("common", Deadline(SECONDS)), among, 100_000)
                assert len(found.rows) == live, (len(found.rows), live, last)
            seen += 1
        return seen

    def close(self) -> None:
        """Let the store go."""
        self.store.close()


def say(line: str) -> None:
    """One line to whoever started this."""
    sys.stdout.write(line + "\n")
    sys.stdout.flush()


def main(kind: type[Worker] = Worker) -> None:
    """Obey until there are no more commands."""
    worker = kind(Path(sys.argv[1]), sys.argv[2])
    say(json.dumps("ready"))
    for line in sys.stdin:
        name, *arguments = json.loads(line)
        try:
            answer = {"ok": getattr(worker, name)(*arguments)}
        except (AgoraError, AssertionError) as error:
            answer = {"error": f"{type(error).__name__}: {error}"}
        say(json.dumps(answer))


if __name__ == "__main__":
    main()
