"""What every vector index does, against a search by hand in float64: the default, Chroma and the one in memory.

Chroma is told not to search by hand, which it would do with as few rows as there are here; once it applies every change
at once, and once it stays a few changes behind.
"""

from __future__ import annotations

import random
import threading
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from datetime import timedelta
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

from agora.model.caller import Caller, Scope
from agora.model.deadline import Deadline
from agora.model.note import Draft
from agora.model.profile import Span
from agora.model.query import Filter
from agora.model.selection import Selection
from agora.ports.records import Embedded, Reading
from agora.ports.vector_index import Among, Candidates, VectorIndex, VectorView
from agora.stores.chroma.index import ChromaIndex
from agora.stores.sqlite.store import SqliteStore
from agora.testing import FakeEncoder, InMemoryIndex, ManualClock

DIMENSION = 24
PROFILE = FakeEncoder(DIMENSION).fingerprint
Matrix = NDArray[np.float32]


def soon() -> Deadline:
    return Deadline(20)


@dataclass
class Item:
    """What a search by hand knows of a note."""

    id: str
    namespace: str
    vectors: Matrix
    tag: str
    ends: float
    live: bool = True


@dataclass
class Shelf:
    """A store filled with vectors of our choice, and the same in plain Python."""

    path: Path
    clock: ManualClock
    make_index: Callable[[], VectorIndex | None]
    now: float = 0.0
    stores: list[SqliteStore] = field(default_factory=list)
    items: dict[str, Item] = field(default_factory=dict)
    rows: dict[int, Item] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.store = self.open()

    def open(self) -> SqliteStore:
        """A store, and an index, of their own on the same files."""
        self.stores.append(SqliteStore(self.path, PROFILE, self.clock, index=self.make_index()))
        return self.stores[-1]

    def add(
        self,
        vectors: Sequence[NDArray[np.float64]],
        namespace: str = "p",
        *,
        tag: str = "t",
        lives: float | None = None,
    ) -> Item:
        """Save a note with these passages."""
        units: Matrix = np.array([vector / np.linalg.norm(vector) for vector in vectors]).astype(np.float32)
        spans = tuple(Span(number, number + 1) for number in range(len(units)))
        ends = None if lives is None else self.clock.now() + timedelta(seconds=lives)
        draft = Draft(f"note {len(self.items)}", namespace, tags=(tag,), expires_at=ends)
        saved = self.store.save(
            draft, self.caller(namespace), Embedded(PROFILE, spans, tuple(units)), self.clock.now(), soon()
        )
        item = Item(saved.id, namespace, units, tag, float("inf") if lives is None else self.now + lives)
        self.items[saved.id] = item
        with self.store.read(soon()) as reading:
            self.rows[reading.by_id([saved.id], [namespace])[saved.id][0]] = item
        return item

    def forget(self, item: Item) -> None:
        selection = Selection((item.namespace,), (item.id,))
        self.store.forget(selection, self.caller(item.namespace), self.clock.now(), soon(), dry_run=False)
        item.live = False

    def restore(self, item: Item) -> None:
        self.store.restore((item.id,), self.caller(item.namespace), self.clock.now(), soon())
        item.live = True

    def wait(self, seconds: float) -> None:
        self.clock.advance(seconds=seconds)
        self.now += seconds

    def caller(self, namespace: str) -> Caller:
        return Caller(Scope(namespace, "test"), "ann", "s", "c")

    def by_hand(
        self, vector: Matrix, limit: int, namespaces: Sequence[str] = ("p",), tag: str | None = None
    ) -> list[tuple[int, float, int]]:
        """Row, score and passage of the best, every product in float64."""
        found = []
        for row, item in self.rows.items():
            if item.live and item.ends > self.now and item.namespace in namespaces and tag in {None, item.tag}:
                scores = (item.vectors.astype(np.float64) @ vector.astype(np.float64)).astype(np.float32)
                best = int(scores.argmax())
                found.append((row, float(scores[best]), best))
        return sorted(found, key=lambda each: (-each[1], each[0]))[:limit]


@pytest.fixture(params=["sqlite", "chroma", "chroma, behind", "memory"])
def make_index(request: pytest.FixtureRequest, tmp_path: Path) -> Callable[[], VectorIndex | None]:
    if request.param == "sqlite":
        return lambda: None
    if request.param == "memory":
        return InMemoryIndex
    pytest.importorskip("chromadb")
    lag = 8 if request.param == "chroma, behind" else 0
    return lambda: ChromaIndex(tmp_path / "chroma", few=0, lag=lag)


@pytest.fixture
def shelf(tmp_path: Path, make_index: Callable[[], VectorIndex | None]) -> Iterator[Shelf]:
    shelf = Shelf(tmp_path / "agora.db", ManualClock(), make_index)
    yield shelf
    for store in shelf.stores:
        store.close()


@pytest.fixture
def numbers() -> np.random.Generator:
    return np.random.default_rng(7)


def unit(numbers: np.random.Generator) -> Matrix:
    vector = numbers.standard_normal(DIMENSION)
    found: Matrix = (vector / np.linalg.norm(vector)).astype(np.float32)
    return found


