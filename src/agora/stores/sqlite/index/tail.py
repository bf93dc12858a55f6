from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from agora.ports.vector_index import Passages, Rows
from agora.stores.sqlite.index.columns import Columns, code_bytes, signs
from agora.stores.sqlite.index.segment import Loaded

_FIRST_CAPACITY = 256


@dataclass(frozen=True, slots=True)
class Tail:
    """What the journal has beyond the files, in memory, in the order it came; implements `columns.Body`.

    The arrays are shared with older tails, and longer: they are only written beyond the `count` of every tail that
    there is. The dict is shared too. Its entries never change, for rows are immutable and slots are not reused.
    """

    count: int
    room: Columns
    slots: dict[int, tuple[int, int]]

    single = False

    @staticmethod
    def empty(dimension: int) -> Tail:
        """A tail without passages."""
        return Tail(0, _room(_FIRST_CAPACITY, dimension, np.empty(0, dtype=np.int64)), {})

    def columns(self) -> Columns:
        """As `Body.columns`."""
        n, room = self.count, self.room
        return Columns(
            room.rows[:n], room.numbers[:n], room.places[:n], room.namespaces, room.codes[:n], room.matrix[:n]
        )

    def spans(self, rows: Rows) -> tuple[Rows, Rows]:
        """As `Body.spans`."""
        found = [self.slots.get(row, (0, 0)) for row in rows.tolist()] if self.count else []
        # A newer tail may have added slots that this one does not have.
        found = [span if span[1] <= self.count else (0, 0) for span in found] or [(0, 0)] * len(rows)
        starts, stops = np.array(found, dtype=np.int64).reshape(-1, 2).T
        return starts, stops

    def among(self, rows: Rows) -> Rows:
        """As `Body.among`."""
        if not len(rows):
            return np.empty(0, dtype=np.int64)
        held = self.room.rows[: self.count]
        places = np.searchsorted(rows, held)
        return np.flatnonzero(rows[np.minimum(places, len(rows) - 1)] == held)

    def extended(self, blocks: Sequence[Passages]) -> Tail:
        """With more passages behind: all of each row, and none of a row that is here already."""
        blocks = [block for block in blocks if len(block.rows)]
        stop = self.count + sum(len(block.rows) for block in blocks)
        if stop == self.count:
            return self
        room = self.room
        namespaces = np.concatenate([room.namespaces, *(np.unique(block.namespaces) for block in blocks)])
        # In the order in which they came: the places that are written already go on being right.
        _, first = np.unique(namespaces, return_index=True)
        namespaces = namespaces[np.sort(first)]
        if stop > len(room.rows):
            room = _grown(room, self.count, max(stop, 2 * len(room.rows)))
        at = self.count
        for block in blocks:
            end = at + len(block.rows)
            _fill(room, at, end, block, namespaces)
            starts, stops = _runs(block.rows)
            spans = zip((starts + at).tolist(), (stops + at).tolist(), strict=True)
            self.slots.update(zip(block.rows[starts].tolist(), spans, strict=True))
            at = end
        wider = Columns(room.rows, room.numbers, room.places, namespaces, room.codes, room.matrix)
        return Tail(stop, wider, self.slots)

    def without(self, gone: Rows) -> Tail:
        """A new one, in arrays of its own, without the slots `gone`: all of each row that goes."""
        kept = np.delete(np.arange(self.count), gone)
        held, dimension = self.columns(), self.room.matrix.shape[1]
        room = _room(max(_FIRST_CAPACITY, len(kept)), dimension, held.namespaces)
        for name in ("rows", "numbers", "places", "codes", "matrix"):
            getattr(room, name)[: len(kept)] = getattr(held, name)[kept]
        starts, stops = _runs(room.rows[: len(kept)])
        spans = zip(starts.tolist(), stops.tolist(), strict=True)
        return Tail(len(kept), room, dict(zip(room.rows[starts].tolist(), spans, strict=True)))


def loaded(piece: Passages) -> Loaded:
    """Passages, sorted by row and number, as they are held in memory."""
    namespaces = np.unique(piece.namespaces)
    return Loaded(
        Columns(
            piece.rows,
            piece.numbers.astype(np.int32),
            np.searchsorted(namespaces, piece.namespaces).astype(np.uint16),
            namespaces,
            signs(piece.vectors),
            piece.vectors,
        )
    )


def in_pieces(blocks: Iterator[Passages], dimension: int, most: int) -> Iterator[Passages]:
    """The passages of all blocks, which are sorted, in pieces of `most`: smaller only so as not to cut a row."""
    piece, count = _piece(most, dimension), 0
    for block in blocks:
        begin = 0
        while begin < len(block.rows):
            taken = min(len(block.rows) - begin, len(piece.rows) - count)
            _copy(block, begin, begin + taken, piece, count)
            begin, count = begin + taken, count + taken
            if count < len(piece.rows):
                continue
            # The last row may go on: it begins the next piece.
            cut = int(np.searchsorted(piece.rows[:count], piece.rows[count - 1]))
            fresh = _piece(max(most, count - cut + 1) if cut else 2 * count, dimension)
            _copy(piece, cut, count, fresh, 0)
            if cut:
                yield _first(piece, cut)
            piece, count = fresh, count - cut
    if count:
        yield _first(piece, count)


def _piece(most: int, dimension: int) -> Passages:
    rows, numbers, namespaces, expires = np.empty((4, most), dtype=np.int64)
    return Passages(rows, numbers, namespaces, expires, np.empty((most, dimension), dtype=np.float32))


def _copy(source: Passages, start: int, stop: int, target: Passages, at: int) -> None:
    for name in ("rows", "numbers", "namespaces", "expires", "vectors"):
        getattr(target, name)[at : at + stop - start] = getattr(source, name)[start:stop]


def _first(piece: Passages, count: int) -> Passages:
    return Passages(
        piece.rows[:count],
        piece.numbers[:count],
        piece.namespaces[:count],
        piece.expires[:count],
        piece.vectors[:count],
    )


def _room(capacity: int, dimension: int, namespaces: Rows) -> Columns:
    return Columns(
        np.zeros(capacity, dtype=np.int64),
        np.zeros(capacity, dtype=np.int32),
        np.zeros(capacity, dtype=np.uint32),
        namespaces,
        np.zeros((capacity, code_bytes(dimension)), dtype=np.uint8),
        np.zeros((capacity, dimension), dtype=np.float32),
    )


def _grown(room: Columns, count: int, capacity: int) -> Columns:
    wider = _room(capacity, room.matrix.shape[1], room.namespaces)
    for name in ("rows", "numbers", "places", "codes", "matrix"):
        getattr(wider, name)[:count] = getattr(room, name)[:count]
    return wider


def _fill(room: Columns, at: int, end: int, block: Passages, namespaces: Rows) -> None:
    order = np.argsort(namespaces)
    room.rows[at:end] = block.rows
    room.numbers[at:end] = block.numbers
    room.places[at:end] = order[np.searchsorted(namespaces, block.namespaces, sorter=order)]
    room.codes[at:end] = signs(block.vectors)
    room.matrix[at:end] = block.vectors


def _runs(rows: Rows) -> tuple[Rows, Rows]:
    """Where each run of equal rows begins and ends."""
    starts = np.flatnonzero(np.concatenate([np.ones(min(1, len(rows)), dtype=np.bool_), rows[1:] != rows[:-1]]))
    return starts, np.append(starts[1:], len(rows))[: len(starts)].astype(np.int64)
