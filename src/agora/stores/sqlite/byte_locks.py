"""Locks on numbered bytes of a file: never waited for, and gone with whoever holds them, however it ended.

Linux has them for an open file (`F_OFD_SETLK`), so that two of them in one process exclude each other. Elsewhere on
POSIX they belong to the process: they order processes, and two in one process do not see each other. Windows has them
for an open file too; there a locked byte cannot be read by others, so content and locks must not overlap.
"""

from __future__ import annotations

import contextlib
import errno
import os
import sys
from pathlib import Path

_TAKEN = {errno.EACCES, errno.EAGAIN, errno.EDEADLK}
"""What a system says when somebody else has the lock."""

_REPLACEABLE: bool = sys.platform != "win32"
"""Whether a file that is open can be deleted or replaced."""

if sys.platform == "win32":
    import msvcrt

    def _try(descriptor: int, start: int, length: int) -> None:
        os.lseek(descriptor, start, os.SEEK_SET)
        msvcrt.locking(descriptor, msvcrt.LK_NBLCK, length)

    def _release(descriptor: int, start: int, length: int) -> None:
        os.lseek(descriptor, start, os.SEEK_SET)
        msvcrt.locking(descriptor, msvcrt.LK_UNLCK, length)

    def _is_free(descriptor: int, start: int, length: int) -> bool:
        return _probed(descriptor, start, length)

    def _read(descriptor: int, size: int) -> bytes:
        os.lseek(descriptor, 0, os.SEEK_SET)
        return os.read(descriptor, size)

    def _write(descriptor: int, content: bytes, at: int) -> None:
        os.lseek(descriptor, at, os.SEEK_SET)
        os.write(descriptor, content)

elif sys.platform == "linux":
    import fcntl
    import struct

    # As in <asm-generic/fcntl.h>: a Python that was built against an old C library has no names for them.
    _OFD_GETLK, _OFD_SETLK = 36, 37
    # struct flock with 64-bit offsets: type, whence, start, length, process.
    _FLOCK = struct.Struct("hhqqi4x")

    def _try(descriptor: int, start: int, length: int) -> None:
        fcntl.fcntl(descriptor, _OFD_SETLK, _FLOCK.pack(fcntl.F_WRLCK, os.SEEK_SET, start, length, 0))

    def _release(descriptor: int, start: int, length: int) -> None:
        fcntl.fcntl(descriptor, _OFD_SETLK, _FLOCK.pack(fcntl.F_UNLCK, os.SEEK_SET, start, length, 0))

    def _is_free(descriptor: int, start: int, length: int) -> bool:
        wanted = _FLOCK.pack(fcntl.F_WRLCK, os.SEEK_SET, start, length, 0)
        found = fcntl.fcntl(descriptor, _OFD_GETLK, wanted)
        return bool(_FLOCK.unpack(found)[0] == fcntl.F_UNLCK)

    def _read(descriptor: int, size: int) -> bytes:
        return os.pread(descriptor, size, 0)

    def _write(descriptor: int, content: bytes, at: int) -> None:
        os.pwrite(descriptor, content, at)

else:
    import fcntl

    def _try(descriptor: int, start: int, length: int) -> None:
        fcntl.lockf(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB, length, start)

    def _release(descriptor: int, start: int, length: int) -> None:
        fcntl.lockf(descriptor, fcntl.LOCK_UN, length, start)

    def _is_free(descriptor: int, start: int, length: int) -> bool:
        return _probed(descriptor, start, length)

    def _read(descriptor: int, size: int) -> bytes:
        return os.pread(descriptor, size, 0)

    def _write(descriptor: int, content: bytes, at: int) -> None:
        os.pwrite(descriptor, content, at)


def _probed(descriptor: int, start: int, length: int) -> bool:
    try:
        _try(descriptor, start, length)
    except OSError as error:
        if error.errno in _TAKEN:
            return False
        raise
    _release(descriptor, start, length)
    return True


class ByteLocks:
    """An open file with bytes to lock and a few bytes of content at its start. For one thread at a time.

    Raises: OSError from every method, where the file system has no such locks, or the file cannot be used.
    """

    def __init__(self, path: Path, content: int) -> None:
        """Open the file, making it with `content` zero bytes for its owner alone; anything else in it stays."""
        flags = os.O_RDWR | os.O_CREAT | getattr(os, "O_CLOEXEC", 0) | getattr(os, "O_BINARY", 0)
        self._path = path
        self._descriptor = os.open(path, flags | getattr(os, "O_NOINHERIT", 0), 0o600)
        try:
            found = os.fstat(self._descriptor)
            self._identity = found.st_dev, found.st_ino
            if found.st_size < content:
                # Space on the disk is taken now: later writes lie within it. What another process wrote first is lost.
                _write(self._descriptor, bytes(content - found.st_size), found.st_size)
        except BaseException:
            self.close()
            raise

    def take(self, start: int, length: int = 1) -> bool:
        """Whether these bytes are ours now; False if somebody else has one of them."""
        try:
            _try(self._descriptor, start, length)
        except OSError as error:
            if error.errno in _TAKEN:
                return False
            raise
        return True

    def release(self, start: int, length: int = 1) -> None:
        """Let go bytes that were taken, by the same numbers."""
        _release(self._descriptor, start, length)

    def is_free(self, start: int, length: int) -> bool:
        """Whether nobody else has one of these bytes; on some systems others may fail to take them meanwhile."""
        return length == 0 or _is_free(self._descriptor, start, length)

    def read(self, size: int) -> bytes:
        """The first bytes of the file."""
        return _read(self._descriptor, size)

    def write(self, content: bytes, at: int) -> None:
        """Put `content` into the file at byte `at`."""
        _write(self._descriptor, content, at)

    def is_at_its_path(self) -> bool:
        """Whether the open file is still the one that others find under its name."""
        if not _REPLACEABLE:
            return True
        try:
            found = os.stat(self._path)  # noqa: PTH116 - one system call before every write
        except FileNotFoundError:
            return False
        return (found.st_dev, found.st_ino) == self._identity

    def close(self) -> None:
        """Let everything go."""
        with contextlib.suppress(OSError):
            os.close(self._descriptor)
