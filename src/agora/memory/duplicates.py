from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from agora.model.query import Hit
from agora.text.identity import near_duplicates

_CLOSE = 0.05
"""Two texts this far apart in score cannot be near-copies: spares comparing them word by word."""


def collapse(hits: Sequence[Hit], wanted: int) -> list[Hit]:
    """The first `wanted` hits after near-copies are folded into the best-ranked of them.

    Texts that differ in a number, an id or a negation are never folded (`agora.text.identity.slots`).
    The folded ids stay visible in `similar`.
    """
    kept: list[Hit] = []
    for hit in hits:
        for place, other in enumerate(kept):
            if abs(other.score - hit.score) <= _CLOSE and near_duplicates(other.note.content, hit.note.content):
                kept[place] = replace(other, similar=(*other.similar, hit.note.id))
                break
        else:
            if len(kept) == wanted:
                break
            kept.append(hit)
    return kept
