"""A whole file's lock, as the system has it: it goes with the process that holds it, however that ends."""

from __future__ import annotations

import sys

if sys.platform == "win32":
    import msvcrt

    def locked(fd: int) -> bool:
        """Whether the lock of the open file is this descriptor's now; nothing is waited for."""
        try:
            msvcrt.locking(fd, msvcrt.LK_NBLCK, 1)
        except OSError:
            return False
        return True
else:
    import fcntl

    def locked(fd: int) -> bool:
        """Whether the lock of the open file is this descriptor's now; nothing is waited for.

        A descriptor that was inherited locked has it.
        """
        try:
            fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return False
        return True
