from __future__ import annotations

from datetime import datetime
from typing import Any, Literal, Protocol

from agora.model.query import Answer

Level = Literal["L1", "L2"]


class ResultCache(Protocol):
    """Answers by a key that names everything they depend on: what can change an answer changes its key.

    Losing an entry is never an error, and neither is a cache that cannot be used: its state says so.
    """

    def get(self, key: bytes, now: datetime) -> tuple[Answer, Level] | None:
        """The answer under `key`, and the level that held it; None when there is none that still lives."""
        ...

    def put(self, key: bytes, answer: Answer, now: datetime, until: datetime | None) -> None:
        """Keep `answer`, not beyond `until`. Returns at once; the disk is written in the background."""
        ...

    def clear(self) -> int:
        """Drop every entry of every level; returns how many there were on disk."""
        ...

    def details(self) -> dict[str, Any]:
        """Entries, hits and misses of each level, and why a level is off if it is, as plain data."""
        ...

    def close(self) -> None:
        """Write what is waiting, then let the file go."""
        ...
