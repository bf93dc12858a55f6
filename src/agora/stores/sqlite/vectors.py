from __future__ import annotations

import sqlite3
import threading
from dataclasses import dataclass
from typing import cast

import numpy as np
from numpy.typing import NDArray

from agora.errors import EmbeddingMismatch, StoreCorrupt
from agora.ports.encoder import Vector
from agora.ports.vector_index import Among, Candidates
from agora.stores.sqlite.instants import NEVER
from agora.stores.sqlite.migrations import check_version
from agora.stores.sqlite.rows import blocks, places

_CHUNK = 4096
_FIRST_CAPACITY = 256
_WASTE = 512
"""Slots of rows that are gone, from which on it is worth loading anew once they are the majority."""
_NOISE = np.float32(1e-5)
"""Above twice the error of a float32 product of unit vectors, summed in any order a BLAS may choose."""

_LOAD = (
    "SELECT i.id, p.n, i.namespace_id, i.expires_at, v.vector FROM items i"
    " JOIN passages p ON p.item_id = i.id JOIN vectors v ON v.passage_id = p.id AND v.encoder_id = ?"
    " WHERE i.superseded_by IS NULL AND i.forgotten_at IS NULL"
)

_CHANGED = (
    # A cross join keeps this order: the tail is short, and a plan that begins with the items reads all of them.
    "SELECT DISTINCT i.id, i.superseded_by IS NULL AND i.forgotten_at IS NULL, i.expires_at"
    " FROM journal j CROSS JOIN items i ON i.id = j.item_id WHERE j.sequence > ? ORDER BY i.id"
)


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

    `view` brings it to the snapshot of the reader's transaction. Views are immutable: a search goes on
    over the arrays it began with while another thread applies newer changes.
    """

    def __init__(self, dimension: int) -> None:
        self._dimension = dimension
        self._lock = threading.Lock()
        self._reset()

    def _reset(self) -> None:
        self._store: tuple[str, int] | None = None
        self._sequence = 0
        self._hash: bytes | None = None
        self._slots: dict[int, tuple[int, int]] = {}
        self._arrays = _empty(_FIRST_CAPACITY, self._dimension)

    def view(self, connection: sqlite3.Connection, encoder_id: int) -> tuple[int, ExactView]:
        """The journal's head in a new read transaction on `connection`, and the index at that head.

        The transaction begins under the lock, so the index is never ahead of the snapshot it serves.

        Raises: StoreVersion, StoreCorrupt.
        """
        with self._lock:
            connection.execute("BEGIN")
            check_version(connection)
            store, head, known = connection.execute(
                "SELECT (SELECT value FROM meta WHERE key = 'store'),"
                " coalesce((SELECT max(sequence) FROM journal), 0),"
                " (SELECT hash FROM journal WHERE sequence = ?)",
                (self._sequence,),
            ).fetchone()
            if (store, encoder_id) != self._store or known != self._hash:
                # Another store, another past of this one (a copy was put back), or a journal pruned past us.
                self._load(connection, encoder_id)
            elif head != self._sequence:
                self._apply(connection, encoder_id)
                if self._wasted() > max(_WASTE, self._arrays.count // 2):
                    # A process that lives for weeks beside a note that changes every minute must not grow with it.
                    self._load(connection, encoder_id)
            if head != self._sequence or self._store is None:
                self._hash = _hash_at(connection, head)
            self._store, self._sequence = (store, encoder_id), head
            return head, ExactView(self._arrays, self._slots)

    def _load(self, connection: sqlite3.Connection, encoder_id: int) -> None:
        self._reset()
        cursor = connection.execute(_LOAD + " ORDER BY i.id, p.n", (encoder_id,))
        while rows := cursor.fetchmany(_CHUNK):
            self._append(rows)

    def _apply(self, connection: sqlite3.Connection, encoder_id: int) -> None:
        alive, expires = self._arrays.alive, self._arrays.expires
        fresh: list[int] = []
        for row, live, ends in connection.execute(_CHANGED, (self._sequence,)):
            if row not in self._slots:
                fresh += [row] if live else []
                continue
            if alive is self._arrays.alive:
                alive, expires = alive.copy(), expires.copy()
            start, stop = self._slots[row]
            alive[start:stop] = live
            expires[start:stop] = NEVER if ends is None else ends
        added = []
        for block in blocks(fresh):
            added += connection.execute(
                f"{_LOAD} AND i.id IN ({places(block)}) ORDER BY i.id, p.n", (encoder_id, *block)
            ).fetchall()
        a = self._arrays
        self._arrays = _Arrays(a.matrix, a.rows, a.passages, a.namespaces, expires, alive, a.count)
        # A dict is not a snapshot, but its entries never change: rows are immutable and slots are not reused.
        self._append(added)

    def _wasted(self) -> int:
        count = self._arrays.count
        return count - int(np.count_nonzero(self._arrays.alive[:count])) if count > _WASTE else 0

    def _append(self, loaded: list[tuple[int, int, int, int | None, bytes]]) -> None:
        if not loaded:
            return
        a, new = self._arrays, len(loaded)
        if a.count + new > len(a.rows):
            a = _grown(a, max(a.count + new, 2 * len(a.rows)))
        stop = a.count + new
        if any(len(row[4]) != 4 * self._dimension for row in loaded):
            raise StoreCorrupt("a vector in the store has not the length that its encoder makes")
        block = np.frombuffer(b"".join(row[4] for row in loaded), dtype="<f4")
        a.matrix[a.count : stop] = block.reshape(new, self._dimension)
        a.rows[a.count : stop] = [row[0] for row in loaded]
        a.passages[a.count : stop] = [row[1] for row in loaded]
        a.namespaces[a.count : stop] = [row[2] for row in loaded]
        a.expires[a.count : stop] = [NEVER if row[3] is None else row[3] for row in loaded]
        a.alive[a.count : stop] = True
        for slot, row in enumerate(loaded, start=a.count):
            start = self._slots[row[0]][0] if row[0] in self._slots else slot
            self._slots[row[0]] = (start, slot + 1)
        self._arrays = _Arrays(a.matrix, a.rows, a.passages, a.namespaces, a.expires, a.alive, stop)


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


class Mismatched:
    """Stands in for the index of a store that another model built: every use says so."""

    def __init__(self, error: EmbeddingMismatch) -> None:
        self._error = error

    def size(self) -> int:
        """Nothing can be searched."""
        return 0

    def nearest(self, vector: Vector, among: Among, limit: int) -> Candidates:  # noqa: ARG002 - the port's form
        """Raises: EmbeddingMismatch, always."""
        raise self._error

    def cosines(self, vector: Vector, rows: NDArray[np.int64]) -> Candidates:  # noqa: ARG002 - the port's form
        """Raises: EmbeddingMismatch, always."""
        raise self._error


def _hash_at(connection: sqlite3.Connection, sequence: int) -> bytes | None:
    found = connection.execute("SELECT hash FROM journal WHERE sequence = ?", (sequence,)).fetchone()
    return None if found is None else bytes(found[0])


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
