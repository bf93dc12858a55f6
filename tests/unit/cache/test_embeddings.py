from __future__ import annotations

from pathlib import Path

import numpy as np

from agora.cache.disk import Disk
from agora.cache.embeddings import CachedEncoder
from agora.model.deadline import Deadline
from agora.ports.encoder import Vector
from agora.testing import FakeEncoder, ManualClock, SilentLog


class _Counting(FakeEncoder):
    def __init__(self, name: str = "fake") -> None:
        super().__init__(name=name)
        self.calls = 0

    def encode(self, text: str, deadline: Deadline) -> Vector:
        self.calls += 1
        return super().encode(text, deadline)


def _cached(inner: FakeEncoder, disk: Disk | None) -> CachedEncoder:
    return CachedEncoder(inner, ManualClock(), disk, entries=4, disk_seconds=60)


def test_a_text_is_encoded_once_and_gives_the_same_bytes(tmp_path: Path) -> None:
    disk, inner = Disk(tmp_path / "cache.db", SilentLog(), entries=10), _Counting()
    encoder = _cached(inner, disk)
    first = encoder.encode("where is the queue", Deadline(5))
    assert encoder.encode("where is the queue", Deadline(5)).tobytes() == first.tobytes()
    assert inner.calls == 1
    disk.close()


def test_another_process_needs_no_model_for_it(tmp_path: Path) -> None:
    disk, inner = Disk(tmp_path / "cache.db", SilentLog(), entries=10), _Counting()
    first = _cached(inner, disk).encode("where is the queue", Deadline(5))
    disk.flush()
    other = _Counting()
    again = _cached(other, disk).encode("where is the queue", Deadline(5))
    assert other.calls == 0
    assert np.array_equal(again, first)
    disk.close()


def test_another_model_never_gets_this_models_vector(tmp_path: Path) -> None:
    disk = Disk(tmp_path / "cache.db", SilentLog(), entries=10)
    _cached(_Counting("one"), disk).encode("where", Deadline(5))
    disk.flush()
    other = _Counting("two")
    _cached(other, disk).encode("where", Deadline(5))
    assert other.calls == 1
    disk.close()


def test_a_long_text_is_not_kept() -> None:
    inner = _Counting()
    encoder = _cached(inner, None)
    for _ in range(2):
        encoder.encode("word " * 1000, Deadline(5))
    assert inner.calls == 2
