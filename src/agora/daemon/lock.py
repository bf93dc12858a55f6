"""One server of a data folder: whoever holds the lock is it, and a server that is gone holds none."""

from __future__ import annotations

import os
import sys
from pathlib import Path

from agora.errors import StoreUnavailable
from agora.shim.locking import locked


class Lock:
    """The held lock. The system frees it when the process is gone, however it went."""

    def __init__(self, fd: int, path: Path) -> None:
        self._fd = fd
        self.path = path
        # A backend that inherited it would keep the next server out.
        os.set_inheritable(fd, False)  # noqa: FBT003 - as the system has it

    def is_there(self) -> bool:
        """Whether the next server would find it: False once its file was deleted, moved or replaced.

        True where that cannot be told, and on Windows, where nobody can do that to an open file.
        """
        if sys.platform == "win32":
            return True
        try:
            return os.path.samestat(self.path.stat(), os.fstat(self._fd))
        except (FileNotFoundError, NotADirectoryError):
            return False
        except OSError:
            return True

    def release(self) -> None:
        """Let the next server start; may be called again."""
        if self._fd >= 0:
            os.close(self._fd)
            self._fd = -1


def take(path: Path, inherited: int | None = None) -> Lock:
    """The lock at `path`, which whoever started this process may have taken for it.

    Raises: StoreUnavailable if a server runs already.
    """
    fd = os.open(path, os.O_RDWR | os.O_CREAT, 0o600) if inherited is None else inherited
    if locked(fd):
        return Lock(fd, path)
    os.close(fd)
    raise StoreUnavailable("the shared server of this data folder runs already", hint="`agora server status` shows it.")
