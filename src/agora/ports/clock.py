from __future__ import annotations

from datetime import datetime
from typing import Protocol


class Clock(Protocol):
    """The time, injected so that tests can move it."""

    def now(self) -> datetime:
        """The present instant, aware, UTC."""
        ...
