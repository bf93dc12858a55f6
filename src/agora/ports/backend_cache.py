from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Protocol

from agora.ports.result_cache import Level


@dataclass(frozen=True, slots=True)
class Kept:
    """An answer of a backend, when it was given, and the level that held it."""

    result: Mapping[str, Any]
    made_at: datetime
    level: Level


class BackendCache(Protocol):
    """Answers of backends to reading calls. Losing an entry is never an error. Thread-safe."""

    def get(self, key: bytes, now: datetime) -> Kept | None:
        """The answer under `key`, if one is kept and still lives."""
        ...

    def put(self, key: bytes, result: Mapping[str, Any], now: datetime, seconds: float) -> None:
        """Keep an answer for so long. Returns at once; the disk is written in the background."""
        ...
