from __future__ import annotations

import threading
from types import TracebackType

from agora.errors import Cancelled


class Gate:
    """Counts the threads inside native code, and lets the end of the process wait for them.

    The interpreter kills a daemon thread when it asks for the interpreter's lock back; inside onnxruntime
    that unwinds C++ frames which forbid it, and the process ends with SIGABRT in place of its exit code.
    `with gate:` goes around every native call; `close` goes to `atexit`.
    """

    def __init__(self) -> None:
        self._changed = threading.Condition()
        self._inside = 0
        self._closed = False

    def __enter__(self) -> None:
        with self._changed:
            if self._closed:
                raise Cancelled("the process is ending")
            self._inside += 1

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        with self._changed:
            self._inside -= 1
            self._changed.notify_all()

    def close(self, seconds: float) -> None:
        """Let nobody in any more, and wait until all are out, at most `seconds`."""
        with self._changed:
            self._closed = True
            self._changed.wait_for(lambda: self._inside == 0, seconds)
