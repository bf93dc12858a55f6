from __future__ import annotations

import asyncio
from collections.abc import Callable

from agora.errors import RateLimited


class Pace:
    """At most so many calls a second, and one second's worth at once; who comes too early waits.

    Used by one event loop alone.
    """

    def __init__(self, backend: str, rate: float | None, monotonic: Callable[[], float]) -> None:
        self._backend = backend
        self._rate = rate
        self._monotonic = monotonic
        self._burst = max(1.0, rate or 1.0)
        self._left = self._burst
        self._at = monotonic()

    async def wait(self, seconds: float) -> None:
        """Return when it is this call's turn.

        Raises: RateLimited if that is not within `seconds`; the turn is not taken then.
        """
        if self._rate is None:
            return
        now = self._monotonic()
        self._left = min(self._burst, self._left + (now - self._at) * self._rate)
        self._at = now
        pause = max(0.0, (1.0 - self._left) / self._rate)
        if pause > seconds:
            raise RateLimited(
                f"{self._backend}: more than its {self._rate:g} calls a second are wanted",
                pause,
                hint="Wait, or raise `rate` in its table.",
            )
        # Taken before the wait, so that who comes next waits longer.
        self._left -= 1.0
        if pause:
            await asyncio.sleep(pause)
