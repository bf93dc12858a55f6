"""Fakes for tests of your own code as much as of ours: real behaviour, in memory, under your control."""

from __future__ import annotations

import contextlib
import functools
import hashlib
import threading
from collections.abc import Callable, Iterable, Iterator, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

import numpy as np

from agora.errors import EmbeddingMismatch
from agora.model.deadline import Deadline
from agora.model.profile import Fingerprint, Span
from agora.ports.encoder import EncoderState, Vector
from agora.ports.vector_index import (
    Among,
    Candidates,
    Passages,
    Progress,
    Rows,
    Source,
    Unusable,
    VectorView,
)

Opening = Callable[[], contextlib.AbstractContextManager[Source]]


class ManualClock:
    """A clock that stands still until it is told to move."""

    def __init__(self, now: datetime = datetime(2026, 1, 15, 12, 0, tzinfo=UTC)) -> None:
        self._now = now

    def now(self) -> datetime:
        """The instant it stands at."""
        return self._now

    def advance(self, **delta: float) -> None:
        """Move on by a `timedelta` of these keyword arguments."""
        self._now += timedelta(**delta)


class FakeEncoder:
    """Vectors from words alone: texts that share words are near, all others are at right angles, nearly.

    Deterministic on every machine, ready at once. A text longer than `piece` characters is split.
    """

    def __init__(self, dimension: int = 64, piece: int = 400, name: str = "fake") -> None:
        self._dimension = dimension
        self._piece = piece
        self.fingerprint = Fingerprint(name, "0" * 64, dimension, "mean", "", normalised=True, max_tokens=piece)

    languages: tuple[str, ...] = ()

    @property
    def state(self) -> EncoderState:
        """Always ready."""
        return "ready"

    def verify(self) -> None:
        """There are no files."""

    def warm_up(self) -> None:
        """There is nothing to load."""

    def split(self, text: str, deadline: Deadline) -> tuple[Span, ...]:
        """Pieces of `piece` characters, each overlapping the one before it by a fifth."""
        deadline.check()
        step = self._piece * 4 // 5
        starts = range(0, max(1, len(text) - self._piece + step), step)
        return tuple(Span(start, min(len(text), start + self._piece)) for start in starts)

    def encode(self, text: str, deadline: Deadline) -> Vector:
        """The normalised sum of one fixed direction per word."""
        deadline.check()
        total = np.full(self._dimension, 1e-3)
        for word in _words(text):
            total += _direction(word, self._dimension)
        vector: Vector = (total / np.linalg.norm(total)).astype(np.float32)
        return vector

    def encode_all(self, texts: Sequence[str], deadline: Deadline) -> list[Vector]:
        """One after the other."""
        return [self.encode(text, deadline) for text in texts]

    def encode_question(self, text: str, deadline: Deadline) -> Vector:
        """As any text."""
        return self.encode(text, deadline)

    def details(self) -> dict[str, Any]:
        """As `Encoder.details`."""
        return {"model": self.fingerprint.name, "state": self.state, "dimension": self._dimension}

    def close(self) -> None:
        """There is nothing to let go."""


class InMemoryIndex:
    """A vector index of plain dictionaries, searched one vector at a time: slow, and hard to get wrong.

    Implements `agora.ports.vector_index.VectorIndex`. It loads everything whenever the store has changed.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._known: tuple[str, int, bytes | None] | None = None
        self._view = _InMemoryView([])

    @contextlib.contextmanager
    def follow(self, source: Source, deadline: Deadline) -> Iterator[VectorView]:
        """As `VectorIndex.follow`."""
        deadline.check()
        with self._lock:
            try:
                source.begin()
            except EmbeddingMismatch as error:
                view: VectorView = Unusable(error)
            else:
                known = source.store, source.head, source.hash_at(source.head)
                if known != self._known:
                    self._view, self._known = _InMemoryView(source.everything()), known
                view = self._view
        yield view

    def compact(self, source: Opening, *, force: bool) -> dict[str, Any] | None:  # noqa: ARG002 - the port's form
        """There is nothing to drop."""
        return None

    def rebuild(self, source: Opening, progress: Progress | None = None) -> dict[str, Any]:  # noqa: ARG002 - as above
        """The next use loads everything anew."""
        with self._lock:
            self._known = None
        with source() as opened, self.follow(opened, Deadline(60)) as view:
            return {"generation": 0, "passages": view.size(), "dropped": 0, "seconds": 0.0}

    def purge(self, source: Opening, rows: Rows) -> None:  # noqa: ARG002 - the port's form
        """There are no files; the next use loads everything anew."""
        with self._lock:
            self._known, self._view = None, _InMemoryView([])

    def details(self) -> dict[str, Any]:
        """As `VectorIndex.details`."""
        return {"kind": "in memory", "problem": None}

    def close(self) -> None:
        """There is nothing to let go."""


class _InMemoryView:
    def __init__(self, blocks: Iterable[Passages]) -> None:
        self._rows: dict[int, tuple[int, int, list[tuple[int, Vector]]]] = {}
        for block in blocks:
            for place, row in enumerate(block.rows.tolist()):
                namespace, ends = int(block.namespaces[place]), int(block.expires[place])
                held = self._rows.setdefault(row, (namespace, ends, []))[2]
                held.append((int(block.numbers[place]), block.vectors[place].copy()))

    def nearest(self, vector: Vector, among: Among, limit: int) -> Candidates:
        wanted = None if among.rows is None else set(among.rows.tolist())
        allowed = [
            row
            for row, (namespace, ends, _) in self._rows.items()
            if namespace in among.namespaces and ends > among.now and (wanted is None or row in wanted)
        ]
        found = sorted((self._best(row, vector) for row in allowed), key=lambda best: (-best[1], best[0]))
        return _candidates(found[: max(0, limit)])

    def cosines(self, vector: Vector, rows: Rows) -> Candidates:
        return _candidates([self._best(row, vector) for row in rows.tolist()])

    def size(self) -> int:
        return sum(len(held) for _, _, held in self._rows.values())

    def _best(self, row: int, vector: Vector) -> tuple[int, float, int]:
        if row not in self._rows:
            return row, -1.0, 0
        asked = vector.astype(np.float64)
        scores = [(float(np.float32(np.vecdot(each.astype(np.float64), asked))), n) for n, each in self._rows[row][2]]
        score, n = max(scores, key=lambda scored: (scored[0], -scored[1]))
        return row, score, n


def _candidates(found: Sequence[tuple[int, float, int]]) -> Candidates:
    return Candidates(
        np.array([each[0] for each in found], dtype=np.int64),
        np.array([each[1] for each in found], dtype=np.float32),
        np.array([each[2] for each in found], dtype=np.int64),
    )


class SilentLog:
    """Takes events and drops them."""

    def debug(self, event: str, **values: Any) -> None:  # noqa: ANN401 - any loggable value
        """Drop it."""

    def info(self, event: str, **values: Any) -> None:  # noqa: ANN401 - any loggable value
        """Drop it."""

    def warning(self, event: str, **values: Any) -> None:  # noqa: ANN401 - any loggable value
        """Drop it."""


@functools.lru_cache(maxsize=4096)
def _direction(word: str, dimension: int) -> np.ndarray:
    """Where a word points: random, and always the same. To be read only."""
    seed = int.from_bytes(hashlib.sha256(word.encode("utf-8", "replace")).digest()[:8], "big")
    return np.random.default_rng(seed).standard_normal(dimension)


def _words(text: str) -> Iterable[str]:
    return text.casefold().split()
