"""How a backend is doing, and whether it is asked at all."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from statistics import median
from typing import Any, Literal

from agora.errors import BackendUnavailable

State = Literal["healthy", "degraded", "dead"]

FAILURES = 3
"""Failures one after the other from which on a backend counts as dead and is not asked for a while."""

FIRST_PAUSE = 1.0
LONGEST_PAUSE = 60.0
"""Seconds that a dead backend is left alone: the first time, doubled by each failure, and at most; tries never end."""

_REMEMBERED = 64


class Health:
    """The breaker of one backend: closed, open after `FAILURES`, half open for one call once the pause is over.

    Only what says that the backend does not work counts as a failure: it cannot be started or reached, goes away in a
    call, or does not answer. An error that it answers with shows that it works. Nobody is asked just to know: a busy
    child must not be pinged. However many calls are under way when it goes away, it has failed once: what was admitted
    before the last failure was known says nothing new. Used by one event loop alone.
    """

    def __init__(self, backend: str, monotonic: Callable[[], float]) -> None:
        self._backend = backend
        self._monotonic = monotonic
        self._failures = 0
        self._ever = 0
        self._again = 0.0
        self._trying = False
        self._seconds: deque[float] = deque(maxlen=_REMEMBERED)
        self.last_error: str | None = None

    @property
    def state(self) -> State:
        """`healthy`, `degraded` after a failure, `dead` after `FAILURES` of them."""
        if self._failures == 0:
            return "healthy"
        return "dead" if self._failures >= FAILURES else "degraded"

    @property
    def breaker(self) -> Literal["closed", "open", "half_open"]:
        """Whether calls go through: all, none, or one to see."""
        if self._failures < FAILURES:
            return "closed"
        return "half_open" if self._trying or self._monotonic() >= self._again else "open"

    def admit(self) -> int:
        """Return if a call may be made now; every call that was admitted ends with `succeeded`, `failed` or `let_go`.

        What comes back is for `failed` and `let_go`: how many failures there had ever been.

        Raises: BackendUnavailable, with the seconds until the next try in its hint.
        """
        if self._failures < FAILURES:
            return self._ever
        left = self._again - self._monotonic()
        if self._trying or left > 0:
            raise BackendUnavailable(
                self._backend,
                f"has failed {self._failures} times in a row and is left alone: {self.last_error}",
                hint=f"It is tried again in {max(left, 1.0):.0f} s." if left > 0 else "It is being tried just now.",
            )
        self._trying = True
        return self._ever

    def succeeded(self, seconds: float | None = None) -> None:
        """The backend answered, after so many seconds; without them it has only started."""
        self._failures, self._trying = 0, False
        if seconds is not None:
            self._seconds.append(seconds)

    def failed(self, reason: str, admitted: int) -> None:
        """The backend did not do its part in a call that was `admitted` then."""
        self.last_error = reason
        if admitted != self._ever:
            return
        self._ever += 1
        self._failures += 1
        self._trying = False
        if self._failures >= FAILURES:
            pause = FIRST_PAUSE * 2.0 ** min(self._failures - FAILURES, 10)
            self._again = self._monotonic() + min(pause, LONGEST_PAUSE)

    def let_go(self, admitted: int) -> None:
        """A call that was `admitted` then ended before it could tell anything of the backend."""
        if admitted == self._ever:
            self._trying = False

    def forgive(self) -> None:
        """Ask again at once: its table was changed."""
        self._failures, self._trying = 0, False

    def details(self) -> dict[str, Any]:
        """State, breaker, median latency of the last calls and the last error, as plain data."""
        found: dict[str, Any] = {"health": self.state, "breaker": self.breaker, "failures": self._failures}
        if self._seconds:
            found["latency_ms"] = round(median(self._seconds) * 1_000, 1)
        if self.last_error is not None:
            found["last_error"] = self.last_error
        return found
