from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import BinaryIO

import numpy as np
from numpy.typing import NDArray

from agora.model.deadline import Deadline
from agora.ports.vector_index import Rows
from agora.stores.sqlite.index.columns import signs
from agora.stores.sqlite.index.folder import SEGMENT, Folder
from agora.stores.sqlite.index.layout import MOST, Layout, Named
from agora.stores.sqlite.index.segment import sum_of
from agora.stores.sqlite.index.view import Part

_BLOCK = 4096
"""Passages whose vectors are in memory at once while a file is written."""

Between = Callable[[int, int], NDArray[np.float32]]


@dataclass(frozen=True, slots=True)
class Order:
    """Passages about to be written: parallel arrays, sorted by row and number; which part and slot each comes from."""

    rows: Rows
    numbers: NDArray[np.int32]
    namespaces: Rows
    expires: Rows
    parts: NDArray[np.int64]
    slots: Rows

    @staticmethod
    def of(parts: Sequence[Part], without: Rows) -> Order:
        """All passages of these parts that are alive and not of the rows `without`."""
        pieces = []
        for place, part in enumerate(parts):
            columns, alive = part.body.columns(), part.marks.alive
            chosen = np.ones(part.body.count, dtype=np.bool_) if alive is None else alive.copy()
            if len(without):
                chosen &= ~np.isin(columns.rows, without)
            slots = np.flatnonzero(chosen)
            namespaces = columns.namespaces[columns.places[slots]]
            ends = part.marks.ends()[slots]
            came = np.full(len(slots), place)
            pieces.append((columns.rows[slots], columns.numbers[slots], namespaces, ends, came, slots))
        if not pieces:
            none = np.empty(0, dtype=np.int64)
            return Order(none, none.astype(np.int32), none, none, none, none)
        rows, numbers, *rest = (np.concatenate(each) for each in zip(*pieces, strict=True))
        order = np.lexsort((numbers, rows))
        namespaces, ends, came, slots = (each[order] for each in rest)
        return Order(rows[order], numbers[order], namespaces, ends, came, slots)

    def between(self, start: int, stop: int) -> Order:
        """A stretch of it."""
        cut = slice(start, stop)
        return Order(
            self.rows[cut],
            self.numbers[cut],
            self.namespaces[cut],
            self.expires[cut],
            self.parts[cut],
            self.slots[cut],
        )

    def pieces(self) -> Iterator[Order]:
        """In stretches that fit a segment each; no row is cut."""
        bounds = np.append(np.flatnonzero(self.rows[1:] != self.rows[:-1]) + 1, len(self.rows))
        begin = 0
        while begin < len(self.rows):
            last = int(np.searchsorted(bounds, begin + MOST, side="right")) - 1
            # A row that alone is more than a segment may hold gets one of its own.
            end = int(bounds[last] if last >= 0 and bounds[last] > begin else bounds[last + 1])
            yield self.between(begin, end)
            begin = end

    def vectors(self, parts: Sequence[Part], dimension: int, start: int, stop: int) -> NDArray[np.float32]:
        """The vectors of a stretch."""
        found = np.empty((stop - start, dimension), dtype=np.float32)
        came, slots = self.parts[start:stop], self.slots[start:stop]
        for place in np.unique(came):
            here = np.flatnonzero(came == place)
            found[here] = parts[place].body.columns().matrix.take(slots[here], axis=0)
        return found


def write_segment(
    folder: Folder, identity: str, dimension: int, order: Order, between: Between, deadline: Deadline
) -> Named:
    """Write one complete file, on the disk when this returns; as SQLite will name it.

    `between` gives the vectors of a stretch of `order`, a few thousand at a time.

    Raises: OSError; DeadlineExceeded, Cancelled. Then nothing is left of the file.
    """
    namespaces = np.unique(order.namespaces)
    layout = Layout(len(order.rows), len(namespaces), dimension)
    name, file = folder.create(SEGMENT)
    try:
        with file:
            _fill(file, layout, identity, order, namespaces)
            _, _, _, _, codes, vectors, size = layout.offsets()
            for start in range(0, layout.count, _BLOCK):
                stop = min(layout.count, start + _BLOCK)
                block = between(start, stop).astype("<f4", copy=False)
                made = signs(block)
                file.seek(codes + start * made.shape[1])
                file.write(made.tobytes())
                file.seek(vectors + start * 4 * dimension)
                file.write(block.tobytes())
                deadline.check()
            file.flush()
            os.fsync(file.fileno())
            # Read back: the sum is of what is in the file, not of what was to be.
            return Named(name, layout.count, size, sum_of(file.fileno(), deadline))
    except BaseException:
        folder.remove({name})
        raise


def _fill(file: BinaryIO, layout: Layout, identity: str, order: Order, namespaces: Rows) -> None:
    file.write(layout.header(identity))
    sections = (
        order.rows.astype("<i8"),
        order.numbers.astype("<i4"),
        np.searchsorted(namespaces, order.namespaces).astype("<u2"),
        namespaces.astype("<i8"),
    )
    for at, section in zip(layout.offsets(), sections, strict=False):
        file.seek(at)
        file.write(section.tobytes())
