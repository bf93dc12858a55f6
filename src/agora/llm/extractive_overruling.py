"""Which pieces no longer hold: repeated, overruled by a newer one about the same, or open points that were closed."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterator, Sequence

from agora.llm import extractive_cues as cues
from agora.llm.extractive_pieces import Source
from agora.llm.extractive_weighing import Candidate

SAME = 0.66
"""Share of common words from which two pieces are about the same, their values aside."""

SAME_IF_SAID = 0.5
"""The same where the newer one says that it is a change, or both are decisions."""

CLOSING = 0.5
"""Share of an open point's words that a piece has which closes it."""

MOST_VALUES = 3
"""A piece with more values is a list or a table and overrules nothing."""

STATED = re.compile(
    r"(?:(?<!\w)(?:is|are|was|equals|è|sono|era|это|равен|равно|составляет)\b|[=:])\s+(?:\w+\s+){0,3}?[$€£₽~≈]?\d",
    re.IGNORECASE,
)
"""A number that is said of what stands before it; of "Team 1 is in Oslo" the number says which team."""

_FEW = 40
"""Pieces that share a word and are compared: a word that more of them have tells nothing of what they are about."""

_RANK = {"user": 2, "assistant": 2, "system": 1, "tool": 0}
_VALUES = {"number", "file", "date"}
_FILLERS_WORDS = """
    use using used will shall set now change decide agreed agree chose choose chosen settle switch move moved going
    final instead update correc rename raised lower increa decrea actual value deciso decisi uso usare useremo userò
    scelto adesso ora invece cambia sposta correz решили решил решен будем исполь теперь вместо выбрал выбрали
    измени перене новый новая новое todo need still rather replac"""
_FILLERS = frozenset(_FILLERS_WORDS.split())


def standing(found: Sequence[Candidate], sources: Sequence[Source]) -> list[Candidate]:
    """The pieces that still hold, in their order."""
    ordered = sorted(found, key=lambda one: one.order)
    ranks = [_RANK[sources[one.source].role] for one in ordered]
    kept: dict[str, int] = {}
    for n, one in enumerate(ordered):
        if ranks[n] >= ranks[kept.get(one.text, n)]:
            kept[one.text] = n
    gone = {n for n, one in enumerate(ordered) if kept[one.text] != n}
    keys = [_subject(one) for one in ordered]
    for older, newer in _pairs(keys):
        if older in gone or newer in gone or ordered[older].source == ordered[newer].source:
            continue
        one, other = ordered[older], ordered[newer]
        if (
            ranks[older] <= ranks[newer]
            and not other.text.endswith(("?", "？"))
            and _overrules(one, other, keys[older], keys[newer])
        ):
            gone.add(older)
    return [one for n, one in enumerate(ordered) if n not in gone]


def _subject(one: Candidate) -> frozenset[str]:
    """The words that say what a piece is about, values and words of deciding aside."""
    return frozenset(word for kind, word in one.bag if kind in {"word", "name"} and word not in _FILLERS)


def _pairs(keys: Sequence[frozenset[str]]) -> Iterator[tuple[int, int]]:
    having: defaultdict[str, list[int]] = defaultdict(list)
    for n, words in enumerate(keys):
        near: set[int] = set()
        for word in words:
            near.update(having[word][-_FEW:])
        for older in sorted(near):
            yield older, n
        for word in words:
            having[word].append(n)


def _overrules(older: Candidate, newer: Candidate, before: frozenset[str], after: frozenset[str]) -> bool:
    common = len(before & after)
    if older.section == "open":
        return (
            newer.section != "open"
            and common >= max(2, CLOSING * len(before))
            and cues.CLOSED.search(newer.text.lower()) is not None
        )
    if newer.section == "open" or older.seq == newer.seq or common < SAME_IF_SAID * min(len(before), len(after)):
        return False
    changed = cues.CHANGE.search(newer.text.lower()) is not None
    told = changed or older.section == newer.section == "decisions"
    left, right = _values(older), _values(newer)
    if left and right:
        # "Node 1 has 8 doors" and "node 2 has 9" are of two things: where several values differ, one may say of which.
        if left == right or common / len(before | after) < (SAME_IF_SAID if told else SAME):
            return False
        if told:
            return max(len(left), len(right)) <= MOST_VALUES and max(len(left - right), len(right - left)) <= 1
        return len(left) == len(right) == 1 < common and bool(STATED.search(older.text) and STATED.search(newer.text))
    # "Redis for the cache", then "Memcached for the cache instead": one word in place of another.
    return (
        changed
        and told
        and not left
        and not right
        and len(before - after) <= 1 <= common
        and len(after - before) <= 2
        and len(before) > 1
    )


def _values(one: Candidate) -> frozenset[str]:
    return frozenset(word for kind, word in one.bag if kind in _VALUES)
