from __future__ import annotations

from collections import deque

import numpy as np

from agora.ports.vector_index import Rows

_MOST = 100_000
"""Rows that are remembered; a snapshot from before them is searched without Chroma."""


class Recent:
    """Which rows were applied lately, so that a collection that moved on still serves older snapshots."""

    def __init__(self, floor: int) -> None:
        """Nothing is known of changes up to the sequence `floor`."""
        self._floor = floor
        self._applied: deque[tuple[int, Rows]] = deque()
        self._held = 0

    def add(self, upto: int, rows: Rows) -> None:
        """These rows may be as of the sequence `upto` from now on; said before they are."""
        self._applied.append((upto, rows))
        self._held += len(rows)
        while self._held > _MOST and len(self._applied) > 1:
            self._floor, dropped = self._applied.popleft()
            self._held -= len(dropped)

    def since(self, sequence: int) -> Rows | None:
        """The rows that may be newer than `sequence`, each once; None if that is not known."""
        if sequence < self._floor:
            return None
        newer = [rows for upto, rows in self._applied if upto > sequence]
        return np.unique(np.concatenate(newer)) if newer else np.empty(0, np.int64)
