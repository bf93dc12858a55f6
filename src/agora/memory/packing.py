from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

from agora.model.profile import Span
from agora.model.query import Hit
from agora.text.tokens import cost, window

DEFAULT_BUDGET = 4000
"""Tokens of one answer unless the caller says otherwise: a screenful for an agent, not its context."""

_ROW = 60
"""Tokens that a hit costs beside its text: id, title, agent, dates, tags and their names, rounded up."""

_LEAST = 24
"""A cut shorter than this tells nothing; the hit is left out instead."""


def pack(hits: Sequence[Hit], budget: int, span_of: Callable[[Hit], Span]) -> tuple[tuple[Hit, ...], int]:
    """The hits that fit `budget` tokens, best first, and how many do not.

    A text is given whole where it fits its fair share of what is left; else the part around its best
    passage, marked `cut`, with the cost of the whole. What a short text leaves goes to those after it.
    """
    packed: list[Hit] = []
    left = budget
    for place, hit in enumerate(hits):
        row = _ROW + cost(hit.note.title or "") + sum(cost(tag) + 1 for tag in hit.note.tags)
        share = max(_LEAST, left // (len(hits) - place) - row)
        text, cut = hit.note.content, False
        if hit.tokens > share:
            span = span_of(hit)
            text, cut = window(text, span.start, span.stop, share), True
        spent = row + cost(text)
        if spent > left:
            break
        packed.append(replace(hit, content=text, cut=cut))
        left -= spent
    return tuple(packed), len(hits) - len(packed)
