"""Stores full of vectors of our choice, and what a search without Chroma says of them."""

from __future__ import annotations

import shutil
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from agora.model.caller import Caller, Scope
from agora.model.deadline import Deadline
from agora.model.note import Draft
from agora.model.profile import Span
from agora.model.query import Filter
from agora.model.selection import Selection
from agora.ports.records import Embedded
from agora.ports.vector_index import Candidates, VectorIndex
from agora.stores.chroma.index import ChromaIndex
from agora.stores.sqlite.store import SqliteStore
from agora.testing import FakeEncoder, InMemoryIndex, ManualClock

DIMENSION = 24
PROFILE = FakeEncoder(DIMENSION).fingerprint
CALLER = Caller(Scope("p", "test"), "ann", "s", "c")
NOTES, PASSAGES = 150, 8
"""More passages than Chroma keeps out of its graph files."""


def soon() -> Deadline:
    return Deadline(30)


@dataclass
class Shelf:
    """A data folder with a store, and Chroma beside it."""

    home: Path
    clock: ManualClock

    def copied(self, home: Path) -> Shelf:
        """The same in another folder."""
        shutil.copytree(self.home, home)
        return Shelf(home, self.clock)

    def index(self, **given: Any) -> ChromaIndex:
        """Chroma in this folder; it does not search by hand, and applies every change at once."""
        return ChromaIndex(self.home / "chroma", **{"owned": True, "few": 0, "lag": 0, **given})

    def open(self, index: VectorIndex | None = None) -> SqliteStore:
        return SqliteStore(self.home / "agora.db", PROFILE, self.clock, index=index or self.index())


def add(store: SqliteStore, seed: int, passages: int = 1, namespace: str = "p") -> str:
    """Id of a note whose vectors are made from `seed`."""
    vectors = np.random.default_rng(seed).standard_normal((passages, DIMENSION))
    units = (vectors / np.linalg.norm(vectors, axis=1, keepdims=True)).astype(np.float32)
    spans = tuple(Span(number, number + 1) for number in range(passages))
    draft, now = Draft(f"note {seed} in {namespace}", namespace), store._clock.now()
    return store.save(draft, CALLER, Embedded(PROFILE, spans, tuple(units)), now, soon()).id


def fill(store: SqliteStore, notes: int = NOTES, first: int = 0, passages: int = PASSAGES) -> list[str]:
    """Ids of so many new notes."""
    return [add(store, first + number, passages) for number in range(notes)]


def forget(store: SqliteStore, *ids: str) -> None:
    store.forget(Selection(("p",), ids), CALLER, store._clock.now(), soon(), dry_run=False)


def restore(store: SqliteStore, *ids: str) -> None:
    store.restore(ids, CALLER, store._clock.now(), soon())


def asked(seed: int) -> Any:
    vector = np.random.default_rng(10_000 + seed).standard_normal(DIMENSION)
    return (vector / np.linalg.norm(vector)).astype(np.float32)


def nearest(store: SqliteStore, seed: int = 0, limit: int = 25, deadline: Deadline | None = None) -> Candidates:
    with store.read(deadline or soon()) as reading:
        return reading.vectors.nearest(asked(seed), reading.among(Filter(("p",))), limit)


def agrees(store: SqliteStore, limits: tuple[int, ...] = (1, 25, 10_000)) -> None:
    """Whether the store answers as an index that knows no Chroma does."""
    plain = SqliteStore(store._database.path, PROFILE, store._clock, index=InMemoryIndex())
    for limit in limits:
        found, expected = nearest(store, limit, limit), nearest(plain, limit, limit)
        assert found.rows.tolist() == expected.rows.tolist()
        assert found.scores.tolist() == expected.scores.tolist()
        assert found.passages.tolist() == expected.passages.tolist()
    with store.read(soon()) as mine, plain.read(soon()) as other:
        assert mine.vectors.size() == other.vectors.size()
    plain.close()


def rebuilt(store: SqliteStore) -> str | None:
    """Why the store's index was built anew since it was made."""
    found: str | None = store.index.details().get("rebuilt")
    return found
