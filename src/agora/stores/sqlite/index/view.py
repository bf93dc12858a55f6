from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from agora.errors import StoreCorrupt
from agora.ports.encoder import Vector
from agora.ports.vector_index import Among, Candidates, Rows
from agora.stores.sqlite.index.columns import Body, expanded, signs
from agora.stores.sqlite.index.marks import Marks
from agora.stores.sqlite.kernels import Kernel, nearest_of

EXACT_BELOW = 20_000
"""Passages of a store below which all that may be returned are compared in full: it takes no longer there."""
_WIDTH = 1000
_PER_ROW = 50
_SHARE = 125
_WIDER = 2500
_LARGE = 45_000
"""Candidates that are compared in full: `_WIDTH`, `_PER_ROW` for each row asked for, or one in `_SHARE` of the passages
that may be returned, whichever is most; `_WIDER` where fewer than `_LARGE` may be, for among few the nearest may be
far, and far ones are not told apart by bits. On 20,000 to 49,000 English sentences and their 384 dimensions recall@10
is .997, recall of 40 rows .993, of 100 rows .99; on a million made-up vectors recall@10 is .999 (docs/adr/0011)."""
_SPARE = 16
_NOISE = np.float32(1e-5)
"""Above twice the error of a float32 product of unit vectors, summed in any order a BLAS may choose."""
_SPARSE = 0.2
_SPARSE_CODES = 0.7
"""Shares of the slots below which gathering their vectors, and their codes, beats reading all (docs/adr/0011)."""

Floats = NDArray[np.float32]


@dataclass(frozen=True, slots=True)
class Part:
    """Passages and their marks: a piece of an index as of one snapshot."""

    body: Body
    marks: Marks


