"""Work that cannot be interrupted, waited for by somebody who can be."""

from __future__ import annotations

import random
import threading
import time
from collections.abc import Callable
from typing import Generic, TypeVar

from agora.model.deadline import Deadline

_SLICE = 0.05
"""Seconds between two looks at the deadline of a call that waits: a cancelled call is gone after that."""

_FIRST_WAIT, _LONGEST_WAIT = 0.5, 8.0
"""Seconds that the first repetition waits at most, doubled for each further one, and where that ends."""

_SHARE = 0.8
"""Of the time that is left a model gets so much."""

T = TypeVar("T")


class Outcome(Generic[T]):
    """What a thread found, or the exception that ended it; `late` while it has found nothing."""

    def __init__(self) -> None:
        self.value: T | None = None
        self.error: Exception | None = None
        self.late = True


def run(work: Callable[[], T], limit: Deadline) -> Outcome[T]:
    """What `work` comes to in a thread of its own, or that it is late.

    Neither a name lookup nor a read that hangs can be interrupted. The thread ends by itself: `work` knows the limit.
    """
    done = threading.Event()
    found: Outcome[T] = Outcome()

    def body() -> None:
        try:
            found.value = work()
        except Exception as error:  # noqa: BLE001 - outermost frame of the thread; the caller looks at it
            found.error = error
        finally:
            done.set()

    threading.Thread(target=body, name="agora-language-model", daemon=True).start()
    while not done.wait(min(_SLICE, limit.remaining())):
        if limit.remaining() == 0:
            return Outcome()
    found.late = False
    return found


def pause(seconds: float, deadline: Deadline) -> None:
    """Wait so long.

    Raises: DeadlineExceeded, Cancelled.
    """
    ends = time.monotonic() + seconds
    while (left := ends - time.monotonic()) > 0:
        deadline.check()
        time.sleep(min(_SLICE, left))


def delay(attempt: int, wait: float | None) -> float:
    """Seconds before the next attempt: between none and all of a time that doubles, or more if the server says so."""
    most = min(_LONGEST_WAIT, _FIRST_WAIT * 2**attempt)
    spread = random.uniform(0, most)  # noqa: S311 - keeps clients apart, hides nothing
    return spread if wait is None else wait + min(spread, _FIRST_WAIT)


def share(deadline: Deadline) -> Deadline:
    """An earlier deadline, for a model: if it is slow, the rules still have time of theirs."""
    return deadline.within(_SHARE * deadline.remaining())
