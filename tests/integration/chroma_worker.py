"""A process with a store and Chroma beside it: one JSON command a line in, one JSON answer a line out.

Run as `chroma_worker.py FOLDER AGENT`, with the checkout and its `src` importable.
"""

from __future__ import annotations

import json
import random
import time
from pathlib import Path
from typing import Any

from tests.crash.failpoints import Failpoints, Point
from tests.integration import store_worker
from tests.integration.store_worker import SECONDS

from agora.errors import AgoraError, IndexUnavailable
from agora.memory.notes import Notes
from agora.model.deadline import Deadline
from agora.model.note import Draft
from agora.model.query import Filter
from agora.model.selection import Selection
from agora.ports.records import Embedded
from agora.stores.chroma.index import ChromaIndex
from agora.stores.sqlite.store import SqliteStore
from agora.testing import FakeEncoder, SilentLog


class ChromaWorker(store_worker.Worker):
    """As `Worker`, with another index."""

    def __init__(self, folder: Path, agent: str) -> None:
        super().__init__(folder, agent)
        self.points = Failpoints(folder)

    def open(self) -> float:
        """Open the store; how long that took, in seconds."""
        began = time.monotonic()
        index = ChromaIndex(self.folder / "chroma", owned=True, few=0)
        clock = store_worker.Clock()
        self.store = SqliteStore(self.folder / "agora.db", self.encoder.fingerprint, clock, index=index)
        self.notes = Notes(self.store, self.encoder, clock, SilentLog(), model_seconds=SECONDS)
        return time.monotonic() - began

    def details(self) -> dict[str, Any]:
        """What the index says of itself."""
        return self.store.index.details()

    def refused(self, text: str) -> dict[str, Any]:
        """The error of a query by meaning, and the seconds it took."""
        began = time.monotonic()
        try:
            self.query(text, "semantic")
        except AgoraError as error:
            return error.details() | {"seconds": time.monotonic() - began}
        raise AssertionError("it was answered")

    def mixed(self, seconds: float, seed: int) -> dict[str, Any]:
        """Saves and queries for so long: ids of what was saved, how many queries were answered and refused."""
        ends, chance = time.monotonic() + seconds, random.Random(seed)  # noqa: S311 - repeatable
        done: dict[str, Any] = {"saved": [], "answered": 0, "refused": 0, "missing": 0}
        while time.monotonic() < ends:
            number = len(done["saved"])
            done["saved"].append(self.save(f"text {number} of {seed} in common"))
            try:
                found = self.query(f"text {number} of {seed}", chance.choice(["hybrid", "semantic"]))
                done["answered"] += 1
                done["missing"] += done["saved"][-1] not in found
            except IndexUnavailable:
                done["refused"] += 1
        return done

    def save_quickly(self, prefix: str, count: int) -> None:
        """Save as many texts and look for none that is related, which would need the index."""
        deadline = Deadline(SECONDS)
        for number in range(count):
            draft = Draft(f"note {number} of {prefix}", "p")
            spans = self.encoder.split(draft.content, deadline)
            vectors = tuple(self.encoder.encode_all([draft.content] * len(spans), deadline))
            embedded = Embedded(self.encoder.fingerprint, spans, vectors)
            self.store.save(draft, self.caller, embedded, store_worker.Clock().now(), deadline)

    def limit_files(self, size: int | None) -> None:
        """Let no file grow beyond so many bytes: writes fail as on a full disk."""
        import resource  # noqa: PLC0415 - Windows has none

        most = resource.getrlimit(resource.RLIMIT_FSIZE)[1]
        resource.setrlimit(resource.RLIMIT_FSIZE, (most if size is None else size, most))

    def reindex(self) -> dict[str, Any]:
        """Build the index anew."""
        return self.store.reindex()

    def sequence(self) -> int:
        """Of the last change."""
        with self.store.read(Deadline(SECONDS)) as reading:
            return reading.sequence

    def follow_without_end(self) -> None:
        """Saves and applies until it is killed; each acknowledged id is a line."""
        for number in range(1_000_000):
            store_worker.say(self.save(f"note {number} of many without end"))

    def forget(self, ids: list[str]) -> int:
        """How many notes were hidden."""
        return self.notes.forget(Selection(("p",), tuple(ids)), self.caller, Deadline(SECONDS), dry_run=False).count

    def compact(self) -> bool:
        """Whether the graph was built anew."""
        return self.store.compact(force=True) is not None

    def arm(self, point: dict[str, Any]) -> None:
        """Die there."""
        self.points.arm(Point(**point))

    def answers(self) -> list[Any]:
        """As the function of that name."""
        return answers(self.store, self.encoder)

    def churn_without_end(self, seed: int) -> None:
        """Saves, forgets, asks and compacts at random until it is killed; says what it is about to do and has done."""
        chance = random.Random(seed)  # noqa: S311 - repeatable
        live: list[str] = []
        for number in range(1_000_000):
            what = chance.choice(["save", "save", "save", "forget", "ask", "ask", "compact"])
            if what == "save":
                live.append(self.save(f"note {number} of {seed} without end"))
                store_worker.say(json.dumps(["saved", live[-1]]))
            elif what == "forget" and live:
                gone = live.pop(chance.randrange(len(live)))
                store_worker.say(json.dumps(["forget", gone]))
                self.forget([gone])
                store_worker.say(json.dumps(["forgot", gone]))
            elif what == "ask":
                self.everything("note")
            elif what == "compact" and number % 4 == 0:
                self.compact()


def answers(store: SqliteStore, encoder: FakeEncoder) -> list[Any]:
    """Rows, scores and passages that an index names for some questions, best first."""
    found: list[Any] = []
    with store.read(Deadline(SECONDS)) as reading:
        among = reading.among(Filter(("p",)))
        for text in ("note", "note 7 of many", "text without end", "nothing of the kind"):
            vector = encoder.encode(text, Deadline(SECONDS))
            for limit in (1, 10, 100_000):
                named = reading.vectors.nearest(vector, among, limit)
                found.append([named.rows.tolist(), named.scores.tolist(), named.passages.tolist()])
        found.append(reading.vectors.size())
    return found


if __name__ == "__main__":
    store_worker.main(ChromaWorker)
