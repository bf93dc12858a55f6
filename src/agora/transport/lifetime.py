"""When a server process ends, and that it does: signals, a dead parent, and a bound on the end itself."""

from __future__ import annotations

import os
import signal
import sys
import threading
import time
from collections.abc import Callable
from queue import SimpleQueue
from types import FrameType
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    # Importing it takes the SDK, which not all who end by signals need.
    from agora.transport.options import Log

PARENT_CHECK_SECONDS = 1.0

# The contract: gone within two seconds of the end of input or of a signal. What the drain leaves of it is
# split into unwinding (before `on_stop`), `on_stop` itself, and the interpreter's own exit.
UNWIND_SECONDS = 0.2
EXIT_SECONDS = 0.35

# How long the last words may take to be written.
SAY_SECONDS = 0.03


class Ending:
    """The end of the process, begun once and bounded in time whatever the event loop still waits for.

    `begin` starts the clock. When the connection is over, or `drain_seconds` + 0.2 s after `begin`, `on_stop`
    runs in a thread of its own. The process is ended hard `drain_seconds` + 0.35 s after `begin`, or as soon
    as `on_stop` is done when the loop is stuck: a worker thread inside a long call can be neither cancelled
    nor interrupted, and the interpreter would wait for it for ever. In any other case the program
    returns long before and nothing happens.
    """

    def __init__(self, on_stop: Callable[[], None] | None, drain_seconds: float, log: Log) -> None:
        self._on_stop = on_stop
        self._drain = drain_seconds
        self._log = log
        # `put` is the one way to wake a thread that a signal handler may use: it takes no lock that the
        # interrupted code could hold. For the same reason the thread exists from the start.
        self._reasons: SimpleQueue[str] = SimpleQueue()
        self._served = threading.Event()
        self._stopped = threading.Event()
        self._failed = True
        threading.Thread(target=self._watch, name="agora-exit", daemon=True).start()

    def begin(self, reason: str) -> None:
        """Start to end; later calls do nothing. May be called by any thread and by a signal handler."""
        self._reasons.put(reason)

    def finish(self) -> int:
        """Wait for `on_stop`, now that nothing is served any more; the process's exit status.

        The status is 1 if `on_stop` failed, else 0.
        """
        self._served.set()
        self.begin("nothing left to serve")
        self._stopped.wait()
        return self._status()

    def _status(self) -> int:
        return 1 if self._failed else 0

    def _watch(self) -> None:
        reason = self._reasons.get()
        deadline = time.monotonic() + self._drain + EXIT_SECONDS
        threading.Thread(target=self._stop, name="agora-stop", daemon=True).start()
        self._say(self._log.debug, "ending: %s", reason)
        self._stopped.wait(deadline - time.monotonic())
        if self._served.is_set():
            time.sleep(max(0.0, deadline - time.monotonic()))
        try:
            stuck = [t.name for t in threading.enumerate() if not t.daemon and t is not threading.main_thread()]
            words = ", ".join(stuck) or "the event loop"
            self._say(self._log.warning, "ended hard; still running: %s", words).join(SAY_SECONDS)
        finally:
            # An interpreter that is half gone starts no thread any more. That must not be the way out.
            os._exit(self._status())

    @staticmethod
    def _say(write: Callable[[str, str], object], event: str, detail: str) -> threading.Thread:
        """Log without waiting: a client that never reads stderr blocks whoever writes to it, with the lock."""
        speaker = threading.Thread(target=write, args=[event, detail], name="agora-log", daemon=True)
        speaker.start()
        return speaker

    def _stop(self) -> None:
        self._served.wait(self._drain + UNWIND_SECONDS)
        try:
            if self._on_stop is not None:
                self._on_stop()
            self._failed = False
        except Exception as problem:  # noqa: BLE001 - the outermost frame of a thread; the status tells
            self._say(self._log.warning, "stopping failed: %s", str(problem)).join(SAY_SECONDS)
        finally:
            self._stopped.set()


def on_signals(stop: Callable[[str], None]) -> None:
    """Call `stop(name)` on each signal that asks the process to end, for the rest of its life.

    Plain handlers and not the event loop's: those are gone when the loop is closed, and a client's
    second signal would then kill the process while it still flushes. Main thread only.
    """

    def handle(number: int, _frame: FrameType | None) -> None:
        stop(signal.Signals(number).name)

    for name in ("SIGTERM", "SIGINT", "SIGHUP", "SIGBREAK"):
        number = getattr(signal, name, None)
        # `nohup` starts a program with SIGHUP ignored, and means it.
        if number is not None and not (name == "SIGHUP" and signal.getsignal(number) is signal.SIG_IGN):
            signal.signal(number, handle)


def on_parent_death(parent: int, stop: Callable[[str], None]) -> None:
    """Call `stop` from a thread within about a second of the death of `parent`, which started this process.

    The end of input does not tell it when another process holds the pipe. Linux's parent-death signal would
    follow the *thread* that started us, which in a client with a thread pool ends at any time.
    """
    alive = _parent_probe(parent)

    def watch() -> None:
        while alive():
            time.sleep(PARENT_CHECK_SECONDS)
        stop("the parent process is gone")

    threading.Thread(target=watch, name="agora-parent", daemon=True).start()


if sys.platform == "win32":
    import ctypes

    _SYNCHRONIZE, _STILL_RUNNING = 0x00100000, 0x102

    def _parent_probe(parent: int) -> Callable[[], bool]:
        # `getppid` never changes here. An open handle also keeps the number from being given away.
        kernel = ctypes.windll.kernel32
        kernel.OpenProcess.restype = ctypes.c_void_p
        handle: int | None = kernel.OpenProcess(_SYNCHRONIZE, 0, parent)
        if handle is None:
            return lambda: True
        wait, waited_for = kernel.WaitForSingleObject, ctypes.c_void_p(handle)
        return lambda: bool(wait(waited_for, 0) == _STILL_RUNNING)
else:

    def _parent_probe(parent: int) -> Callable[[], bool]:
        """A call that tells whether `parent` still runs."""
        return lambda: os.getppid() == parent
