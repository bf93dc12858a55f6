"""What a compaction does: which files stay, and which passages are written anew."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np

from agora.ports.vector_index import Rows
from agora.stores.sqlite.index.held import Held
from agora.stores.sqlite.index.layout import MOST
from agora.stores.sqlite.index.segment import Segment
from agora.stores.sqlite.index.view import Part

_FLUSHED = 2048
"""Passages in memory that are worth a file: every process that starts reads them from the rows, 4 microseconds each."""
_LAGGING = 10_000
"""Changes beyond a generation that are worth a new one: every process that starts applies them."""
_FULL = MOST * 9 // 10
"""Passages from which on a segment is not merged with smaller ones."""
_GROWTH = 2
"""A segment is merged with what is written while it is at most so many times as large: each passage is written anew
a number of times that grows with the logarithm of the store."""

NO_ROWS: Rows = np.empty(0, np.int64)


@dataclass(frozen=True, slots=True)
class Chosen:
    """Segments that stay as they are, parts to be written anew, rows to be left out of these."""

    kept: tuple[Part, ...]
    pool: tuple[Part, ...]
    without: Rows = field(default_factory=lambda: NO_ROWS)


def worth(held: Held, dead: float) -> bool:
    """Whether anything is worth doing unasked: much in memory only, many dead, far behind, or damage."""
    lag = 0 if held.generation is None else held.sequence - held.generation.sequence
    return (
        held.problem is not None
        or held.in_memory() >= _FLUSHED
        or lag >= _LAGGING
        or any(_wasteful(part, dead) for part in held.parts if isinstance(part.body, Segment))
    )


def choose(held: Held, dead: float, *, force: bool) -> Chosen | None:
    """What to do now; None for nothing. `force`: whatever makes the files smaller or fewer is done."""
    chosen = _divided(held, lambda part: part.marks.live < part.marks.count if force else _wasteful(part, dead))
    kept, pool = list(chosen.kept), list(chosen.pool)
    small = [part for part in kept if part.body.count < _FULL]
    if force and (pool or len(small) > 1):
        kept, pool = [part for part in kept if part.body.count >= _FULL], small + pool
    if not pool and (held.generation is None or (force and held.generation.sequence == held.sequence)):
        return None
    return Chosen(*_merged(kept, pool))


def choose_without(held: Held, rows: Rows) -> Chosen | None:
    """What to do so that no file holds any of `rows`; None if none does."""
    rows = np.unique(rows)
    found = _divided(held, lambda part: bool(len(part.body.among(rows))))
    if held.problem is None and not any(isinstance(part.body, Segment) for part in found.pool):
        return None
    return Chosen(*_merged(list(found.kept), list(found.pool)), rows)


def _divided(held: Held, anew: Callable[[Part], bool]) -> Chosen:
    """Files that stay and what is written: those that are to be, and always what only memory holds."""
    kept: list[Part] = []
    pool: list[Part] = []
    for part in held.all():
        stays = isinstance(part.body, Segment) and not anew(part)
        (kept if stays else pool).append(part)
    return Chosen(tuple(kept), tuple(part for part in pool if part.body.count))


def _merged(kept: list[Part], pool: list[Part]) -> tuple[tuple[Part, ...], tuple[Part, ...]]:
    size = sum(part.marks.live for part in pool)
    while size and kept and kept[-1].body.count < _FULL and kept[-1].marks.live <= _GROWTH * size:
        part = kept.pop()
        size += part.marks.live
        pool = [part, *pool]
    return tuple(kept), tuple(pool)


def _wasteful(part: Part, dead: float) -> bool:
    gone = part.marks.count - part.marks.live
    return gone > 0 and gone >= dead * part.marks.count
