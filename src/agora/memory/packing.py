from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from agora.memory.suspects import suspicions
from agora.model.profile import Span
from agora.model.query import Hit
from agora.text.tokens import window

DEFAULT_BUDGET = 4000
"""Tokens of one answer unless the caller says otherwise: a screenful for an agent, not its context."""

_NAMES = 260
"""Bytes of the names, numbers and punctuation that every hit is answered with."""

_OPTIONAL = 32
"""Bytes of a name and its punctuation that a hit has only with a value; of an instant, a number or an id too."""

_BYTES_PER_TOKEN = 4
"""As in `agora.text.tokens.cost`."""

SAVERS_SHOWN = 5
"""Other savers that a hit names. A note that hundreds saved must still fit an answer; reading it by id names more."""

CONTESTING_SHOWN = 5
"""Notes that a hit is contested by, as it names them."""

METADATA_SHOWN = 400
"""Bytes of the metadata, or of a fact's value, that a hit carries; what is larger comes with reading it by id."""

_LEAST = 24
"""A cut shorter than this tells nothing beside others; the hit is left out instead."""


def pack(hits: Sequence[Hit], budget: int, span_of: Callable[[Hit], Span]) -> tuple[tuple[Hit, ...], int]:
    """The hits that fit `budget` tokens, best first, and how many do not.

    What fits is the hits as JSON, with title, provenance, tags and metadata, escapes included. A text is given
    whole where it fits its fair share of what is left; else the part around its best passage, marked `cut`, with
    the cost of the whole. What a short text leaves goes to those after it.
    """
    packed: list[Hit] = []
    left = budget
    for place, hit in enumerate(hits):
        row = row_cost(hit)
        room = min(left - row, max(_LEAST, left // (len(hits) - place) - row))
        whole = _written(hit.note.content)
        # The best hit is given however little of it fits: it says that there is something, and where.
        if room < min(whole, _LEAST if packed else 1):
            break
        text = hit.note.content if whole <= room else _part(hit, room, span_of(hit))
        packed.append(replace(hit, content=text, cut=whole > room))
        left -= row + _written(text)
    return tuple(packed), len(hits) - len(packed)


def row_cost(hit: Hit) -> int:
    """Tokens that a hit costs beside its text, never less than it will."""
    note = hit.note
    first, *others = note.savers
    always = (note.id, note.type, note.namespace, note.kind, first.agent, first.session, first.client, first.origin)
    size = _NAMES + sum(_quoted(text) for text in (*always, *note.tags))
    size += sum(_OPTIONAL + _quoted(text) for text in (note.title, note.key) if text)
    rare = (note.occurred_at, note.expires_at, note.confidence, note.supersedes, note.superseded_by)
    size += 2 * _OPTIONAL * sum(value is not None for value in (note.contests, note.pinned_at))
    size += 2 * _OPTIONAL * (1 + len(note.contested_by[:CONTESTING_SHOWN])) if note.contested_by else 0
    size += 2 * _OPTIONAL * sum(value is not None for value in rare)
    if note.fact is not None:
        value = value_size(note.fact.value)
        size += 4 * _OPTIONAL + _quoted(note.fact.subject) + _quoted(note.fact.key)
        size += _OPTIONAL + (value if value <= METADATA_SHOWN else 0)
    if note.metadata:
        fields = metadata_size(note.metadata)
        size += _OPTIONAL + (fields if fields <= METADATA_SHOWN else 0)
    if len(others) > SAVERS_SHOWN:
        size += _OPTIONAL
    for other in others[:SAVERS_SHOWN]:
        size += 4 * _OPTIONAL + _quoted(other.agent) + _quoted(other.session)
        if other.tags:
            size += _OPTIONAL + sum(_quoted(tag) for tag in other.tags)
    size += 2 * _OPTIONAL * len(hit.similar)
    if found := suspicions(note):
        size += _OPTIONAL + sum(map(_quoted, found))
    return -(-size // _BYTES_PER_TOKEN)


def value_size(value: Any) -> int:  # noqa: ANN401 - JSON
    """Bytes of a fact's value as JSON."""
    return len(json.dumps(value, ensure_ascii=False).encode())


def metadata_size(metadata: Mapping[str, Any]) -> int:
    """Bytes of a note's metadata as JSON."""
    return len(json.dumps(dict(metadata), ensure_ascii=False).encode())


def _part(hit: Hit, room: int, span: Span) -> str:
    """As much of the text around `span` as costs at most `room` tokens once it is written as JSON."""
    tokens = room
    while tokens > 0:
        text = window(hit.note.content, span.start, span.stop, tokens)
        size = _written(text)
        if size <= room:
            return text
        # Escapes are spread unevenly, so the part that was tried tells how far to go.
        tokens = min(tokens - 1, tokens * room // size)
    return ""


def _written(text: str) -> int:
    """Tokens of a text inside JSON, whose quotes the row counts."""
    return -(-(_quoted(text) - 3) // _BYTES_PER_TOKEN)


def _quoted(text: str) -> int:
    """Bytes of a text as JSON with its quotes and a comma."""
    return len(json.dumps(text, ensure_ascii=False).encode()) + 1
