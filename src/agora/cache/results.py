from __future__ import annotations

import threading
from datetime import UTC, datetime, timedelta
from functools import cache
from typing import TYPE_CHECKING, Any

from cachetools import TTLCache

from agora.cache.disk import Disk
from agora.model.query import Answer
from agora.ports.clock import Clock
from agora.ports.result_cache import Level

if TYPE_CHECKING:
    from pydantic import TypeAdapter

_KIND = "result"
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND = timedelta(microseconds=1)


class TwoLevelCache:
    """Answers in memory, then on disk; implements `agora.ports.result_cache.ResultCache`.

    A hit on disk fills the memory. An entry lives as long as its level says, and never beyond the `until` that it
    was put with: what expires in the searched namespaces ends the answers that it could change.
    """

    def __init__(self, clock: Clock, disk: Disk | None, *, entries: int, seconds: float, disk_seconds: float) -> None:
        self._clock = clock
        self._disk = disk
        self._disk_life = timedelta(seconds=disk_seconds)
        self._lock = threading.Lock()
        self._memory: TTLCache[bytes, tuple[Answer, datetime | None]] = TTLCache(
            entries, seconds, timer=lambda: clock.now().timestamp()
        )
        self._hits: dict[str, int] = {"L1": 0, "L2": 0}
        self._misses = 0

    def get(self, key: bytes, now: datetime) -> tuple[Answer, Level] | None:
        """As `ResultCache.get`."""
        with self._lock:
            found = self._memory.get(key)
            if found is not None and (found[1] is None or found[1] > now):
                self._hits["L1"] += 1
                return found[0], "L1"
        stored = None if self._disk is None else self._disk.get(_KIND, key, _micros(now))
        if stored is None:
            with self._lock:
                self._misses += 1
            return None
        answer = _shape().validate_json(stored[0])
        with self._lock:
            self._hits["L2"] += 1
            self._memory[key] = (answer, _EPOCH + stored[1] * _MICROSECOND)
        return answer, "L2"

    def put(self, key: bytes, answer: Answer, now: datetime, until: datetime | None) -> None:
        """As `ResultCache.put`."""
        with self._lock:
            self._memory[key] = (answer, until)
        if self._disk is not None and self._disk.off is None:
            ends = now + self._disk_life
            self._disk.put(
                _KIND,
                key,
                lambda: _shape().dump_json(answer),
                _micros(now),
                _micros(ends if until is None else min(until, ends)),
            )

    def forget_memory(self) -> None:
        """Drop the first level alone, as the end of a process would."""
        with self._lock:
            self._memory.clear()

    def clear(self) -> int:
        """As `ResultCache.clear`."""
        self.forget_memory()
        return 0 if self._disk is None else self._disk.clear()

    def details(self) -> dict[str, Any]:
        """As `ResultCache.details`."""
        with self._lock:
            asked = sum(self._hits.values()) + self._misses
            found: dict[str, Any] = {
                "l1": {"entries": len(self._memory), "most": int(self._memory.maxsize), "hits": self._hits["L1"]},
                "l2": {"hits": self._hits["L2"]},
                "misses": self._misses,
                "hit_rate": round(sum(self._hits.values()) / asked, 4) if asked else None,
            }
        if self._disk is None:
            found["l2"]["off"] = "by setting"
        elif self._disk.off is not None:
            found["l2"]["off"] = self._disk.off
        else:
            found["l2"] |= {"entries": self._disk.count(_KIND)}
        return found

    def close(self) -> None:
        """As `ResultCache.close`."""
        if self._disk is not None:
            self._disk.close()


@cache
def _shape() -> TypeAdapter[Answer]:
    from pydantic import TypeAdapter  # noqa: PLC0415 - the schema of an answer is built at the first need

    return TypeAdapter(Answer)


def _micros(instant: datetime) -> int:
    return (instant - _EPOCH) // _MICROSECOND
