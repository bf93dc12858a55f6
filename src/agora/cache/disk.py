"""The second level: one deletable SQLite file, `cache.db`, shared by every process on the data folder.

    entries(kind, key, value, made_at, expires_at)     instants in microseconds, key = SHA-256

A value begins with the SHA-256 of its kind, its key and the rest of it: the file is not synced, and after a power cut
a page of it may be one of another time. What does not agree is missed.

Nothing in it is canonical. A file that cannot be used is put aside once and made anew; if that fails too, the level is
off and says why. Reads happen on the caller's path, writes in one background thread: a query never waits for the disk.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import queue
import sqlite3
import threading
from collections.abc import Callable
from pathlib import Path

from agora.errors import StoreUnavailable
from agora.ports.log import Log

_SCHEMA = 2
_WAITING = 1000
"""Writes that may wait; what comes beyond is dropped, which costs a hit later and nothing else."""

_SWEEP = 200
"""Writes between two looks at the number of entries."""


_TRY = "Try again, or delete the file: nothing but speed is lost."


class Disk:
    """Values by kind and key, with a life and a largest number each. Thread-safe."""

    def __init__(self, path: Path, log: Log, *, entries: int, sweep: int = _SWEEP) -> None:
        self.path = path
        self.off: str | None = None
        """Why the level is off; None while it works."""
        self._log = log
        self._entries = entries
        self._sweep = max(1, min(sweep, entries))
        self._local = threading.local()
        self._opened: list[sqlite3.Connection] = []
        self._lock = threading.Lock()
        self._waiting: queue.Queue[Callable[[sqlite3.Connection], None] | None] = queue.Queue(_WAITING)
        self._written = 0
        self._identity: tuple[int, int] | None = None
        self._start()
        self._thread = threading.Thread(target=self._work, name="agora-cache", daemon=True)
        self._thread.start()

    def get(self, kind: str, key: bytes, now: int) -> tuple[bytes, int] | None:
        """The value and the instant at which it expires, if it is there and alive at `now`."""
        if self.off is not None:
            return None
        try:
            found = (
                self._connection()
                .execute(
                    "SELECT value, expires_at FROM entries WHERE kind = ? AND key = ? AND expires_at > ?",
                    (kind, key, now),
                )
                .fetchone()
            )
        except (sqlite3.Error, OSError) as error:
            self._fail(error)
            return None
        if found is None or not _is_whole(kind, key, found[0]):
            return None
        return bytes(found[0][_SUM:]), int(found[1])

    def put(self, kind: str, key: bytes, value: Callable[[], bytes], now: int, until: int) -> None:
        """Keep what `value` makes until an instant, soon; returns at once. `value` runs in the background too."""

        def write(connection: sqlite3.Connection) -> None:
            content = value()
            connection.execute(
                "INSERT INTO entries VALUES (?, ?, ?, ?, ?) ON CONFLICT (kind, key) DO UPDATE SET"
                " value = excluded.value, made_at = excluded.made_at, expires_at = excluded.expires_at",
                (kind, key, _sum(kind, key, content) + content, now, until),
            )
            self._written += 1
            if self._written % self._sweep == 0:
                self._shrink(connection, kind, now)

        if self.off is None:
            with contextlib.suppress(queue.Full):
                self._waiting.put_nowait(write)

    def count(self, kind: str) -> int:
        """Entries of a kind, those past their life included until they are swept."""
        if self.off is not None:
            return 0
        try:
            row = self._connection().execute("SELECT count(*) FROM entries WHERE kind = ?", (kind,)).fetchone()
        except (sqlite3.Error, OSError) as error:
            self._fail(error)
            return 0
        return int(row[0])

    def clear(self) -> int:
        """Delete every entry, in the file's bytes too; returns how many there were.

        Raises: StoreUnavailable if another process keeps the file busy; entries may be gone then, their bytes not.
        """
        if self.off is not None:
            return 0
        self.flush()
        try:
            connection = self._connection()
            # A process that holds a read open makes the file wait a moment, not the caller fail.
            connection.execute("PRAGMA busy_timeout = 5000")
            found = int(connection.execute("DELETE FROM entries").rowcount)
            connection.execute("VACUUM")
            busy, *_ = connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()
        except (sqlite3.Error, OSError) as error:
            raise StoreUnavailable(f"the cache {self.path} cannot be emptied: {error}", hint=_TRY) from error
        if busy:
            raise StoreUnavailable(f"the cache {self.path} is in use by another process", hint=_TRY)
        return found

    def flush(self) -> None:
        """Wait until every write that is waiting now is done."""
        done = threading.Event()
        self._waiting.put(lambda _: done.set())
        done.wait(10)

    def close(self) -> None:
        """Finish the waiting writes, then close the file."""
        with contextlib.suppress(queue.Full):
            self._waiting.put(None, timeout=1)
        self._thread.join(5)
        with self._lock:
            for connection in self._opened:
                connection.close()
            self._opened.clear()

    def _work(self) -> None:
        while (write := self._waiting.get()) is not None:
            try:
                write(self._connection())
            except (sqlite3.Error, OSError) as error:
                self._fail(error)
            except ValueError as error:
                # A value that cannot be written down is missed, and nothing else.
                self._log.warning("cache entry was left out", error=type(error).__name__)

    def _shrink(self, connection: sqlite3.Connection, kind: str, now: int) -> None:
        connection.execute("DELETE FROM entries WHERE expires_at <= ?", (now,))
        connection.execute(
            "DELETE FROM entries WHERE kind = ? AND key IN (SELECT key FROM entries WHERE kind = ?"
            " ORDER BY made_at DESC, key LIMIT -1 OFFSET ?)",
            (kind, kind, self._entries),
        )

    def _start(self) -> None:
        try:
            self._connection()
        except (sqlite3.Error, OSError) as error:
            self._fail(error)

    def _fail(self, error: Exception) -> None:
        """Put a damaged file aside and start over; anything else turns the level off."""
        damaged = isinstance(error, sqlite3.DatabaseError) and not isinstance(error, sqlite3.OperationalError)
        if damaged and self._discard():
            self._log.warning("cache file was damaged and made anew", path=str(self.path), error=str(error))
            return
        if isinstance(error, sqlite3.OperationalError) and ("locked" in str(error) or "disk is full" in str(error)):
            # Another process is sweeping, or there is no room just now: this entry is missed, the level stays.
            return
        self.off = f"{self.path}: {error}"
        self._log.warning("disk cache is off", path=str(self.path), error=str(error))

    def _discard(self) -> bool:
        try:
            for name in ("", "-wal", "-shm"):
                self.path.with_name(self.path.name + name).unlink(missing_ok=True)
            self._connection()
        except (sqlite3.Error, OSError):
            return False
        return True

    def _connection(self) -> sqlite3.Connection:
        """This thread's connection, made anew when the file was deleted or replaced."""
        found: tuple[sqlite3.Connection, tuple[int, int] | None] | None = getattr(self._local, "open", None)
        identity = _identity(self.path)
        if found is not None and found[1] == identity and identity is not None:
            return found[0]
        if found is not None:
            found[0].close()
        with contextlib.suppress(FileExistsError):
            # Else it would be as open to others as the program wants its own files to be; log and index follow it.
            os.close(os.open(self.path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600))
        connection = sqlite3.connect(self.path, timeout=0.2, isolation_level=None, check_same_thread=False)
        try:
            connection.execute("PRAGMA journal_mode = WAL")
            # A lost entry costs a miss: the disk need not be waited for.
            connection.execute("PRAGMA synchronous = OFF")
            connection.execute("PRAGMA secure_delete = ON")
            if connection.execute("PRAGMA user_version").fetchone()[0] != _SCHEMA:
                connection.executescript(
                    "BEGIN IMMEDIATE; DROP TABLE IF EXISTS entries;"
                    "CREATE TABLE entries (kind TEXT NOT NULL, key BLOB NOT NULL, value BLOB NOT NULL,"
                    " made_at INTEGER NOT NULL, expires_at INTEGER NOT NULL, PRIMARY KEY (kind, key)) WITHOUT ROWID;"
                    "CREATE INDEX entries_age ON entries (kind, made_at);"
                    f"PRAGMA user_version = {_SCHEMA}; COMMIT;"
                )
        except BaseException:
            connection.close()
            raise
        self._local.open = (connection, _identity(self.path))
        with self._lock:
            self._opened.append(connection)
        return connection


_SUM = 32


def _sum(kind: str, key: bytes, content: bytes) -> bytes:
    return hashlib.sha256(kind.encode() + b"\0" + key + content).digest()


def _is_whole(kind: str, key: bytes, stored: bytes) -> bool:
    return bytes(stored[:_SUM]) == _sum(kind, key, stored[_SUM:])


def _identity(path: Path) -> tuple[int, int] | None:
    try:
        found = os.stat(path)  # noqa: PTH116 - one system call on the hot path
    except FileNotFoundError:
        return None
    return found.st_dev, found.st_ino
