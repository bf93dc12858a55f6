from __future__ import annotations

import contextlib
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

from agora.errors import EmbeddingMismatch
from agora.model.deadline import Deadline
from agora.ports.encoder import Vector
from agora.ports.vector_index import Among, Candidates, Passages, Progress, Source, Unusable, VectorView

_FIRST_CAPACITY = 256
_WASTE = 512
"""Slots of rows that are gone, from which on it is worth loading anew once they are the majority."""
_NOISE = np.float32(1e-5)
"""Above twice the error of a float32 product of unit vectors, summed in any order a BLAS may choose."""

Opening = Callable[[], contextlib.AbstractContextManager[Source]]


@dataclass(frozen=True, slots=True)
class _Arrays:
    """Parallel arrays, one slot a passage. A view keeps the arrays it was made with.

    They are only written beyond a view's `count`; before a slot below it changes, the last two are copied.
    """

    matrix: NDArray[np.float32]
    rows: NDArray[np.int64]
    passages: NDArray[np.int64]
    namespaces: NDArray[np.int64]
    expires: NDArray[np.int64]
    alive: NDArray[np.bool_]
    count: int = 0


class ExactIndex:
    """All vectors of one encoder in memory, kept in step with the journal, searched in full.

    `follow` brings it to the snapshot of the reader's transaction. Views are immutable: a search goes on
    over the arrays it began with while another thread applies newer changes.
    """

    def __init__(self, dimension: int) -> None:
        self._dimension = dimension
        self._lock = threading.Lock()
        self._reset()

    def _reset(self) -> None:
        self._store: str | None = None
        self._sequence = 0
        self._hash: bytes | None = None
        self._slots: dict[int, tuple[int, int]] = {}
        self._arrays = _empty(_FIRST_CAPACITY, self._dimension)

    @contextlib.contextmanager
    def follow(self, source: Source, deadline: Deadline) -> Iterator[VectorView]:
        """As `VectorIndex.follow`. The transaction begins under the lock: the index is never ahead of it."""
        deadline.check()
        with self._lock:
            try:
                source.begin()
            except EmbeddingMismatch as error:
                view: VectorView = Unusable(error)
            else:
                view = self._brought_to(source)
        yield view

    def _brought_to(self, source: Source) -> ExactView:
        if source.store != self._store or source.hash_at(self._sequence) != self._hash:
            # Another store, another past of this one (a copy was put back), or a journal pruned past us.
            self._load(source)
        elif source.head != self._sequence:
            self._apply(source)
            if self._wasted() > max(_WASTE, self._arrays.count // 2):
                # A process that lives for weeks beside a note that changes every minute must not grow with it.
                self._load(source)
        if source.head != self._sequence or self._store is None:
            self._hash = source.hash_at(source.head)
        self._store, self._sequence = source.store, source.head
        return ExactView(self._arrays, self._slots)

    def _load(self, source: Source) -> None:
        self._reset()
        for block in source.everything():
            self._append(block)

    def _apply(self, source: Source) -> None:
        alive, expires = self._arrays.alive, self._arrays.expires
        fresh: list[int] = []
        changed = source.changed(self._sequence)
        for row, live, ends in zip(changed.rows.tolist(), changed.live.tolist(), changed.expires.tolist(), strict=True):
            if row not in self._slots:
                fresh += [row] if live else []
                continue
            if alive is self._arrays.alive:
                alive, expires = alive.copy(), expires.copy()
            start, stop = self._slots[row]
            alive[start:stop] = live
            expires[start:stop] = ends
        a = self._arrays
        self._arrays = _Arrays(a.matrix, a.rows, a.passages, a.namespaces, expires, alive, a.count)
        # A dict is not a snapshot, but its entries never change: rows are immutable and slots are not reused.
        if fresh:
            self._append(source.passages(np.array(fresh, dtype=np.int64)))

    def _wasted(self) -> int:
        count = self._arrays.count
        return count - int(np.count_nonzero(self._arrays.alive[:count])) if count > _WASTE else 0

    def _append(self, block: Passages) -> None:
        a, new = self._arrays, len(block.rows)
        if not new:
            return
        if a.count + new > len(a.rows):
            a = _grown(a, max(a.count + new, 2 * len(a.rows)))
        stop = a.count + new
        a.matrix[a.count : stop] = block.vectors
        a.rows[a.count : stop] = block.rows
        a.passages[a.count : stop] = block.numbers
        a.namespaces[a.count : stop] = block.namespaces
        a.expires[a.count : stop] = block.expires
        a.alive[a.count : stop] = True
        for slot, row in enumerate(block.rows.tolist(), start=a.count):
            start = self._slots[row][0] if row in self._slots else slot
            self._slots[row] = (start, slot + 1)
        self._arrays = _Arrays(a.matrix, a.rows, a.passages, a.namespaces, a.expires, a.alive, stop)

    def compact(self, source: Opening, *, force: bool) -> dict[str, Any] | None:  # noqa: ARG002 - the port's form
        """As `VectorIndex.compact`: there is nothing to write down."""
        return None

    def rebuild(self, source: Opening, progress: Progress | None = None) -> dict[str, Any]:
        """As `VectorIndex.rebuild`."""
        del progress
        with source() as opened, self._lock:
            self._reset()
            opened.begin()
            return {"generation": 0, "passages": self._brought_to(opened).size(), "dropped": 0, "seconds": 0.0}

    def details(self) -> dict[str, Any]:
        """As `VectorIndex.details`."""
        return {"kind": "memory", "problem": None}

    def close(self) -> None:
        """As `VectorIndex.close`."""
        with self._lock:
            self._reset()


class ExactView:
    """`ExactIndex` as of one snapshot; implements `agora.ports.vector_index.VectorView`."""

    def __init__(self, arrays: _Arrays, slots: dict[int, tuple[int, int]]) -> None:
        self._arrays = arrays
        self._slots = slots

    def size(self) -> int:
        """Number of passages of rows neither superseded nor forgotten."""
        return int(self._arrays.alive[: self._arrays.count].sum())

    def nearest(self, vector: Vector, among: Among, limit: int) -> Candidates:
        """As `VectorView.nearest`: one matrix product, partial selection, float64 for what is returned."""
        a = self._arrays
        allowed = np.flatnonzero(self._allowed(among))
        if not len(allowed) or limit < 1:
            return _none()
        # `vecdot` and not `@`: a threaded BLAS spends fifteen times the processor time on a product of this size.
        if len(allowed) == a.count:
            rough = np.vecdot(a.matrix[: a.count], vector)
        else:
            # Gathering rows beats scanning all below about a third (measured in bench/).
            sparse = len(allowed) < a.count * 0.3
            rough = np.vecdot(a.matrix[allowed], vector) if sparse else np.vecdot(a.matrix[: a.count], vector)[allowed]
        wanted = limit + 16
        while True:
            # An item with many passages takes many places: widen until enough items are in.
            if wanted < len(allowed):
                # All that tie with the last place come along (within float32 noise): slot order differs
                # from process to process, and the answer must not.
                last = np.partition(rough, len(allowed) - wanted)[len(allowed) - wanted]
                best = np.flatnonzero(rough >= last - _NOISE)
            else:
                best = np.arange(len(allowed))
            found = self._best_per_row(vector, allowed[best])
            if len(found.rows) >= limit or len(best) == len(allowed):
                return Candidates(found.rows[:limit], found.scores[:limit], found.passages[:limit])
            wanted *= 4

    def cosines(self, vector: Vector, rows: NDArray[np.int64]) -> Candidates:
        """As `VectorView.cosines`."""
        spans = [self._slots.get(row, (0, 0)) for row in rows.tolist()]
        # A newer view may have added slots that this one does not have.
        spans = [span if span[1] <= self._arrays.count else (0, 0) for span in spans]
        starts, stops = np.array(spans, dtype=np.int64).reshape(-1, 2).T
        lengths = stops - starts
        scores = np.full(len(rows), -1.0, dtype=np.float32)
        passages = np.zeros(len(rows), dtype=np.int64)
        # Slots of all rows, one after the other, and the place of the row that each belongs to.
        ends = np.cumsum(lengths)
        owners = np.repeat(np.arange(len(rows)), lengths)
        slots = np.arange(len(owners)) + np.repeat(starts - (ends - lengths), lengths)
        exact = self._exact(vector, slots)
        best = np.lexsort((-exact, owners))[(ends - lengths)[lengths > 0]]
        scores[owners[best]] = exact[best]
        passages[owners[best]] = self._arrays.passages[slots[best]]
        return Candidates(rows, scores, passages)

    def _allowed(self, among: Among) -> NDArray[np.bool_]:
        a, n = self._arrays, self._arrays.count
        mask = a.alive[:n] & (a.expires[:n] > among.now)
        inside = np.zeros(n, dtype=np.bool_)
        for namespace in among.namespaces:
            inside |= a.namespaces[:n] == namespace
        mask &= inside
        if among.rows is not None:
            mask &= np.isin(a.rows[:n], among.rows)
        return mask

    def _exact(self, vector: Vector, slots: NDArray[np.int64]) -> NDArray[np.float32]:
        product = np.vecdot(self._arrays.matrix[slots].astype(np.float64), vector.astype(np.float64))
        return cast("NDArray[np.float32]", product.astype(np.float32))

    def _best_per_row(self, vector: Vector, slots: NDArray[np.int64]) -> Candidates:
        a = self._arrays
        scores = self._exact(vector, slots)
        # Best score first, ties by row then passage; the first slot of each row is its best passage.
        order = np.lexsort((a.passages[slots], a.rows[slots], -scores))
        ordered = a.rows[slots][order]
        _, first = np.unique(ordered, return_index=True)
        keep = order[np.sort(first)]
        return Candidates(a.rows[slots][keep], scores[keep], a.passages[slots][keep])


def _none() -> Candidates:
    return Candidates(np.empty(0, np.int64), np.empty(0, np.float32), np.empty(0, np.int64))


def _empty(capacity: int, dimension: int) -> _Arrays:
    return _Arrays(
        matrix=np.zeros((capacity, dimension), dtype=np.float32),
        rows=np.zeros(capacity, dtype=np.int64),
        passages=np.zeros(capacity, dtype=np.int64),
        namespaces=np.zeros(capacity, dtype=np.int64),
        expires=np.zeros(capacity, dtype=np.int64),
        alive=np.zeros(capacity, dtype=np.bool_),
    )


def _grown(a: _Arrays, capacity: int) -> _Arrays:
    new = _empty(capacity, a.matrix.shape[1])
    for name in ("matrix", "rows", "passages", "namespaces", "expires", "alive"):
        getattr(new, name)[: a.count] = getattr(a, name)[: a.count]
    return _Arrays(new.matrix, new.rows, new.passages, new.namespaces, new.expires, new.alive, a.count)
