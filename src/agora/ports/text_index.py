from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from agora.ports.vector_index import Among
from agora.text.analysis import Group


@dataclass(frozen=True, slots=True)
class Matches:
    """How each row matches the words of a query; arrays are parallel to `rows`.

    `coverage`: share in [0, 1] of the query's total rarity (inverse item frequency) that the row's words
    cover. `bm25`: Okapi BM25 over the same words. `passages`: number, in its item, of the passage that matches
    best, whose scores these are. `words[i]`: the query words that it contains.
    """

    rows: NDArray[np.int64]
    coverage: NDArray[np.float64]
    bm25: NDArray[np.float64]
    passages: NDArray[np.int64]
    words: tuple[tuple[str, ...], ...]


class TextView(Protocol):
    """A full-text index as of one snapshot of the store."""

    def matching(self, groups: Sequence[Group], among: Among, limit: int) -> Matches:
        """The `limit` rows that match best, best first, ties by row."""
        ...

    def matches(self, groups: Sequence[Group], among: Among, rows: NDArray[np.int64]) -> Matches:
        """How each of `rows` matches, in their order; a row without a match gets zeros."""
        ...
