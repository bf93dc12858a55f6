from __future__ import annotations

import contextlib
import os
import sys
import time
from collections.abc import Iterator
from pathlib import Path

_STEP = 0.02

if sys.platform == "win32":
    import msvcrt

    def _taken(fd: int) -> bool:
        try:
            msvcrt.locking(fd, msvcrt.LK_NBLCK, 1)
        except OSError:
            return False
        return True

else:
    import fcntl

    def _taken(fd: int) -> bool:
        try:
            fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return False
        return True


@contextlib.contextmanager
def alone(path: Path, seconds: float) -> Iterator[bool]:
    """True if the lock at `path` is ours for the block; waits up to `seconds` for another's.

    The operating system gives it back when the process ends, however it ends. Two holders in one process exclude
    each other too. Raises: OSError.
    """
    fd = os.open(path, os.O_RDWR | os.O_CREAT, 0o600)
    try:
        gives_up = time.monotonic() + seconds
        while not (mine := _taken(fd)) and time.monotonic() < gives_up:
            time.sleep(_STEP)
        # Closing it gives the lock back.
        yield mine
    finally:
        os.close(fd)
