from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import cast

import numpy as np
from numpy.typing import NDArray

from agora.ports.encoder import Vector
from agora.ports.vector_index import Among, Candidates, Passages, Rows
from agora.stores.chroma.client import Where
from agora.stores.chroma.engine import Asked, Engine, Found

_MORE = 16
"""Passages asked for beyond the rows that are wanted: a row with several takes several places."""

_MOST = 16_384
"""Passages above which a search by hand is as quick as asking Chroma for them."""

_PLAIN = 3
"""Times that Chroma is asked without a filter: with one it first lists every id that the filter lets through."""

_SCANNED = 1000
"""Rows that a search by hand reads at once."""

_NOISE = 1e-5
"""Above the error of a float32 product of unit vectors."""

_NOTHING = Candidates(np.empty(0, np.int64), np.empty(0, np.float32), np.empty(0, np.int64))


class ChromaView:
    """The index as of one snapshot; implements `agora.ports.vector_index.VectorView`.

    Chroma names candidates. Which of them are live, where they belong, when they expire and what they score comes from
    the rows of the snapshot, so that Chroma can miss a row and never invent one.
    """

    def __init__(self, engine: Engine, asked: Asked, few: int) -> None:
        """Up to `few` rows are searched by hand, which is exact and as quick."""
        self._engine = engine
        self._asked = asked
        self._source = asked.source
        self._few = few

    def nearest(self, vector: Vector, among: Among, limit: int) -> Candidates:
        """As `VectorView.nearest`; approximate where more than a few rows are searched."""
        if limit < 1 or not among.namespaces or (among.rows is not None and not len(among.rows)):
            return _NOTHING
        self._engine.require(self._asked)
        if (few := self._small(among)) is not None:
            return _cut(self._scored(vector, few, among), limit)
        for found in self._wider(vector, among, limit + _MORE):
            if found.newer is None:
                break
            candidates = self._candidates(vector, found.rows, found.newer, among)
            # As long as the last candidate ties with a row of the answer, others may tie with it too.
            enough = len(candidates.rows) >= limit and candidates.scores[limit - 1] > found.last + _NOISE
            if found.whole or enough:
                return _cut(candidates, limit)
        return _cut(self._scan(vector, among), limit)

    def cosines(self, vector: Vector, rows: Rows) -> Candidates:
        """As `VectorView.cosines`: from the rows alone."""
        passages = self._source.passages(rows)
        known = _best(vector, passages, np.arange(len(passages.rows)))
        order = np.argsort(known.rows)
        at = np.minimum(np.searchsorted(known.rows, rows, sorter=order), max(0, len(order) - 1))
        scores, numbers = np.full(len(rows), -1.0, np.float32), np.zeros(len(rows), np.int64)
        if len(order):
            there = known.rows[order[at]] == rows
            scores[there], numbers[there] = known.scores[order[at]][there], known.passages[order[at]][there]
        return Candidates(rows, scores, numbers)

    def size(self) -> int:
        """As `VectorView.size`."""
        return self._engine.size(self._asked)

    def _small(self, among: Among) -> Rows | None:
        """The rows to search, if they are few."""
        if among.rows is not None:
            return among.rows if len(among.rows) <= self._few else None
        return self._source.selected(among.namespaces, among.now, self._few)

    def _wider(self, vector: Vector, among: Among, size: int) -> Iterator[Found]:
        """Ever more candidates: first of all passages, then of those that the filter lets through."""
        namespaces, after = {"namespace": {"$in": list(among.namespaces)}}, {"expires": {"$gt": among.now}}
        filters: tuple[Where | None, ...] = (None, {"$and": [namespaces, after]})
        # Rows that a caller names may be too many for a filter.
        for where in filters if among.rows is None else filters[:1]:
            most = _MOST if where else min(_MOST, size * 4 ** (_PLAIN - 1))
            wanted = 0
            while wanted < most:
                wanted = min(most, wanted * 4 or size)
                found = self._engine.search(self._asked, vector, wanted, where)
                if found is None or (where and len(found.rows) < wanted and not found.whole):
                    # Either there are no more, or the graph does not lead to them.
                    return
                yield found

    def _candidates(self, vector: Vector, found: Rows, newer: Rows, among: Among) -> Candidates:
        # What may be newer in Chroma than in the snapshot is looked at by hand, whether Chroma named it or not.
        rows = np.union1d(found, newer)
        return self._scored(vector, rows if among.rows is None else np.intersect1d(rows, among.rows), among)

    def _scored(self, vector: Vector, rows: Rows, among: Among) -> Candidates:
        return _best(vector, *_allowed(self._source.passages(rows), among))

    def _scan(self, vector: Vector, among: Among) -> Candidates:
        """Every row, from the rows' own vectors."""
        found = []
        for passages in self._blocks(among):
            self._asked.deadline.check()
            found.append(_best(vector, *_allowed(passages, among)))
        if not found:
            return _NOTHING
        return _sorted(
            *(np.concatenate(parts) for parts in zip(*((f.rows, f.scores, f.passages) for f in found), strict=True))
        )

    def _blocks(self, among: Among) -> Iterable[Passages]:
        if among.rows is None:
            return self._source.everything()
        starts = range(0, len(among.rows), _SCANNED)
        return (self._source.passages(among.rows[start : start + _SCANNED]) for start in starts)


def _allowed(passages: Passages, among: Among) -> tuple[Passages, NDArray[np.int64]]:
    inside = np.isin(passages.namespaces, among.namespaces) & (passages.expires > among.now)
    return passages, np.flatnonzero(inside)


def _best(vector: Vector, passages: Passages, places: NDArray[np.int64]) -> Candidates:
    """The best passage of each row at these places, best row first."""
    product = np.vecdot(passages.vectors[places].astype(np.float64), vector.astype(np.float64))
    scores = cast("NDArray[np.float32]", product.astype(np.float32))
    return _sorted(passages.rows[places], scores, passages.numbers[places])


def _sorted(rows: Rows, scores: NDArray[np.float32], numbers: Rows) -> Candidates:
    # Best score first, ties by row, then by passage; the first place of each row is its best passage.
    order = np.lexsort((numbers, rows, -scores))
    _, first = np.unique(rows[order], return_index=True)
    keep = order[np.sort(first)]
    return Candidates(rows[keep], scores[keep], numbers[keep])


def _cut(found: Candidates, limit: int) -> Candidates:
    return Candidates(found.rows[:limit], found.scores[:limit], found.passages[:limit])