def agrees(found: Candidates, expected: list[tuple[int, float, int]]) -> None:
    assert found.rows.dtype == np.int64
    assert found.scores.dtype == np.float32
    assert found.passages.dtype == np.int64
    assert found.rows.tolist() == [row for row, _, _ in expected]
    assert found.scores.tolist() == pytest.approx([score for _, score, _ in expected], abs=2e-7)
    assert found.passages.tolist() == [passage for _, _, passage in expected]


def among(reading: Reading, namespaces: Sequence[str] = ("p",), tag: str | None = None) -> Among:
    return reading.among(Filter(tuple(namespaces), tags=() if tag is None else (tag,)))


@pytest.mark.parametrize("limit", [1, 2, 7, 50, 10_000])
def test_the_best_are_found_among_notes_of_one_passage_and_of_many(
    shelf: Shelf, numbers: np.random.Generator, limit: int
) -> None:
    for number in range(60):
        shelf.add([numbers.standard_normal(DIMENSION) for _ in range(1 + (number % 5) * (number % 7))])
    with shelf.store.read(soon()) as reading:
        for _ in range(5):
            asked = unit(numbers)
            agrees(reading.vectors.nearest(asked, among(reading), limit), shelf.by_hand(asked, limit))


def test_a_note_whose_many_passages_are_all_nearest_takes_one_place(shelf: Shelf, numbers: np.random.Generator) -> None:
    target = numbers.standard_normal(DIMENSION)
    shelf.add([target + 0.01 * numbers.standard_normal(DIMENSION) for _ in range(300)])
    for _ in range(20):
        shelf.add([numbers.standard_normal(DIMENSION)])
    asked = (target / np.linalg.norm(target)).astype(np.float32)
    with shelf.store.read(soon()) as reading:
        agrees(reading.vectors.nearest(asked, among(reading), 10), shelf.by_hand(asked, 10))
        assert reading.vectors.size() == 320


def test_equal_vectors_come_in_the_order_of_their_rows_also_after_a_restore(
    shelf: Shelf, numbers: np.random.Generator
) -> None:
    same = numbers.standard_normal(DIMENSION)
    items = [shelf.add([numbers.standard_normal(DIMENSION), same]) for _ in range(40)]
    for item in items[::3]:
        shelf.forget(item)
    # A new object loads the forgotten ones last of all, in slots behind those of younger rows.
    fresh = shelf.open()
    asked = (same / np.linalg.norm(same)).astype(np.float32)
    with fresh.read(soon()) as reading:
        agrees(reading.vectors.nearest(asked, among(reading), 9), shelf.by_hand(asked, 9))
    for item in items[::3]:
        shelf.restore(item)
    for store in (fresh, shelf.store):
        with store.read(soon()) as reading:
            for limit in (1, 9, 30):
                agrees(reading.vectors.nearest(asked, among(reading), limit), shelf.by_hand(asked, limit))


def test_the_first_of_equal_passages_earns_the_score(shelf: Shelf, numbers: np.random.Generator) -> None:
    same = numbers.standard_normal(DIMENSION)
    shelf.add([numbers.standard_normal(DIMENSION), same, same])
    asked = (same / np.linalg.norm(same)).astype(np.float32)
    with shelf.store.read(soon()) as reading:
        assert reading.vectors.nearest(asked, among(reading), 1).passages.tolist() == [1]
        row = reading.vectors.nearest(asked, among(reading), 1).rows
        assert reading.vectors.cosines(asked, row).passages.tolist() == [1]


def test_only_the_namespaces_and_rows_asked_for_are_searched(shelf: Shelf, numbers: np.random.Generator) -> None:
    for number in range(90):
        shelf.add([numbers.standard_normal(DIMENSION)], "pqr"[number % 3], tag="rare" if number % 10 == 0 else "common")
    asked = unit(numbers)
    with shelf.store.read(soon()) as reading:
        for namespaces in (("p",), ("q",), ("p", "r"), ("p", "q", "r"), ("nowhere",), ()):
            for tag in (None, "rare", "common", "none"):
                for limit in (1, 5, 100):
                    agrees(
                        reading.vectors.nearest(asked, among(reading, namespaces, tag), limit),
                        shelf.by_hand(asked, limit, namespaces, tag),
                    )


def test_expired_rows_are_left_out_at_their_instant(shelf: Shelf, numbers: np.random.Generator) -> None:
    for number in range(30):
        shelf.add([numbers.standard_normal(DIMENSION)], lives=None if number % 3 == 0 else number)
    asked = unit(numbers)
    for _ in range(6):
        with shelf.store.read(soon()) as reading:
            agrees(reading.vectors.nearest(asked, among(reading), 50), shelf.by_hand(asked, 50))
        shelf.wait(5)


def test_the_arrays_grow_and_lose_nothing(shelf: Shelf, numbers: np.random.Generator) -> None:
    asked = unit(numbers)
    for number in range(40):
        shelf.add([numbers.standard_normal(DIMENSION) for _ in range(number)] or [asked.astype(np.float64)])
        if number % 8 == 0:
            with shelf.store.read(soon()) as reading:
                agrees(reading.vectors.nearest(asked, among(reading), 1000), shelf.by_hand(asked, 1000))
    with shelf.store.read(soon()) as reading:
        assert reading.vectors.size() == sum(range(40)) + 1


