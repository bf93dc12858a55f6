from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace

from agora.model.caller import rank
from agora.model.note import Note
from agora.model.query import Hit
from agora.text.identity import near_duplicates

_CLOSE = 0.05
"""Two texts this far apart in score cannot be near-copies: spares comparing them word by word."""


def collapse(hits: Iterable[Hit], wanted: int) -> list[Hit]:
    """The first `wanted` hits after near-copies are folded into the best-ranked of them.

    Texts that differ in a number, an id or a negation are never folded (`agora.text.identity.slots`), nor are
    notes with different keys or titles: "enabled" says another thing under each. The folded ids stay visible in
    `similar`. A note of higher origin than the best-ranked is not folded into it, nor are two that contest each other:
    what counts less hides nothing. Takes no more of `hits`, which are best first, than it needs.
    """
    kept: list[Hit] = []
    groups: list[list[Note]] = []
    for hit in hits:
        for place, other in enumerate(kept):
            if other.score - hit.score <= _CLOSE and _belongs(hit.note, groups[place]):
                kept[place] = replace(other, similar=(*other.similar, hit.note.id))
                groups[place].append(hit.note)
                break
        else:
            if len(kept) == wanted:
                break
            kept.append(hit)
            groups.append([hit.note])
    return kept


def _belongs(note: Note, group: Sequence[Note]) -> bool:
    """Whether a note says what the first of a group does, of no higher origin, and fits the key and title of each."""
    if rank(note.origin) < rank(group[0].origin):
        return False
    return near_duplicates(group[0].content, note.content) and all(_fit(note, other) for other in group)


def _fit(one: Note, other: Note) -> bool:
    if one.key is not None and other.key is not None and one.key != other.key:
        return False
    if one.contests == other.id or other.contests == one.id:
        return False
    return not one.title or not other.title or near_duplicates(one.title, other.title)
