"""The word index: which of many short texts have the words of a request, and how much of the request that is."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import accumulate

import numpy as np
from numpy.typing import NDArray

from agora.text.analysis import Group, analyse, analyse_query

Floats = NDArray[np.float32]
Rows = NDArray[np.int64]
Mask = NDArray[np.bool_]

_SATURATION = 1.2
_LENGTH = 0.75
"""k and b of BM25's term weight, tf / (tf + k (1 - b + b length / average)), as they are usual: no other pair that was
tried on MetaTool and BFCL was better on both."""

_GROUPS = 48
"""Words of a request that are looked up."""


@dataclass(frozen=True, slots=True)
class Words:
    """The words of the texts of one backend. `postings`: by term, rows inside the backend and the term's weights."""

    postings: Mapping[str, tuple[Rows, Floats]]
    lengths: Floats


def read(texts: Sequence[Sequence[tuple[str, float]]]) -> Words:
    """The words of each of `texts`, which are fields with the weight of a word in them."""
    found: dict[str, tuple[list[int], list[float]]] = {}
    lengths = np.zeros(len(texts), dtype=np.float32)
    for row, fields in enumerate(texts):
        counts: dict[str, float] = {}
        for text, weight in fields:
            analysed = analyse(text)
            lengths[row] += analysed.length
            for term, times in Counter(analysed.terms).items():
                counts[term] = counts.get(term, 0.0) + weight * times
        for term, total in counts.items():
            rows, weights = found.setdefault(term, ([], []))
            rows.append(row)
            weights.append(total)
    return Words(
        {term: (np.array(rows, np.int64), np.array(weights, np.float32)) for term, (rows, weights) in found.items()},
        lengths,
    )


class WordIndex:
    """The words of many backends; rows are counted through in the order of `parts`. Immutable.

    `exchanged` shares what did not change: a change of one backend costs one copy of the list of terms.
    """

    def __init__(
        self, parts: Mapping[str, Words] | None = None, holders: Mapping[str, tuple[str, ...]] | None = None
    ) -> None:
        self.parts: Mapping[str, Words] = {} if parts is None else parts
        self._holders: Mapping[str, tuple[str, ...]] = {} if holders is None else holders
        sizes = [len(part.lengths) for part in self.parts.values()]
        self.starts = dict(zip(self.parts, accumulate(sizes, initial=0), strict=False))
        self.lengths: Floats = np.concatenate(
            [np.zeros(0, np.float32), *(part.lengths for part in self.parts.values())]
        )
        # Filled as terms are asked for; two threads at once fill in the same.
        self._merged: dict[str, tuple[Rows, Floats]] = {}

    def exchanged(self, name: str, words: Words | None) -> WordIndex:
        """With `words` as those of `name`, at its place or as the last one; without it if there are none."""
        parts = dict(self.parts)
        holders = dict(self._holders)
        before = parts.pop(name, None) if words is None else parts.get(name)
        old = set() if before is None else set(before.postings)
        new = set() if words is None else set(words.postings)
        for term in old - new:
            left = tuple(each for each in holders[term] if each != name)
            if left:
                holders[term] = left
            else:
                del holders[term]
        for term in new - old:
            holders[term] = (*holders.get(term, ()), name)
        if words is not None:
            parts[name] = words
        return WordIndex(parts, holders)

    def coverage(self, texts: Sequence[str], among: Mask) -> Floats:
        """By row and text of `texts`, how much of the text the row's words make up: shape (rows, texts), in [0, 1].

        Words weigh by how few rows of `among` have them, and those that none has do not count. Rows outside `among`
        have 0 everywhere and move no figure of the others. Function words are left out, unless there is nothing else.
        """
        found = np.zeros((len(self.lengths), len(texts)), dtype=np.float32)
        size = int(among.sum())
        if not size:
            return found
        average = max(1.0, float(self.lengths[among].sum(dtype=np.float64)) / size)
        norm = (_SATURATION * (1 - _LENGTH + _LENGTH * self.lengths / average)).astype(np.float32)
        known: dict[str, tuple[float, Rows, Floats]] = {}
        for place, text in enumerate(texts):
            total = 0.0
            for group in _telling(text):
                if group.text not in known:
                    known[group.text] = self._weighed(group, among, size, norm)
                rarity, rows, shares = known[group.text]
                found[rows, place] += np.float32(rarity) * shares
                total += rarity if len(rows) else 0.0
            if total:
                found[:, place] /= np.float32(total)
        return found

    def _weighed(self, group: Group, among: Mask, size: int, norm: Floats) -> tuple[float, Rows, Floats]:
        held = [self._posting(term) for term in group.alternatives if term in self._holders]
        weights = np.zeros(len(self.lengths), dtype=np.float32)
        for rows, given in held:
            weights[rows] = np.maximum(weights[rows], given)
        rows = np.flatnonzero((weights > 0) & among)
        taken = weights[rows]
        return math.log1p((size - len(rows) + 0.5) / (len(rows) + 0.5)), rows, taken / (taken + norm[rows])

    def _posting(self, term: str) -> tuple[Rows, Floats]:
        merged = self._merged.get(term)
        if merged is None:
            held = [(self.starts[name], self.parts[name].postings[term]) for name in self._holders[term]]
            merged = (
                np.concatenate([rows + start for start, (rows, _) in held]),
                np.concatenate([weights for _, (_, weights) in held]),
            )
            self._merged[term] = merged
        return merged


def _telling(text: str) -> Iterable[Group]:
    groups = analyse_query(text, _GROUPS)
    return [group for group in groups if not group.common] or groups