def test_cosines_of_given_rows_come_in_their_order(shelf: Shelf, numbers: np.random.Generator) -> None:
    for number in range(30):
        shelf.add([numbers.standard_normal(DIMENSION) for _ in range(1 + number % 4)])
    asked = unit(numbers)
    expected = {row: (score, passage) for row, score, passage in shelf.by_hand(asked, 1000)}
    wanted = [*reversed(expected), 99_999, *list(expected)[:3]]
    with shelf.store.read(soon()) as reading:
        found = reading.vectors.cosines(asked, np.array(wanted, dtype=np.int64))
        nothing = reading.vectors.cosines(asked, np.array([], dtype=np.int64))
    assert found.rows.tolist() == wanted
    assert found.scores.tolist() == pytest.approx([expected.get(row, (-1.0, 0))[0] for row in wanted], abs=2e-7)
    assert found.passages.tolist() == [expected.get(row, (-1.0, 0))[1] for row in wanted]
    assert len(nothing.rows) == 0


@pytest.mark.parametrize("seed", range(6))
def test_any_run_of_changes_leaves_the_same_as_a_search_by_hand(shelf: Shelf, seed: int) -> None:
    chance, numbers = random.Random(seed), np.random.default_rng(seed)  # noqa: S311 - repeatable
    second = shelf.open()
    for step in range(120):
        items = list(shelf.items.values())
        live = [item for item in items if item.live and item.ends > shelf.now]
        gone = [item for item in items if not item.live and item.ends > shelf.now]
        action = chance.random()
        if action < 0.55 or not items:
            lives = chance.choice([None, None, 3.0, 30.0])
            vectors = [numbers.standard_normal(DIMENSION) for _ in range(chance.choice([1, 1, 1, 2, 9]))]
            shelf.add(vectors, chance.choice("pq"), tag=chance.choice("ab"), lives=lives)
        elif action < 0.75 and live:
            shelf.forget(chance.choice(live))
        elif action < 0.9 and gone:
            shelf.restore(chance.choice(gone))
        else:
            shelf.wait(1)
        if step % 5 == 0:
            asked, limit = unit(numbers), chance.choice([1, 4, 500])
            namespaces, tag = chance.choice([("p",), ("q",), ("p", "q")]), chance.choice([None, "a"])
            for store in (shelf.store, second):
                with store.read(soon()) as reading:
                    agrees(
                        reading.vectors.nearest(asked, among(reading, namespaces, tag), limit),
                        shelf.by_hand(asked, limit, namespaces, tag),
                    )
                    assert reading.vectors.size() == sum(
                        len(item.vectors) for item in shelf.items.values() if item.live
                    )


def test_a_view_keeps_its_snapshot_while_another_thread_applies_changes(
    shelf: Shelf, numbers: np.random.Generator
) -> None:
    items = [shelf.add([numbers.standard_normal(DIMENSION)]) for _ in range(50)]
    asked = unit(numbers)
    with shelf.store.read(soon()) as reading:
        assert reading.vectors.size() == 50
    errors: list[BaseException] = []

    def change() -> None:
        try:
            for item in items[:25]:
                shelf.forget(item)
            for number in range(400):
                shelf.add([numbers.standard_normal(DIMENSION)])
                if number % 20 == 0:
                    with shelf.store.read(soon()) as newer:
                        assert newer.vectors.size() == 26 + number
            for item in items[:25]:
                shelf.restore(item)
        except BaseException as error:  # noqa: BLE001 - shown by the test
            errors.append(error)

    with shelf.store.read(soon()) as reading:
        view: VectorView = reading.vectors
        where = among(reading)
        before, rows = shelf.by_hand(asked, 60), np.array(sorted(shelf.rows), dtype=np.int64)
        cosines = view.cosines(asked, rows).scores.tolist()
        thread = threading.Thread(target=change)
        thread.start()
        while thread.is_alive():
            agrees(view.nearest(asked, where, 60), before)
            assert view.cosines(asked, rows).scores.tolist() == cosines
            assert view.size() == 50
            # An index in plain Python would keep the other thread from its work.
            thread.join(0.02)
        assert errors == []
        later = np.array(sorted(shelf.rows), dtype=np.int64)
        assert set(view.cosines(asked, later[50:]).scores.tolist()) == {-1.0}
    with shelf.store.read(soon()) as reading:
        agrees(reading.vectors.nearest(asked, among(reading), 500), shelf.by_hand(asked, 500))


def test_nothing_is_nearest_to_nothing(shelf: Shelf, numbers: np.random.Generator) -> None:
    asked = unit(numbers)
    with shelf.store.read(soon()) as reading:
        agrees(reading.vectors.nearest(asked, among(reading), 5), [])
    shelf.add([numbers.standard_normal(DIMENSION)])
    with shelf.store.read(soon()) as reading:
        agrees(reading.vectors.nearest(asked, among(reading), 0), [])
