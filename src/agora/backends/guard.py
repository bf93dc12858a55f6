"""The guard: what ends every backend's process when Agora itself is gone and could not. docs/adr/0024 says why."""

from __future__ import annotations

import atexit
import os
import subprocess
import sys
import threading
from contextlib import suppress
from pathlib import Path

_PROGRAM = Path(__file__).with_name("guardian.py")
_FAREWELL = 5.0
"""Seconds that it has to end: twice what it takes when something is left that does not want to."""


class Guard:
    """Keeps one process that knows which process groups are Agora's and ends them once Agora's end of a pipe closes.

    It is started before the first group, and again with the next should it be gone. Thread-safe; its calls take no time
    but for the first, which starts a process.
    """

    def __init__(self) -> None:
        self._gate = threading.Lock()
        self._groups: set[int] = set()
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def pid(self) -> int | None:
        """The number of its process; None while there is none."""
        with self._gate:
            return None if self._process is None else self._process.pid

    @property
    def groups(self) -> frozenset[int]:
        """What would be ended now."""
        with self._gate:
            return frozenset(self._groups)

    def ready(self) -> None:
        """Be there before the first group is, which would be nobody's while the guard starts.

        Raises: OSError if it cannot be started.
        """
        with self._gate:
            if self._process is None or self._process.poll() is not None:
                self._start()

    def watch(self, group: int) -> None:
        """End `group` when Agora is gone.

        Raises: OSError if the guard cannot be started.
        """
        with self._gate:
            self._groups.add(group)
            if self._process is None or not self._tell(self._process, f"+{group}\n"):
                self._start()

    def leave(self, group: int) -> None:
        """`group` is gone: its number may soon be somebody else's."""
        with self._gate:
            self._groups.discard(group)
            if self._process is not None and not self._tell(self._process, f"-{group}\n"):
                self._start()

    def close(self) -> None:
        """Let it end: at once if it has nothing to do, else it ends first what is left, which may take 2.5 seconds."""
        with self._gate:
            self._forget()

    def _start(self) -> None:
        self._forget()
        # -I, -S: nothing of the user's or of the surroundings is imported. Its own session: what a terminal sends to
        # all of Agora's processes does not reach it. No output: nobody waits for the end of a stream because of it.
        self._process = subprocess.Popen(  # noqa: S603 - our own program
            [sys.executable, "-I", "-S", str(_PROGRAM)],
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            cwd=os.sep,
            start_new_session=True,
            bufsize=0,
        )
        self._tell(self._process, "".join(f"+{group}\n" for group in self._groups))

    def _tell(self, process: subprocess.Popen[bytes], line: str) -> bool:
        """Whether it lives and has been told; a pipe has room for far more than it is ever behind."""
        assert process.stdin is not None
        if process.poll() is not None:
            return False
        try:
            process.stdin.write(line.encode("ascii"))
        except OSError:
            return False
        return True

    def _forget(self) -> None:
        if self._process is not None:
            assert self._process.stdin is not None
            with suppress(OSError):
                self._process.stdin.close()
            try:
                self._process.wait(_FAREWELL)
            except subprocess.TimeoutExpired:
                self._process.kill()
                self._process.wait()
            self._process = None


GUARD = Guard()
"""The one of this process: all its backends share it."""

atexit.register(GUARD.close)
