from __future__ import annotations

import sqlite3
import threading
from dataclasses import dataclass
from typing import cast

import numpy as np
from numpy.typing import NDArray

from agora.errors import EmbeddingMismatch
from agora.ports.encoder import Vector
from agora.ports.vector_index import Among, Candidates
from agora.stores.sqlite.instants import NEVER

_CHUNK = 4096
_FIRST_CAPACITY = 256
_NOISE = np.float32(1e-6)

_LOAD = (
    "SELECT i.id, p.n, i.namespace_id, i.expires_at, v.vector FROM items i"
    " JOIN passages p ON p.item_id = i.id JOIN vectors v ON v.passage_id = p.id AND v.encoder_id = ?"
    " WHERE i.superseded_by IS NULL AND i.forgotten_at IS NULL"
)


@dataclass(frozen=True, slots=True)
class _Arrays:
    """Parallel arrays, one slot a passage. A view keeps the arrays it was made with.

    The first four only ever grow beyond a view's `count`; the last two are copied before a change.
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
        self._slots: dict[int, tuple[int, int]] = {}
        self._arrays = _empty(_FIRST_CAPACITY, self._dimension)

    def view(self, connection: sqlite3.Connection, encoder_id: int) -> tuple[int, ExactView]:
        """The journal's head in a new read transaction on `connection`, and the index at that head.

        The transaction begins under the lock, so the index is never ahead of the snapshot it serves.
        """
        with self._lock:
            connection.execute("BEGIN")
            store, head, first = connection.execute(
                "SELECT (SELECT value FROM meta WHERE key = 'store'),"
                " coalesce((SELECT max(sequence) FROM journal), 0),"
                " coalesce((SELECT min(sequence) FROM journal), 0)"
            ).fetchone()
            if (store, encoder_id) != self._store or head < self._sequence or first > self._sequence + 1:
                # Another store, or a journal that was pruned past us: it cannot be applied, load anew.
                self._load(connection, encoder_id)
            elif head != self._sequence:
                self._apply(connection, encoder_id)
            self._store, self._sequence = (store, encoder_id), head
            return head, ExactView(self._arrays, self._slots)

    def _load(self, connection: sqlite3.Connection, encoder_id: int) -> None:
        self._reset()
        cursor = connection.execute(_LOAD + " ORDER BY i.id, p.n", (encoder_id,))
        while rows := cursor.fetchmany(_CHUNK):
            self._append(rows)

    def _apply(self, connection: sqlite3.Connection, encoder_id: int) -> None:
        touched = [
            row[0]
            for row in connection.execute(
                "SELECT DISTINCT item_id FROM journal WHERE sequence > ? ORDER BY item_id", (self._sequence,)
            )
        ]
        alive, expires = self._arrays.alive.copy(), self._arrays.expires.copy()
        added = []
        for row in touched:
            state = connection.execute(
                "SELECT superseded_by IS NULL AND forgotten_at IS NULL, expires_at FROM items WHERE id = ?",
                (row,),
            ).fetchone()
            live = bool(state and state[0])
            if row in self._slots:
                start, stop = self._slots[row]
                alive[start:stop] = live
                expires[start:stop] = NEVER if not state or state[1] is None else state[1]
            elif live:
                added += connection.execute(_LOAD + " AND i.id = ? ORDER BY p.n", (encoder_id, row)).fetchall()
        a = self._arrays
        self._arrays = _Arrays(a.matrix, a.rows, a.passages, a.namespaces, expires, alive, a.count)
        # A dict is not a snapshot, but its entries never change: rows are immutable and slots are not reused.
        self._append(added)

    def _append(self, loaded: list[tuple[int, int, int, int | None, bytes]]) -> None:
        if not loaded:
            return
        a, new = self._arrays, len(loaded)
        if a.count + new > len(a.rows):
            a = _grown(a, max(a.count + new, 2 * len(a.rows)))
        stop = a.count + new
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
        if len(allowed) == a.count:
            rough = a.matrix[: a.count] @ vector
        else:
            # Gathering rows beats scanning all below about a third (measured in bench/).
            sparse = len(allowed) < a.count * 0.3
            rough = a.matrix[allowed] @ vector if sparse else (a.matrix[: a.count] @ vector)[allowed]
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
        spans = [self._slots.get(int(row), (0, 0)) for row in rows]
        # A newer view may have added slots that this one does not have.
        spans = [span if span[1] <= self._arrays.count else (0, 0) for span in spans]
        scores = np.full(len(rows), -1.0, dtype=np.float32)
        passages = np.zeros(len(rows), dtype=np.int64)
        slots = np.concatenate([np.arange(*span) for span in spans]) if spans else np.empty(0, np.int64)
        if len(slots):
            exact = self._exact(vector, slots.astype(np.int64))
            at = 0
            for place, (start, stop) in enumerate(spans):
                if stop > start:
                    piece = exact[at : at + stop - start]
                    best = int(piece.argmax())
                    scores[place] = piece[best]
                    passages[place] = self._arrays.passages[start + best]
                    at += stop - start
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
        product = self._arrays.matrix[slots].astype(np.float64) @ vector.astype(np.float64)
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
