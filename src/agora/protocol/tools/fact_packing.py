"""Facts within a budget: as many as fit, and of long values as much as there is room for."""

from __future__ import annotations

import json
from bisect import bisect_right
from collections.abc import Sequence
from itertools import accumulate
from typing import Any

Row = dict[str, Any]

BYTES = 4
"""Of one token, as in `agora.text.tokens.cost`."""

_LEAST = 96
"""Bytes of a value below which it is not cut."""

_MARKS = 40
"""Bytes of what says that a value is cut, and of what it costs whole."""


def packed(rows: Sequence[Row], room: int) -> tuple[list[Row], int]:
    """Those of `rows`, in their order, that fit `room` bytes of JSON, and the bytes that they take.

    If not all fit with their whole values, the longest are cut first, all to the same length, so that no long value
    takes the place of other facts. What is cut is a text, `cut` says so and `tokens` what the whole costs.
    """
    sizes = [size(row["value"]) for row in rows]
    frames = [size(row) - value + 1 for row, value in zip(rows, sizes, strict=True)]
    least = accumulate(frame + min(value, _LEAST) for frame, value in zip(frames, sizes, strict=True))
    fit = bisect_right(list(least), room)
    left = room - sum(frames[:fit])
    most = _most(sizes[:fit], left)
    shown = [row if value <= most else cut(row, most) for row, value in zip(rows[:fit], sizes[:fit], strict=True)]
    return shown, sum(size(row) + 1 for row in shown)


def cut(row: Row, most: int) -> Row:
    """`row` with the beginning of its value, which as JSON and marked as cut takes at most `most` bytes."""
    value = row["value"]
    whole = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
    room = most - _MARKS
    # A character takes a byte at least, and most take no more.
    kept = whole[:room]
    while kept and size(f"{kept}…") > room:
        kept = kept[: min(len(kept) - 1, len(kept) * room // size(f"{kept}…"))]
    return row | {"value": f"{kept.rstrip()}…", "cut": True, "tokens": -(-size(value) // BYTES)}


def size(value: object) -> int:
    """Bytes of plain data as JSON."""
    return len(json.dumps(value, ensure_ascii=False, separators=(",", ":")).encode())


def _most(sizes: Sequence[int], room: int) -> int:
    """The greatest length to which values may go if together they have `room`."""
    low, high = _LEAST, max(sizes, default=_LEAST)
    while low < high:
        middle = (low + high + 1) // 2
        if sum(min(each, middle) for each in sizes) <= room:
            low = middle
        else:
            high = middle - 1
    return low
