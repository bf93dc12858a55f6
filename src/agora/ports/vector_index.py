"""Vector indexes: derived from the records, kept in step with the journal, swappable.

An index never decides what exists. It remembers up to which sequence of which store it has applied the journal, and
`follow` brings it to exactly the snapshot that a reader's transaction sees.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from agora.errors import AgoraError
from agora.model.deadline import Deadline
from agora.ports.encoder import Vector

Rows = NDArray[np.int64]
Progress = Callable[[int, int], None]
"""Told how many passages are done, and of how many."""


@dataclass(frozen=True, slots=True)
class Among:
    """The rows a search may return: live at `now` (microseconds), in `namespaces`, and in `rows` if given.

    `namespaces` are internal numbers; `rows` is sorted ascending. The filter comes before top-k, never after.
    """

    namespaces: tuple[int, ...]
    now: int
    rows: Rows | None = None


@dataclass(frozen=True, slots=True)
class Candidates:
    """Rows with a score and the number of the passage that earned it, best first, ties by row."""

    rows: Rows
    scores: NDArray[np.float32]
    passages: Rows


@dataclass(frozen=True, slots=True)
class Passages:
    """Passages of rows that are neither superseded nor forgotten: parallel arrays, by row, then by number.

    `expires` is in microseconds, `NEVER` for a row without an end; `vectors` is (n, dimension) float32, normalised.
    """

    rows: Rows
    numbers: Rows
    namespaces: Rows
    expires: Rows
    vectors: NDArray[np.float32]


@dataclass(frozen=True, slots=True)
class Changed:
    """Rows that the journal names, each once, ascending, with their state in the snapshot: parallel arrays."""

    rows: Rows
    live: NDArray[np.bool_]
    expires: Rows


class Source(Protocol):
    """One read transaction of the record store, as an index follows it."""

    @property
    def dimension(self) -> int:
        """Length of the vectors."""
        ...

    @property
    def store(self) -> str:
        """Which store and which encoder of it: an index of another one is of no use. Known once begun."""
        ...

    @property
    def head(self) -> int:
        """Sequence of the last change in the snapshot. Known once begun."""
        ...

    def begin(self) -> None:
        """Begin the transaction: from here on everything comes from one snapshot.

        Raises: StoreVersion, StoreCorrupt, StoreUnavailable; EmbeddingMismatch if the store has another profile by now.
        """
        ...

    def hash_at(self, sequence: int) -> bytes | None:
        """The journal's hash at a sequence; None where the journal does not hold it.

        An index whose own hash is another one is of another past of this store (a backup that was put back) or was
        left behind by a pruned journal. It must load anew, and never answer.
        """
        ...

    def changed(self, since: int) -> Changed:
        """Every row that changed after the sequence `since`."""
        ...

    def passages(self, rows: Rows) -> Passages:
        """The passages of those of `rows` that are live."""
        ...

    def everything(self, after: int = 0) -> Iterator[Passages]:
        """The passages of all live rows above the row `after`, in blocks, by row and number.

        The passages of one row may lie in two blocks.
        """
        ...

    def selected(self, namespaces: tuple[int, ...], now: int, most: int) -> Rows | None:
        """The rows of `namespaces` that are live at `now`, ascending; None if there are more than `most`."""
        ...

    def count(self) -> int:
        """Number of passages that `everything` yields."""
        ...


class VectorView(Protocol):
    """A vector index as of one snapshot of the store."""

    def nearest(self, vector: Vector, among: Among, limit: int) -> Candidates:
        """The `limit` items with the highest cosine of any of their passages.

        Scores are exact: accumulated in float64 and returned as float32. Which items are found may be approximate
        where an index says so; below ten thousand passages the default is exact.

        Raises: IndexUnavailable.
        """
        ...

    def cosines(self, vector: Vector, rows: Rows) -> Candidates:
        """The best cosine of each of `rows`, in their order; rows without vectors get -1 and passage 0.

        Raises: IndexUnavailable.
        """
        ...

    def size(self) -> int:
        """Number of passages of live rows that the view holds."""
        ...


class VectorIndex(Protocol):
    """An index that follows a record store. Thread-safe."""

    def follow(self, source: Source, deadline: Deadline) -> AbstractContextManager[VectorView]:
        """Begin the transaction of `source`, and give the index exactly as of it for the length of the block.

        Other threads may apply newer changes meanwhile; the view does not move. An index that cannot be used now
        begins the transaction all the same, and its view raises when it is asked: the records stay readable.
        """
        ...

    def compact(self, source: Callable[[], AbstractContextManager[Source]], *, force: bool) -> dict[str, Any] | None:
        """Drop what is dead and write down what is only in memory; None if there was nothing to do.

        Queries go on meanwhile. `source` gives a transaction that has not begun; without `force`, only what the
        settings call worth it is done. The answer is plain data: `generation`, `passages`, `dropped`, `seconds`.
        """
        ...

    def rebuild(
        self, source: Callable[[], AbstractContextManager[Source]], progress: Progress | None = None
    ) -> dict[str, Any]:
        """Throw everything away and build it anew from the records; plain data as `compact` gives it."""
        ...

    def purge(self, source: Callable[[], AbstractContextManager[Source]], rows: Rows) -> None:
        """After it no file of the index holds a byte of these rows, whose vectors are gone from the records.

        Queries go on meanwhile. `source` gives a transaction that has not begun.

        Raises: IndexUnavailable if a file cannot be let go now; what was done so far stays done.
        """
        ...

    def details(self) -> dict[str, Any]:
        """Kind, size, generation and health as plain data; `problem` says what is wrong, if anything is."""
        ...

    def close(self) -> None:
        """Let the files go. Further use fails."""
        ...


class Unusable:
    """Stands in for the view of an index that cannot be used now: every search raises the same error."""

    def __init__(self, error: AgoraError) -> None:
        self._error = error

    def size(self) -> int:
        """Nothing can be searched."""
        return 0

    def nearest(self, vector: Vector, among: Among, limit: int) -> Candidates:  # noqa: ARG002 - the port's form
        """Raises: the error, always."""
        raise self._error

    def cosines(self, vector: Vector, rows: Rows) -> Candidates:  # noqa: ARG002 - the port's form
        """Raises: the error, always."""
        raise self._error
