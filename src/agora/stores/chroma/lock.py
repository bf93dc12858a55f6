from __future__ import annotations

import contextlib
import os
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path

from agora.errors import DeadlineExceeded, IndexUnavailable
from agora.model.deadline import Deadline

_STEP = 0.02
"""Seconds between two looks whether another process has let go."""

_FAR = 1 << 30
"""The byte that is locked on Windows, where a locked byte cannot be read: the holder's number must be."""

if sys.platform == "win32":
    import msvcrt

    def _taken(descriptor: int) -> bool:
        os.lseek(descriptor, _FAR, os.SEEK_SET)
        try:
            msvcrt.locking(descriptor, msvcrt.LK_NBLCK, 1)
        except OSError:
            return False
        return True

else:
    import fcntl

    def _taken(descriptor: int) -> bool:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return False
        return True


class ProcessLock:
    """A lock file that one process holds; the system frees it when that process ends, however it ends."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._descriptor: int | None = None

    @property
    def held(self) -> bool:
        """Whether this object holds it."""
        return self._descriptor is not None

    def acquire(self, deadline: Deadline, patience: float) -> None:
        """Hold the lock: wait for another process until the deadline, and `patience` seconds for the same one.

        Raises: IndexUnavailable that names the holder, Cancelled, OSError.
        """
        if self.held:
            return
        flags = os.O_RDWR | os.O_CREAT | getattr(os, "O_BINARY", 0)
        descriptor = os.open(self._path, flags, 0o600)
        try:
            self._wait(descriptor, deadline, patience)
            os.ftruncate(descriptor, 0)
            os.lseek(descriptor, 0, os.SEEK_SET)
            os.write(descriptor, f"{os.getpid()}\n".encode())
        except BaseException:
            os.close(descriptor)
            raise
        self._descriptor = descriptor

    def _wait(self, descriptor: int, deadline: Deadline, patience: float) -> None:
        pause = threading.Event()
        holder, since = self.holder(), time.monotonic()
        while not _taken(descriptor):
            now, present = time.monotonic(), self.holder()
            if present != holder:
                # Commands come and go: whoever waits for its turn behind several of them gets it.
                holder, since = present, now
            with contextlib.suppress(DeadlineExceeded):
                deadline.check()
            if now - since >= patience or not deadline.remaining():
                raise IndexUnavailable(
                    f"process {holder or 'of unknown number'} uses the Chroma index in {self._path.parent},"
                    " and Chroma allows one process only",
                    hint="Saves and lexical queries (`mode: lexical`) work meanwhile. End that process, or let all"
                    " agents use one shared server: it can serve them all.",
                )
            pause.wait(min(_STEP, deadline.remaining()))

    @contextlib.contextmanager
    def glance(self) -> Iterator[bool]:
        """Whether nobody held it, and nobody gets it for the block. Nothing is written: no file, no number."""
        try:
            descriptor = os.open(self._path, os.O_RDWR | getattr(os, "O_BINARY", 0))
        except OSError:
            # Nobody can hold what is not there, or what nobody can write.
            yield not self._path.exists()
            return
        try:
            yield _taken(descriptor)
        finally:
            os.close(descriptor)

    def holder(self) -> int | None:
        """Number of the process that holds it, or held it last."""
        with contextlib.suppress(OSError, ValueError):
            return int(self._path.read_text("ascii"))
        return None

    def release(self) -> None:
        """Let it go."""
        if self._descriptor is not None:
            # Closing it frees it. The file stays: whoever deletes it makes two locks of one.
            os.close(self._descriptor)
            self._descriptor = None