class IndexView:
    """The index as of one snapshot; implements `agora.ports.vector_index.VectorView`. Immutable."""

    def __init__(self, parts: Sequence[Part], kernel: Kernel, exact_below: int) -> None:
        self._parts = tuple(part for part in parts if part.marks.live)
        self._kernel = kernel
        self._live = sum(part.marks.live for part in self._parts)
        self._exact_below = exact_below

    def size(self) -> int:
        """Number of passages of rows neither superseded nor forgotten."""
        return self._live

    def nearest(self, vector: Vector, among: Among, limit: int) -> Candidates:
        """As `VectorView.nearest`. Raises: StoreCorrupt for vectors that are no numbers.

        The rows that are found depend on the snapshot alone, not on how the passages lie in files and memory: all
        that tie with the last candidate are candidates too.
        """
        reach = _Reach(self._parts, among)
        if not reach.total or limit < 1:
            return _NOTHING
        least = _WIDTH if reach.total >= _LARGE else _WIDER
        width = max(least, _PER_ROW * limit, reach.total // _SHARE)
        if self._live < self._exact_below or reach.total <= width:
            return reach.best(vector, None, limit)
        distances = reach.distances(self._kernel, signs(vector[np.newaxis])[0])
        while width < reach.total:
            found = reach.best(vector, nearest_of(distances, width), limit)
            if len(found.rows) >= limit:
                return self._completed(vector, found)
            # A row with many passages takes many places: widen until enough rows are in.
            width *= 4
        return reach.best(vector, None, limit)

    def cosines(self, vector: Vector, rows: Rows) -> Candidates:
        """As `VectorView.cosines`. Raises: as `nearest`."""
        return self._cosines(vector, rows, self._parts)

    def _cosines(self, vector: Vector, rows: Rows, parts: Sequence[Part]) -> Candidates:
        scores = np.full(len(rows), -1.0, dtype=np.float32)
        passages = np.zeros(len(rows), dtype=np.int64)
        for part in parts:
            starts, stops = part.body.spans(rows)
            here = np.flatnonzero(stops > starts)
            if part.marks.alive is not None:
                here = here[part.marks.alive[starts[here]]]
            if len(here):
                scores[here], passages[here] = _best_of_spans(part.body, vector, starts[here], stops[here])
        return Candidates(rows, scores, passages)

    def _completed(self, vector: Vector, found: Candidates) -> Candidates:
        """With the score of each row's best passage, which need not be among the candidates."""
        many = [part for part in self._parts if not part.body.single]
        if not many:
            return found
        whole = self._cosines(vector, found.rows, many)
        better = whole.scores > found.scores
        scores = np.where(better, whole.scores, found.scores)
        passages = np.where(better | (whole.scores == found.scores), whole.passages, found.passages)
        order = np.lexsort((found.rows, -scores))
        return Candidates(found.rows[order], scores[order], passages[order])


class _Reach:
    """The slots that a search may return, one after the other over all parts: a place is a number in that order."""

    def __init__(self, parts: Sequence[Part], among: Among) -> None:
        chosen = [(part.body, _allowed(part, among)) for part in parts]
        self._pieces = [(body, slots) for body, slots in chosen if slots is None or len(slots)]
        sizes = [body.count if slots is None else len(slots) for body, slots in self._pieces]
        self._ends = np.cumsum(sizes, dtype=np.int64)
        self.total = int(self._ends[-1]) if sizes else 0

    def distances(self, kernel: Kernel, code: NDArray[np.uint8]) -> NDArray[np.uint16]:
        """How many bits of the code of each place differ from `code`."""
        found = []
        for body, slots in self._pieces:
            codes = body.columns().codes
            if slots is not None and len(slots) < _SPARSE_CODES * body.count:
                found.append(kernel.distances(codes.take(slots, axis=0), code))
            else:
                whole = kernel.distances(codes, code)
                found.append(whole if slots is None else whole[slots])
        return found[0] if len(found) == 1 else np.concatenate(found)

    def best(self, vector: Vector, places: Rows | None, limit: int) -> Candidates:
        """The `limit` best rows by the passages at `places`, which ascend (None: by all), or all there are."""
        rough = self._rough(vector, places)
        wanted = limit + _SPARE
        while True:
            if wanted < len(rough):
                # All that tie with the last place come along (within float32 noise): slot order differs
                # from process to process, and the answer must not.
                last = np.partition(rough, len(rough) - wanted)[len(rough) - wanted]
                if not np.isfinite(last):
                    raise _no_numbers()
                chosen = np.flatnonzero(rough >= last - _NOISE)
            else:
                chosen = np.arange(len(rough))
            found = self._exact(vector, chosen if places is None else places[chosen])
            if len(found.rows) >= limit or len(chosen) == len(rough):
                return Candidates(found.rows[:limit], found.scores[:limit], found.passages[:limit])
            wanted *= 4

    def _rough(self, vector: Vector, places: Rows | None) -> Floats:
        if places is not None:
            found = [
                np.vecdot(body.columns().matrix.take(slots, axis=0), vector) for body, slots in self._slots(places)
            ]
            return np.concatenate(found)
        found = []
        for body, slots in self._pieces:
            matrix = body.columns().matrix
            # `vecdot` and not `@`: a threaded BLAS spends fifteen times the processor time on a product of this size.
            if slots is None or len(slots) >= _SPARSE * body.count:
                whole = np.vecdot(matrix, vector)
                found.append(whole if slots is None else whole[slots])
            else:
                found.append(np.vecdot(matrix.take(slots, axis=0), vector))
        return found[0] if len(found) == 1 else np.concatenate(found)

    def _exact(self, vector: Vector, places: Rows) -> Candidates:
        """The rows at `places` with their best passage there: best first, ties by row."""
        pieces = [_scored(body, vector, slots) for body, slots in self._slots(places)]
        rows, scores, numbers = (np.concatenate(each) for each in zip(*pieces, strict=True))
        # Best score first, ties by row then passage; the first slot of each row is its best passage.
        order = np.lexsort((numbers, rows, -scores))
        _, first = np.unique(rows[order], return_index=True)
        keep = order[np.sort(first)]
        return Candidates(rows[keep], scores[keep], numbers[keep].astype(np.int64))

    def _slots(self, places: Rows) -> list[tuple[Body, Rows]]:
        """Bodies with the slots in them that ascending places stand for."""
        cuts = np.searchsorted(places, self._ends)
        found, start, before = [], 0, 0
        for (body, slots), cut, end in zip(self._pieces, cuts.tolist(), self._ends.tolist(), strict=True):
            if cut > start:
                inside = places[start:cut] - before
                found.append((body, inside if slots is None else slots[inside]))
            start, before = cut, end
        return found


def _allowed(part: Part, among: Among) -> Rows | None:
    """The slots of a part that a search may return, ascending; None for all of them."""
    slots = None if among.rows is None else part.body.among(among.rows)
    if slots is not None and not len(slots):
        return slots
    inside = part.body.columns().within(among.namespaces, slots)
    if inside is False:
        return _NO_SLOTS
    living = part.marks.living(among.now, slots)
    if inside is True and living is True:
        return slots
    mask = living if inside is True else inside if living is True else inside & living
    return np.flatnonzero(mask) if slots is None else slots[mask]


def _scored(body: Body, vector: Vector, slots: Rows) -> tuple[Rows, Floats, NDArray[np.int32]]:
    """Rows, exact scores and passage numbers of slots."""
    columns = body.columns()
    product = np.vecdot(columns.matrix.take(slots, axis=0).astype(np.float64), vector.astype(np.float64))
    return columns.rows[slots], product.astype(np.float32), columns.numbers[slots]


def _best_of_spans(body: Body, vector: Vector, starts: Rows, stops: Rows) -> tuple[Floats, Rows]:
    """Exact score and number of the best passage of each span; none is empty."""
    slots = expanded(starts, stops)
    firsts = np.cumsum(stops - starts) - (stops - starts)
    owners = np.repeat(np.arange(len(starts)), stops - starts)
    rough = np.vecdot(body.columns().matrix.take(slots, axis=0), vector)
    most = np.maximum.reduceat(rough, firsts)
    if not np.isfinite(most).all():
        raise _no_numbers()
    near = rough >= most[owners] - _NOISE
    slots, owners = slots[near], owners[near]
    _, scores, numbers = _scored(body, vector, slots)
    # The best passage of each span, of equal ones the first.
    order = np.lexsort((slots, -scores, owners))
    _, first = np.unique(owners[order], return_index=True)
    best = order[first]
    return scores[best], numbers[best].astype(np.int64)


def _no_numbers() -> StoreCorrupt:
    # No comparison holds for what is no number: rows would be missing from answers, and nobody would know.
    return StoreCorrupt("vectors in the index are no numbers")


_NO_SLOTS: Rows = np.empty(0, np.int64)
_NOTHING = Candidates(_NO_SLOTS, np.empty(0, np.float32), _NO_SLOTS)
