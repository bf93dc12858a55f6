from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

LABEL = re.compile(r"\[REDACTED:[a-z0-9-]{2,40}\]")
"""What stands in the place of a secret."""


@dataclass(frozen=True, slots=True)
class Found:
    """One secret: `text[start:end]`, and what kind it is of, as in `aws-access-key`."""

    start: int
    end: int
    kind: str


def merged(found: Iterable[Found]) -> list[Found]:
    """`found` in the order of the text; those that overlap become one that covers them all.

    It has the kind of the first that was given: a rule that knows the format comes before one that knows the context.
    """
    ranked = sorted(enumerate(found), key=lambda each: each[1].start)
    kept: list[tuple[int, Found]] = []
    for rank, each in ranked:
        if not kept or each.start >= kept[-1][1].end:
            kept.append((rank, each))
            continue
        first_rank, first = kept[-1]
        kind = first.kind if first_rank < rank else each.kind
        kept[-1] = (min(rank, first_rank), Found(first.start, max(first.end, each.end), kind))
    return [each for _, each in kept]


def outside(found: Sequence[Found], spans: Sequence[tuple[int, int]]) -> list[Found]:
    """Those of `found` that touch none of `spans`, which are in order and apart."""
    starts = [start for start, _ in spans]
    kept = []
    for each in found:
        # The last span that begins before this one ends is the only one that can touch it.
        n = bisect_left(starts, each.end) - 1
        if n < 0 or spans[n][1] <= each.start:
            kept.append(each)
    return kept
