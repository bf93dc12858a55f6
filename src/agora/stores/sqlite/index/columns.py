"""What is held of passages: parallel arrays, one slot a passage, and how slots are found in them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol, cast

import numpy as np
from numpy.typing import NDArray

from agora.ports.vector_index import Rows

Mask = NDArray[np.bool_]

_FEW = 8
"""Namespaces up to which one comparison each is faster than a table."""
_SPARSE = 16
"""Rows asked for: one in so many, below which each is looked up by bisection."""
_DENSE = 8
"""Room in a table of rows for each slot: beyond it, bisection does with less memory."""


@dataclass(frozen=True, slots=True)
class Columns:
    """Parallel arrays, one slot a passage; `namespaces` lists those that occur, `places` says which of them each has.

    `codes` is (n, bytes) with one bit a dimension, set where the vector is positive; `matrix` is (n, dimension).
    """

    rows: Rows
    numbers: NDArray[np.int32]
    places: NDArray[np.uint16] | NDArray[np.uint32]
    namespaces: Rows
    codes: NDArray[np.uint8]
    matrix: NDArray[np.float32]

    def within(self, namespaces: tuple[int, ...], slots: Rows | None) -> Mask | bool:
        """Which of `slots` (None: of all) are in one of `namespaces`; True or False where that holds for all."""
        wanted: Mask = np.isin(self.namespaces, np.array(namespaces, dtype=np.int64))
        chosen = np.flatnonzero(wanted)
        if len(chosen) == len(self.namespaces):
            return True
        if not len(chosen):
            return False
        places = self.places if slots is None else self.places[slots]
        if len(chosen) > _FEW:
            listed: Mask = wanted[places]
            return listed
        inside: Mask = places == chosen[0]
        for place in chosen[1:]:
            inside |= places == place
        return inside


class Body(Protocol):
    """Where passages are: a file, or memory. Immutable; all passages of a row are in one body, side by side."""

    @property
    def count(self) -> int:
        """Number of slots."""
        ...

    @property
    def single(self) -> bool:
        """Whether every row has one passage here."""
        ...

    def columns(self) -> Columns:
        """The arrays. They may be let go as soon as nobody refers to them: ask again, keep nothing."""
        ...

    def spans(self, rows: Rows) -> tuple[Rows, Rows]:
        """First slot and the one after the last of each of `rows`, in their order; equal for a row that is not here."""
        ...

    def among(self, rows: Rows) -> Rows:
        """The slots of all of `rows`, which are sorted; ascending."""
        ...


def spans(rows: Rows, wanted: Rows) -> tuple[Rows, Rows]:
    """As `Body.spans`, where `rows` (one a slot) is sorted."""
    starts = np.searchsorted(rows, wanted, side="left")
    stops = np.searchsorted(rows, wanted, side="right")
    return starts.astype(np.int64, copy=False), stops.astype(np.int64, copy=False)


def among(rows: Rows, wanted: Rows, *, single: bool) -> Rows:
    """As `Body.among`, where `rows` (one a slot) and `wanted` are sorted: by bisection, or through a table."""
    none = np.empty(0, dtype=np.int64)
    if not len(rows):
        return none
    low, high = int(rows[0]), int(rows[-1])
    wanted = wanted[np.searchsorted(wanted, low) : np.searchsorted(wanted, high, side="right")]
    if not len(wanted):
        return none
    if len(wanted) * _SPARSE < len(rows) or high - low > _DENSE * len(rows):
        starts = np.searchsorted(rows, wanted, side="left").astype(np.int64, copy=False)
        if single:
            return cast("Rows", starts[rows[starts] == wanted])
        stops = np.searchsorted(rows, wanted, side="right").astype(np.int64, copy=False)
        return expanded(starts, stops)
    table = np.zeros(high - low + 1, dtype=np.bool_)
    table[wanted - low] = True
    return np.flatnonzero(table[rows - low])


def expanded(starts: Rows, stops: Rows) -> Rows:
    """Every slot of the given spans, one span after the other."""
    lengths = stops - starts
    ends = np.cumsum(lengths)
    return cast("Rows", np.arange(ends[-1] if len(ends) else 0) + np.repeat(starts - (ends - lengths), lengths))


def code_bytes(dimension: int) -> int:
    """Length of a code: one bit a dimension, filled up to a multiple of 64."""
    return (dimension + 63) // 64 * 8


def signs(matrix: NDArray[np.float32]) -> NDArray[np.uint8]:
    """The codes of vectors: (n, bytes) for (n, dimension)."""
    codes = np.zeros((len(matrix), code_bytes(matrix.shape[1])), dtype=np.uint8)
    packed = np.packbits(matrix > 0, axis=1)
    codes[:, : packed.shape[1]] = packed
    return codes
