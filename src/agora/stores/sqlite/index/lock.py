from __future__ import annotations

import contextlib
import os
import time
from collections.abc import Iterator
from pathlib import Path

from agora.shim.locking import locked

_STEP = 0.02


@contextlib.contextmanager
def alone(path: Path, seconds: float) -> Iterator[bool]:
    """True if the lock at `path` is ours for the block; waits up to `seconds` for another's.

    The operating system gives it back when the process ends, however it ends. Two holders in one process exclude
    each other too. Raises: OSError.
    """
    fd = os.open(path, os.O_RDWR | os.O_CREAT, 0o600)
    try:
        gives_up = time.monotonic() + seconds
        while not (mine := locked(fd)) and time.monotonic() < gives_up:
            time.sleep(_STEP)
        # Closing it gives the lock back.
        yield mine
    finally:
        os.close(fd)
