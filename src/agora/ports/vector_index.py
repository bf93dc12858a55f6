from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from agora.ports.encoder import Vector


@dataclass(frozen=True, slots=True)
class Among:
    """The rows a search may return: live at `now` (microseconds), in `namespaces`, and in `rows` if given.

    `namespaces` are internal numbers; `rows` is sorted ascending. The filter comes before top-k, never after.
    """

    namespaces: tuple[int, ...]
    now: int
    rows: NDArray[np.int64] | None = None


@dataclass(frozen=True, slots=True)
class Candidates:
    """Rows with a score and the number of the passage that earned it, best first, ties by row."""

    rows: NDArray[np.int64]
    scores: NDArray[np.float32]
    passages: NDArray[np.int64]


class VectorView(Protocol):
    """A vector index as of one snapshot of the store."""

    def nearest(self, vector: Vector, among: Among, limit: int) -> Candidates:
        """The `limit` items with the highest cosine of any of their passages, exact.

        Scores are accumulated in float64 and returned as float32.
        """
        ...

    def cosines(self, vector: Vector, rows: NDArray[np.int64]) -> Candidates:
        """The best cosine of each of `rows`, in their order; rows without vectors get -1 and passage 0."""
        ...

    def size(self) -> int:
        """Number of live passages."""
        ...
