from __future__ import annotations

import json
import threading
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from typing import Any

from cachetools import LRUCache

from agora.cache.disk import Disk
from agora.ports.backend_cache import Kept

_KIND = "backend"
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND = timedelta(microseconds=1)
_MEMORY = 16 * 1024 * 1024
"""Bytes of answers in memory."""


class BackendReads:
    """Answers of backends in memory, then on disk; implements `agora.ports.backend_cache.BackendCache`."""

    def __init__(self, disk: Disk | None) -> None:
        self._disk = disk
        self._lock = threading.Lock()
        self._memory: LRUCache[bytes, tuple[bytes, datetime]] = LRUCache(_MEMORY, getsizeof=lambda kept: len(kept[0]))

    def get(self, key: bytes, now: datetime) -> Kept | None:
        """As `BackendCache.get`."""
        with self._lock:
            found = self._memory.get(key)
        if found is not None and found[1] > now:
            return _kept(found[0], "L1", now)
        stored = None if self._disk is None else self._disk.get(_KIND, key, _micros(now))
        if stored is None:
            return None
        self._remember(key, stored[0], _EPOCH + stored[1] * _MICROSECOND)
        return _kept(stored[0], "L2", now)

    def put(self, key: bytes, result: Mapping[str, Any], now: datetime, seconds: float) -> None:
        """As `BackendCache.put`."""
        written = json.dumps([_micros(now), result], ensure_ascii=False).encode("utf-8", "surrogatepass")
        until = now + timedelta(seconds=seconds)
        self._remember(key, written, until)
        if self._disk is not None:
            self._disk.put(_KIND, key, lambda: written, _micros(now), _micros(until))

    def forget_memory(self) -> None:
        """Drop the first level alone."""
        with self._lock:
            self._memory.clear()

    def _remember(self, key: bytes, written: bytes, until: datetime) -> None:
        if len(written) <= _MEMORY // 4:
            with self._lock:
                self._memory[key] = (written, until)


def _kept(written: bytes, level: Any, now: datetime) -> Kept | None:  # noqa: ANN401 - one of two words
    made, result = json.loads(written.decode("utf-8", "surrogatepass"))
    at = _EPOCH + made * _MICROSECOND
    # A clock that was put back must not make an answer younger than it is.
    return Kept(result, at, level) if at <= now else None


def _micros(at: datetime) -> int:
    return (at - _EPOCH) // _MICROSECOND
