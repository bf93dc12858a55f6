"""What a word is worth and how a passage scores: the statistics of the searched namespaces, and nothing else."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import accumulate
from typing import NamedTuple

from agora.text.analysis import Group

K1, B = 1.2, 0.75
"""Okapi BM25 with the constants of Robertson and Zaragoza (2009), section 3.5."""

_FUNCTION_WORD = 0.3
"""Weight of a function word: in a store of ten notes "the" may be as rare as a name."""


@dataclass(frozen=True, slots=True)
class Weight:
    """What one word of a query is worth."""

    group: Group
    present: tuple[str, ...]
    """The alternatives that occur in the searched namespaces, the word itself first."""
    needles: tuple[tuple[str, float], ...]
    """Each of `present` framed by blanks, with its worth: a stem is worth what a word as frequent as it is, and no
    more than the forms before it."""
    passages: int
    """How many passages hold it, those with two of its forms counted twice."""
    idf: float
    """Of the most exact form that occurs: what the whole word is worth."""
    tells: bool
    """Whether it makes a passage match by itself: function words only count beside a word that does."""

    @classmethod
    def of(cls, group: Group, counts: Mapping[str, int], total: int) -> Weight:
        """The weight of `group` where `counts` of `total` passages hold each of its terms."""
        present = tuple(term for term in group.alternatives if counts.get(term))
        share = _FUNCTION_WORD if group.common else 1.0
        # A less exact form is never worth more: that the stem of another language is rare here says nothing.
        worths = list(accumulate((share * _idf(counts[term], total) for term in present), min))
        # A word nobody used weighs as much as the rarest: a note that lacks it covers less of the query.
        idf = worths[0] if worths else share * _idf(0, total)
        needles = tuple((f" {term} ", worth) for term, worth in zip(present, worths, strict=True))
        found = sum(counts[term] for term in present)
        return cls(group, present, needles, found, idf, tells=bool(present) and not group.common)


class Scored(NamedTuple):
    """How well a passage matches; greater is better, by coverage first."""

    coverage: float
    bm25: float
    words: tuple[str, ...]


class Scale:
    """Scores passages for one query."""

    def __init__(self, weights: Sequence[Weight], mean: float) -> None:
        """`mean`: words of a passage in the searched namespaces, on average."""
        self.weights = weights
        self._mass = sum(weight.idf for weight in weights) or 1.0
        # What the loop over passages needs of each word, without a look-up for every part of it.
        self._words = [(weight.group.text, weight.tells, weight.needles) for weight in weights]
        # Constant beside every word: how long the passage is against the mean.
        self._base, self._slope = K1 * (1 - B), K1 * B / max(mean, 1.0)

    def score(self, title: str, body: str, length: int, candidates: Iterable[int]) -> Scored:
        """The score of a passage in which at most the words with these numbers, ascending, may occur."""
        # Framed by blanks, a term is found whole by substring search, which is C speed. Each has blanks of its own:
        # two occurrences side by side are two.
        text = f" {title} {body} ".replace(" ", "  ")
        norm = self._base + self._slope * length
        coverage, bm25, words, told = 0.0, 0.0, [], False
        for number in candidates:
            word, tells, needles = self._words[number]
            for needle, worth in needles:
                if count := text.count(needle):
                    words.append(word)
                    told |= tells
                    coverage += worth
                    bm25 += worth * count * (K1 + 1) / (count + norm)
                    break
        return Scored(min(1.0, coverage / self._mass), bm25, tuple(words)) if told else NOTHING


NOTHING = Scored(0.0, 0.0, ())
"""The score of a passage that does not match."""


def weigh(groups: Sequence[Group], counts: Mapping[str, int], total: int) -> list[Weight]:
    """The weight of each word of a query where `counts` of `total` passages hold each term."""
    weights = [Weight.of(group, counts, total) for group in groups]
    if any(weight.tells for weight in weights):
        return weights
    # A query of function words alone: then these are what it asks for.
    return [replace(weight, tells=bool(weight.present)) for weight in weights]


def _idf(passages: int, total: int) -> float:
    return math.log(1 + (max(total, passages) - passages + 0.5) / (passages + 0.5))
