"""The contract of every vector index, for this one in the forms that a small store does not take by itself."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from tests.contract import test_vector_view as contract
from tests.contract.test_vector_view import DIMENSION, Item, Shelf, numbers

from agora.ports.vector_index import VectorIndex
from agora.stores.sqlite.index.compacting import Writing
from agora.stores.sqlite.index.following import SegmentedIndex
from agora.stores.sqlite.store import SqliteStore
from agora.testing import ManualClock

__all__ = ["numbers"]

# Its tests, run here once more with the fixtures below.
globals().update({name: each for name, each in vars(contract).items() if name.startswith("test_")})

FORMS: dict[str, dict[str, Any]] = {
    "files": {},
    "files read on demand": {"memory_mb": 0},
    "bits for every search": {"exact_below": 0},
    "bits by numpy, on demand": {"exact_below": 0, "memory_mb": 0, "kernel": "numpy"},
}


class Compacted(Shelf):
    """A shelf whose index is written to files again and again, and lies in files, tail and dead slots."""

    form: dict[str, Any] = {}  # noqa: RUF012 - set once, by the fixture

    def open(self) -> SqliteStore:
        store = super().open()
        folder, writing = store._database.path.parent / "index", Writing(store._database.write, self.clock)
        store.index = SegmentedIndex(folder, DIMENSION, writing, **self.form)
        return store

    def add(self, vectors: Sequence[NDArray[np.float64]], *given: Any, **named: Any) -> Item:
        item = super().add(vectors, *given, **named)
        if len(self.items) % 13 == 7:
            self.stores[-1].compact(force=True)
        return item

    def forget(self, item: Item) -> None:
        super().forget(item)
        if len(self.items) % 5 == 0:
            self.store.compact(force=len(self.items) % 2 == 0)


@pytest.fixture(params=FORMS)
def make_index(request: pytest.FixtureRequest) -> Callable[[], VectorIndex | None]:
    Compacted.form = FORMS[request.param]
    return lambda: None


@pytest.fixture
def shelf(tmp_path: Path, make_index: Callable[[], VectorIndex | None]) -> Iterator[Shelf]:
    shelf = Compacted(tmp_path / "agora.db", ManualClock(), make_index)
    yield shelf
    for store in shelf.stores:
        assert store.index.details()["problem"] is None
        store.close()
