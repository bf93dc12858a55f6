from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from agora.model.query import Mode
from agora.ports.encoder import Vector
from agora.ports.records import Reading
from agora.ports.text_index import Matches
from agora.ports.vector_index import Among, Candidates
from agora.text.analysis import Group

VERSION = 5
"""Changes whenever the same rows could be ranked otherwise; part of every cache key."""


def candidates(top_k: int) -> int:
    """Rows taken from each index before fusion, for an answer of `top_k`.

    40 gave the same first five as 100 for 99.6 % of 750 questions and the same recall for all; every row more
    is words to be scored (ADR 5).
    """
    return max(40, 2 * top_k + 20)


@dataclass(frozen=True, slots=True)
class Weights:
    """One fixed logistic: score = 1 / (1 + exp(-(bias + cosine*c + coverage*v + squared*v*v + both*c*v))).

    `c` is the best cosine of the note's passages, negative values counted as 0; `v` the share of the
    query's rarity that its words cover. Fitted by `bench/fit_score.py`; ADR 5 has the data and the fit.
    """

    bias: float
    cosine: float = 0.0
    coverage: float = 0.0
    squared: float = 0.0
    both: float = 0.0

    def score(self, cosine: float, coverage: float) -> float:
        """In (0, 1); rises with each of its arguments."""
        c, v = max(0.0, cosine), coverage
        sum_ = self.bias + self.cosine * c + self.coverage * v + self.squared * v * v + self.both * c * v
        return 1 / (1 + math.exp(-sum_))


NATIVE: Mapping[Mode, Weights] = {
    "hybrid": Weights(-3.88, cosine=6.59, squared=3.57),
    "semantic": Weights(-4.55, cosine=8.84),
    "lexical": Weights(-3.38, coverage=7.78),
}
"""For queries in a language that the encoder was trained on: some words in common tell little, all tell much."""

FOREIGN: Mapping[Mode, Weights] = {
    **NATIVE,
    "hybrid": Weights(-3.34, cosine=0.5, coverage=6.47, both=7.52),
}
"""For all other queries: the words decide, and the cosine counts where words agree with it."""


def weights_for(mode: Mode, *, reads: bool) -> Weights:
    """The constants for a query that the encoder `reads`, or does not."""
    return (NATIVE if reads else FOREIGN)[mode]


@dataclass(frozen=True, slots=True)
class Ranked:
    """A row with its score and what the score was made of."""

    row: int
    score: float
    cosine: float
    coverage: float
    bm25: float
    passage: int
    words: tuple[str, ...]


def rank(
    reading: Reading, among: Among, weights: Weights, vector: Vector | None, groups: Sequence[Group], limit: int
) -> list[Ranked]:
    """Every candidate, `limit` from each index, with its score: best first, ties by row.

    The order is a function of the snapshot alone.
    """
    dense = _dense(reading, among, vector, limit)
    lexical = reading.text.matching(groups, among, limit) if groups else None
    rows = np.union1d(dense.rows, lexical.rows if lexical else _NO_ROWS).astype(np.int64)
    if not len(rows):
        return []
    cosines = _complete_dense(reading, dense, vector, rows)
    matches = _complete_lexical(reading, among, lexical, groups, rows)
    ranked = []
    for place, row in enumerate(rows.tolist()):
        cosine = float(cosines.scores[place]) if vector is not None else 0.0
        coverage = float(matches.coverage[place]) if matches else 0.0
        if vector is None and coverage == 0.0:
            continue
        ranked.append(
            Ranked(
                row,
                weights.score(cosine, coverage),
                cosine,
                coverage,
                float(matches.bm25[place]) if matches else 0.0,
                int(matches.passages[place] if matches and vector is None else cosines.passages[place]),
                matches.words[place] if matches else (),
            )
        )
    return sorted(ranked, key=lambda found: (-found.score, found.row))


_NO_ROWS: NDArray[np.int64] = np.empty(0, np.int64)


def _dense(reading: Reading, among: Among, vector: Vector | None, limit: int) -> Candidates:
    if vector is None:
        return Candidates(_NO_ROWS, np.empty(0, np.float32), _NO_ROWS)
    return reading.vectors.nearest(vector, among, limit)


def _complete_dense(reading: Reading, dense: Candidates, vector: Vector | None, rows: NDArray[np.int64]) -> Candidates:
    """Cosines of all of `rows`: those of the dense candidates are known already."""
    scores = np.full(len(rows), -1.0, np.float32)
    passages = np.zeros(len(rows), np.int64)
    if vector is not None:
        at = np.searchsorted(rows, dense.rows)
        scores[at], passages[at] = dense.scores, dense.passages
        missing = np.setdiff1d(np.arange(len(rows)), at)
        rest = reading.vectors.cosines(vector, rows[missing])
        scores[missing], passages[missing] = rest.scores, rest.passages
    return Candidates(rows, scores, passages)


def _complete_lexical(
    reading: Reading,
    among: Among,
    lexical: Matches | None,
    groups: Sequence[Group],
    rows: NDArray[np.int64],
) -> Matches | None:
    """Coverage of all of `rows`: the lexical candidates are known already."""
    if lexical is None:
        return None
    coverage, bm25, passages = np.zeros(len(rows)), np.zeros(len(rows)), np.zeros(len(rows), np.int64)
    words: list[tuple[str, ...]] = [()] * len(rows)
    missing = np.setdiff1d(rows, lexical.rows)
    for part in (lexical, reading.text.matches(groups, among, missing)):
        at = np.searchsorted(rows, part.rows)
        coverage[at], bm25[at], passages[at] = part.coverage, part.bm25, part.passages
        for place, found in zip(at.tolist(), part.words, strict=True):
            words[place] = found
    return Matches(rows, coverage, bm25, passages, tuple(words))
