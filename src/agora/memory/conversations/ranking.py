"""Which messages of one conversation bear on a question: read, not looked up, so that no index is needed.

The words count by BM25 over the conversation itself, the meaning by the cosine of the vectors; each of a message and of
the message with its neighbours. Both become z-scores, so that no scale has to be known; then come the neighbours, the
stretch of the conversation that a message lies in, its speaker and its day. Weights: `bench/conversations.py`.
"""

from __future__ import annotations

import math
import re
import threading
from collections import Counter, OrderedDict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from agora.memory.conversations.wording import who
from agora.model.message import Message
from agora.ports.encoder import Vector
from agora.text.analysis import Group, analyse
from agora.text.normal import folded

Scores = NDArray[np.float64]

_K1, _B = 1.2, 0.75
"""As usual (Robertson and Zaragoza, 2009)."""

_GAP = timedelta(minutes=30)
"""Between two messages: from here on another stretch of the conversation begins."""

_MONTHS = {
    name: number
    for line in (
        "january february march april may june july august september october november december",
        "gennaio febbraio marzo aprile maggio giugno luglio agosto settembre ottobre novembre dicembre",
        "января февраля марта апреля мая июня июля августа сентября октября ноября декабря",
        "январе феврале марте апреле мае июне июле августе сентябре октябре ноябре декабре",
    )
    for number, name in enumerate(line.split(), start=1)
}
_YEAR = re.compile(r"\b(?:19|20)\d\d\b")
_WORD = re.compile(r"[^\W\d_]+")
_MAY = re.compile(r"\b(?:in|of|on|since|until|by|from|this|last|next|\d{1,2}(?:st|nd|rd|th)?)\s+may\b|\bmay\s+\d")
"""The only month that is a verb too."""


@dataclass(frozen=True, slots=True)
class Weights:
    """What each sign counts for, in standard deviations of the score of words."""

    words: float = 1.0
    words_around: float = 0.75
    meaning: float = 0.8
    meaning_around: float = 0.8
    neighbours: float = 0.3
    stretch: float = 0.3
    speaker: float = 1.0
    day: float = 1.0


WEIGHTS = Weights()


class Terms:
    """The words of messages, analysed once: messages do not change. Thread-safe; the longest unused go first."""

    def __init__(self, most: int = 30_000) -> None:
        self._most = most
        self._known: OrderedDict[str, tuple[Counter[str], int]] = OrderedDict()
        self._lock = threading.Lock()

    def of(self, message: Message) -> tuple[Counter[str], int]:
        """Each term of a message and its speaker with how often it occurs, and how many words it has."""
        with self._lock:
            found = self._known.get(message.id)
            if found is not None:
                self._known.move_to_end(message.id)
                return found
        analysed = analyse(f"{who(message)}: {message.content}")
        found = Counter(analysed.terms), max(1, analysed.length)
        with self._lock:
            self._known[message.id] = found
            if len(self._known) > self._most:
                self._known.popitem(last=False)
        return found


def rank(  # noqa: PLR0913, PLR0917 - all that a score is made of
    messages: Sequence[Message],
    question: str,
    groups: Sequence[Group],
    asked: Vector | None,
    vectors: Mapping[int, Vector],
    terms: Terms,
    weights: Weights = WEIGHTS,
) -> Scores:
    """A score for each message, none of which is comparable with those of another question.

    `asked` is the question's vector, `vectors` those of messages by row. Without them words alone count.
    """
    stretches = _stretches(messages)
    counts, lengths = _counted(messages, groups, terms)
    score = weights.words * _z(_bm25(counts, lengths))
    score += weights.words_around * _z(_bm25(_around(counts, stretches), _around(lengths[:, None], stretches)[:, 0]))
    if asked is not None and vectors:
        cosines = _cosines(messages, asked, vectors)
        score += weights.meaning * _z(cosines)
        score += weights.meaning_around * _z(_around(cosines[:, None], stretches)[:, 0])
    beside = _around(score[:, None], stretches)[:, 0] - score
    best = np.full(int(stretches[-1]) + 1, -np.inf)
    np.maximum.at(best, stretches, score)
    score = score + weights.neighbours * beside + weights.stretch * best[stretches]
    return score + weights.speaker * _spoken(messages, question) + weights.day * _on_day(messages, question)


def _stretches(messages: Sequence[Message]) -> NDArray[np.int64]:
    """The number of the stretch that each message lies in."""
    breaks = [0, *(int(abs(b.at - a.at) > _GAP) for a, b in pairwise(messages))]
    return np.cumsum(np.array(breaks, np.int64))


def _counted(messages: Sequence[Message], groups: Sequence[Group], terms: Terms) -> tuple[Scores, Scores]:
    """How often each message has each word of the question, and how long it is."""
    wanted: dict[str, list[int]] = {}
    for place, group in enumerate(groups):
        for alternative in group.alternatives:
            wanted.setdefault(alternative, []).append(place)
    names = wanted.keys()
    counts, lengths = np.zeros((len(messages), len(groups))), np.ones(len(messages))
    for row, message in enumerate(messages):
        found, lengths[row] = terms.of(message)
        for term in found.keys() & names:
            for place in wanted[term]:
                # Word and stem are terms of the same word: it counts once.
                counts[row, place] = max(counts[row, place], found[term])
    return counts, lengths


def _bm25(counts: Scores, lengths: Scores) -> Scores:
    if not counts.size:
        return np.zeros(len(counts))
    has = (counts > 0).sum(axis=0)
    rarity = np.log1p((len(counts) - has + 0.5) / (has + 0.5))
    saturated = counts * (_K1 + 1) / (counts + _K1 * (1 - _B + _B * lengths / lengths.mean())[:, None])
    found: Scores = saturated @ rarity
    return found


def _around(values: Scores, stretches: NDArray[np.int64]) -> Scores:
    """Each row with the ones right before and after it, within its stretch, added."""
    total = values.copy()
    same = (stretches[1:] == stretches[:-1])[:, None]
    total[1:] += values[:-1] * same
    total[:-1] += values[1:] * same
    return total


def _cosines(messages: Sequence[Message], asked: Vector, vectors: Mapping[int, Vector]) -> Scores:
    """Of a message without a vector the average: it is neither near nor far."""
    have = [place for place, message in enumerate(messages) if message.row in vectors]
    near = np.stack([vectors[messages[place].row] for place in have]) @ asked
    found = np.full(len(messages), float(near.mean()))
    found[have] = near
    return found


def _z(values: Scores) -> Scores:
    spread = float(values.std())
    return (values - values.mean()) / spread if spread > 1e-9 else np.zeros(len(values))


def _spoken(messages: Sequence[Message], question: str) -> Scores:
    """1 for messages of a speaker whom the question names, if it does not name all of them."""
    words = set(_WORD.findall(folded(question)))
    named = {
        speaker
        for speaker in {who(message) for message in messages if message.speaker}
        if words & set(_WORD.findall(folded(speaker)))
    }
    return np.array([float(message.speaker is not None and who(message) in named) for message in messages])


def _on_day(messages: Sequence[Message], question: str) -> Scores:
    """1 for messages of a day, month or year that the question names; half where only one of several agrees."""
    text = folded(question)
    years = {int(year) for year in _YEAR.findall(text)}
    months = {_MONTHS[word] for word in _WORD.findall(text) if word in _MONTHS}
    if 5 in months and "may" in text and not _MAY.search(text):
        months.discard(5)
    asked = bool(years) + bool(months)
    if not asked:
        return np.zeros(len(messages))
    return np.array([((m.at.year in years) + (m.at.month in months)) / asked for m in messages]) ** math.log2(asked + 1)
