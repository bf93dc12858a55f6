from __future__ import annotations

from datetime import UTC, datetime


class SystemClock:
    """The machine's clock; implements `agora.ports.clock.Clock`."""

    def now(self) -> datetime:
        """The present instant, aware, UTC."""
        return datetime.now(UTC)
