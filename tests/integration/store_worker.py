"""A process with a store of its own: one JSON command a line in, one JSON answer a line out.

Run as `store_worker.py FOLDER AGENT`. It opens the store when it is told to, so that several can do so at once.
"""

from __future__ import annotations

import json
import sys
import time
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from agora.errors import AgoraError
from agora.memory.notes import Notes
from agora.model.caller import Caller, Scope
from agora.model.deadline import Deadline
from agora.model.note import Draft
from agora.model.query import Filter, Query
from agora.stores.sqlite.store import SqliteStore
from agora.testing import FakeEncoder, SilentLog
from agora.text.analysis import analyse_query

SECONDS = 60.0


class Clock:
    """The machine's."""

    def now(self) -> datetime:
        """The present."""
        return datetime.now(UTC)


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

    def save_without_end(self, prefix: str) -> None:
        """Saves until it is killed; each acknowledged id is a line."""
        for number in range(1_000_000):
            say(self.save(f"{prefix} {number} of endless saves " * (1 + number % 5)))
            if number % 3 == 0:
                say(self.save(f"version {number} of {prefix}"))

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


def main() -> None:
    """Obey until there are no more commands."""
    worker = Worker(Path(sys.argv[1]), sys.argv[2])
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
