"""Connections to a store that can only be read: a folder, a file or a medium that nobody may write, a full disk.

SQLite keeps an index of the write-ahead log beside it, in shared memory, which readers need as well. Where that is
there or can be made, a reader needs nothing else. Where it cannot, and there is no log, the file can still be read as
one that nobody changes; then it has to be watched for changes all the same.
"""

from __future__ import annotations

import contextlib
import os
import sqlite3
from pathlib import Path
from typing import NamedTuple, TypeVar

from agora.errors import StoreUnavailable

C = TypeVar("C", bound=sqlite3.Connection)

_NOT_OPENED = frozenset(
    {sqlite3.SQLITE_CANTOPEN, sqlite3.SQLITE_READONLY, sqlite3.SQLITE_IOERR, sqlite3.SQLITE_FULL, sqlite3.SQLITE_PERM}
)


WRITABLE = (
    "Nothing was written; queries work. Free some space, or make folder and file writable for this user. Where that is"
    " done, this process goes on."
)
"""What to do where a store can only be read."""


class Reader(sqlite3.Connection):
    """A connection for reading alone. Of a class of its own, so that what is known of it can be kept beside it."""


class Limit(NamedTuple):
    """Why a connection only reads, and the state of the files that it takes for unchangeable; None if it does not."""

    reason: str
    frozen: tuple[int, int] | None = None

    def holds(self, path: Path) -> bool:
        """Whether what was read so far is still what the store holds, as far as the files tell."""
        return self.frozen is None or (self.frozen == _state(path) and not _has_log(path))


def not_writable(path: Path) -> Limit | None:
    """Why the file at `path` cannot be written by this process; None if it can."""
    return None if os.access(path, os.W_OK) else Limit(f"the file {path} cannot be written")


def open_to_read(
    path: Path, factory: type[C], *, waits: float = 5.0, refused: sqlite3.Error | None = None
) -> tuple[C, Limit]:
    """A connection that only reads, and why. `refused`: what SQLite said to opening the file as usual.

    Raises: `refused`, where reading alone does not help; StoreUnavailable if changes in the log cannot be read.
    """
    if refused is not None and not (_code(refused) in _NOT_OPENED and _size(path)):
        raise refused
    uri = f"{path.resolve().as_uri()}?mode=ro"
    reason = f"the folder {path.parent} cannot be written" + (f" ({refused})" if refused is not None else "")
    try:
        return _connected(uri, factory, waits), Limit(reason)
    except sqlite3.OperationalError as error:
        if _code(error) not in _NOT_OPENED or not _size(path):
            raise
        if _has_log(path):
            raise StoreUnavailable(
                f"the store {path} has changes in its write-ahead log, which can only be read where files can be made",
                hint="Free some space or make the folder writable; or copy it whole, and set AGORA_HOME to the copy.",
            ) from error
    frozen = _state(path)
    return _connected(f"{uri}&immutable=1", factory, waits), Limit(reason, frozen)


def _connected(uri: str, factory: type[C], waits: float) -> C:
    connection = sqlite3.connect(
        uri, uri=True, isolation_level=None, check_same_thread=False, factory=factory, timeout=waits
    )
    try:
        connection.execute("SELECT 1 FROM sqlite_master LIMIT 1").fetchone()
    except BaseException:
        connection.close()
        raise
    return connection


def _code(error: sqlite3.Error) -> int:
    return getattr(error, "sqlite_errorcode", 0) & 0xFF


def _state(path: Path) -> tuple[int, int]:
    found = path.stat()
    return found.st_mtime_ns, found.st_size


def _has_log(path: Path) -> bool:
    return _size(path.with_name(path.name + "-wal")) > 0


def _size(path: Path) -> int:
    with contextlib.suppress(OSError):
        return path.stat().st_size
    return 0
