"""Fakes for tests of your own code as much as of ours: real behaviour, in memory, under your control."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

import numpy as np

from agora.model.deadline import Deadline
from agora.model.profile import Fingerprint, Span
from agora.ports.encoder import EncoderState, Vector


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
            seed = int.from_bytes(hashlib.sha256(word.encode("utf-8", "replace")).digest()[:8], "big")
            total += np.random.default_rng(seed).standard_normal(self._dimension)
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


class SilentLog:
    """Takes events and drops them."""

    def debug(self, event: str, **values: Any) -> None:  # noqa: ANN401 - any loggable value
        """Drop it."""

    def info(self, event: str, **values: Any) -> None:  # noqa: ANN401 - any loggable value
        """Drop it."""

    def warning(self, event: str, **values: Any) -> None:  # noqa: ANN401 - any loggable value
        """Drop it."""


def _words(text: str) -> Iterable[str]:
    return text.casefold().split()
