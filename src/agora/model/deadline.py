from __future__ import annotations

import threading
import time
from collections.abc import Callable

from agora.errors import Cancelled, DeadlineExceeded


class _Telling:
    """What a call says of itself, shared by its deadlines."""

    words = ""
    step: Callable[[float, float | None, str | None], None] | None = None


class Deadline:
    """A point in time by which a call must be done, and the caller's way to take the call back.

    One object travels with a call through every layer; blocking work asks it how long it may wait
    (`remaining`) and stops between steps (`check`). Safe to share between threads.
    """

    def __init__(self, seconds: float) -> None:
        self._ends = time.monotonic() + seconds
        self._cancelled = threading.Event()
        self._telling = _Telling()
        self.seconds = seconds

    @property
    def doing(self) -> str:
        """What the call said last that it is at; empty if it has said nothing."""
        return self._telling.words

    def tell(self, words: str) -> None:
        """Say what the call is at, in a few words, for whoever waits for it."""
        self._telling.words = words

    def progress(self, done: float, total: float | None, words: str | None) -> None:
        """Pass on how far the work is, as whoever does it counts: for a caller that has asked to `follow`."""
        if self._telling.step is not None:
            self._telling.step(done, total, words)

    def follow(self, step: Callable[[float, float | None, str | None], None]) -> None:
        """Have `step` called with every `progress`, in whatever thread that is; it must be quick and never raise."""
        self._telling.step = step

    def within(self, seconds: float) -> Deadline:
        """An earlier deadline, at most `seconds` from now, that is cancelled together with this one."""
        inner = Deadline(seconds)
        if self._ends < inner._ends:
            inner._ends, inner.seconds = self._ends, self.seconds
        inner._cancelled, inner._telling = self._cancelled, self._telling
        return inner

    def remaining(self) -> float:
        """Seconds left, never negative; 0 once cancelled."""
        return 0.0 if self._cancelled.is_set() else max(0.0, self._ends - time.monotonic())

    def cancel(self) -> None:
        """Make every later `check` fail; work in flight stops at its next step."""
        self._cancelled.set()

    def check(self) -> None:
        """Return if there is time left.

        Raises: Cancelled, DeadlineExceeded.
        """
        if self._cancelled.is_set():
            raise Cancelled("the call was cancelled")
        if time.monotonic() >= self._ends:
            raise DeadlineExceeded(f"the call took longer than its deadline of {self.seconds:g} s")
