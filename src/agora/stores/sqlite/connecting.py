"""One connection to the store's file: opened, made if need be, configured, and told apart from one to another file."""

from __future__ import annotations

import os
import random
import sqlite3
import threading
import time
from pathlib import Path
from typing import Literal

from agora.errors import StoreUnavailable
from agora.stores.sqlite.failures import BUSY
from agora.stores.sqlite.migrations import recognise
from agora.stores.sqlite.opening import Limit, not_writable, open_to_read
from agora.stores.sqlite.ticket import queue_of

_ENDING = threading.Lock()

Identity = tuple[int, int]
"""Device and number of a file: another one under the same name has another."""


class Connection(sqlite3.Connection):
    """A connection that knows which file it is to, and whether it can only read."""

    identity: Identity | None = None
    limit: Limit | None = None

    def close(self) -> None:
        """Let the files go; the last one to a file takes its log in.

        One at a time: of two that close at the same moment each takes the other for one that goes on, and neither does.
        """
        with _ENDING:
            super().close()


class Opener:
    """Opens connections to one path, each as the store needs it. Thread-safe."""

    def __init__(self, path: Path, queue: Path, *, synchronous: Literal["normal", "full"], busy_timeout: float) -> None:
        """`queue` is the file by which writers take turns; `busy_timeout` is in seconds."""
        self._path = path
        self._queue = queue
        self._synchronous = synchronous
        self._busy_timeout = busy_timeout

    def open(self, waits: float) -> Connection:
        """A connection on which SQLite itself waits for a lock for so many seconds.

        Raises: sqlite3.Error, OSError; StoreUnavailable, StoreCorrupt.
        """
        _make_private_folder(self._path.parent)
        if identity_of(self._path) is None:
            self._make_file()
        before = identity_of(self._path)
        connection = sqlite3.connect(
            self._path, isolation_level=None, check_same_thread=False, factory=Connection, timeout=waits
        )
        try:
            _configure(connection, self._synchronous, self._busy_timeout)
            connection.limit = not_writable(self._path)
        except sqlite3.Error as error:
            connection.close()
            connection, limit = open_to_read(self._path, Connection, waits=waits, refused=error)
            connection.limit = limit
        except BaseException:
            connection.close()
            raise
        connection.identity = identity_of(self._path)
        if connection.identity is None or before not in {None, connection.identity}:
            connection.close()
            raise StoreUnavailable(f"the store {self._path} was taken away while it was opened", hint="Try again.")
        return connection

    def _make_file(self) -> None:
        """Make the file, empty and without a log: one beside a missing file was that file's, and others have it open.

        In turn, so that nobody's new log is taken for it. Without turns SQLite makes the file, as well as it can.
        """
        ends = time.monotonic() + self._busy_timeout
        with queue_of(self._queue) as tickets:
            if tickets.wait(lambda: ends - time.monotonic()) and identity_of(self._path) is None:
                for ending in ("-wal", "-shm"):
                    self._path.with_name(self._path.name + ending).unlink(missing_ok=True)
                os.close(os.open(self._path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600))


def identity_of(path: Path) -> Identity | None:
    """Which file is at `path` now; None if there is none."""
    try:
        found = os.stat(path)  # noqa: PTH116 - one system call on the hot path
    except FileNotFoundError:
        return None
    return found.st_dev, found.st_ino


def _configure(connection: sqlite3.Connection, synchronous: str, busy_timeout: float) -> None:
    # Switching to WAL and recovering one take a short exclusive lock that the busy handler does not cover.
    gives_up = time.monotonic() + busy_timeout
    while True:
        try:
            # Before anything is changed: the file may be somebody else's.
            recognise(connection)
            if connection.execute("PRAGMA page_count").fetchone()[0] == 0:
                # These two hold for the life of a file and must come before its first page is written; later the
                # second would only write once more. Larger pages waste less beside a vector; incremental vacuum
                # lets a purge give space back.
                connection.execute("PRAGMA page_size = 8192")
                connection.execute("PRAGMA auto_vacuum = INCREMENTAL")
            mode = connection.execute("PRAGMA journal_mode = WAL").fetchone()[0]
        except sqlite3.OperationalError as error:
            if error.sqlite_errorcode & 0xFF not in BUSY or time.monotonic() >= gives_up:
                raise
            time.sleep(random.uniform(0.0005, 0.01))  # noqa: S311 - not a secret
        else:
            break
    if mode != "wal":
        raise StoreUnavailable(
            f"the file system cannot hold a write-ahead log (journal mode stays {mode!r})",
            hint="Put the data folder on a local disk: set AGORA_HOME.",
        )
    connection.execute(f"PRAGMA synchronous = {synchronous.upper()}")
    connection.execute("PRAGMA foreign_keys = ON")
    connection.execute("PRAGMA temp_store = MEMORY")
    connection.execute("PRAGMA trusted_schema = OFF")


def _make_private_folder(folder: Path) -> None:
    if not folder.exists():
        folder.mkdir(parents=True, mode=0o700, exist_ok=True)
