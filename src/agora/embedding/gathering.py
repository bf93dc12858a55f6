"""Questions that wait at the same moment, whoever asks them, in one request to the server that makes the vectors."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence

from agora.errors import EmbeddingError
from agora.model.deadline import Deadline
from agora.ports.encoder import Vector

Ask = Callable[[Sequence[str], Deadline], list[Vector]]

_SLICE = 0.05
"""Seconds after which a waiting call looks whether it was cancelled."""

_IDLE = 5.0
"""Seconds after which the thread that asks ends if nobody does."""


class _Waiting:
    """One question, until there is a vector or an error."""

    def __init__(self, text: str, deadline: Deadline) -> None:
        self.text, self.deadline = text, deadline
        self.done = threading.Event()
        self.vector: Vector | None = None
        self.error: Exception | None = None


class Gathering:
    """Asks for vectors, one request at a time: what arrives during a request goes out together with the next one.

    A question alone waits for nobody. The same text waiting twice is asked for once. A call that is cancelled, or
    whose deadline is over, leaves; the request goes on for the others.
    """

    def __init__(self, ask: Ask, most: int) -> None:
        """`ask` makes one request for at most `most` texts."""
        self._ask = ask
        self._most = most
        self._lock = threading.Condition()
        self._queue: list[_Waiting] = []
        self._running = False

    def __call__(self, text: str, deadline: Deadline) -> Vector:
        """The vector of `text`.

        Raises: what `ask` raises for the request that the text was in; DeadlineExceeded, Cancelled.
        """
        waiting = _Waiting(text, deadline)
        with self._lock:
            self._queue.append(waiting)
            if not self._running:
                self._running = True
                threading.Thread(target=self._work, name="agora-gathering", daemon=True).start()
            self._lock.notify()
        while not waiting.done.wait(min(_SLICE, deadline.remaining())):
            deadline.check()
        if waiting.error is not None:
            raise _again(waiting.error)
        assert waiting.vector is not None, "what is done has a vector or an error"
        return waiting.vector

    def _work(self) -> None:
        while group := self._next():
            texts = list(dict.fromkeys(each.text for each in group))
            try:
                # Nobody's deadline ends a request that others wait for too.
                vectors = self._ask(texts, Deadline(max(each.deadline.remaining() for each in group)))
            except Exception as error:  # noqa: BLE001 - the outermost frame of a thread; every call gets the cause
                for each in group:
                    each.error = error
            else:
                found = dict(zip(texts, vectors, strict=True))
                for each in group:
                    each.vector = found[each.text]
            for each in group:
                each.done.set()

    def _next(self) -> list[_Waiting]:
        """What goes out together; empty when the thread may end."""
        with self._lock:
            self._lock.wait_for(lambda: self._queue, _IDLE)
            # A call that has left is not asked for.
            self._queue = [each for each in self._queue if each.deadline.remaining()]
            group, self._queue = self._queue[: self._most], self._queue[self._most :]
            self._running = bool(group)
            return group


def _again(error: Exception) -> Exception:
    """The error made anew: one exception raised in many threads would mix their tracebacks."""
    if not isinstance(error, EmbeddingError):
        return error
    again = type(error)(error.message, hint=error.hint)
    again.__cause__ = error
    return again
