from __future__ import annotations

import contextlib
import queue
import random
import sqlite3
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from pathlib import Path
from typing import Any, Literal, TypeVar, cast

from agora.errors import DeadlineExceeded, StoreUnavailable
from agora.model.deadline import Deadline
from agora.ports.log import Log
from agora.stores.sqlite.connecting import Connection, Opener, identity_of
from agora.stores.sqlite.failures import BUSY, translated
from agora.stores.sqlite.migrations import check_version
from agora.stores.sqlite.opening import WRITABLE
from agora.stores.sqlite.ticket import Tickets, queue_of

T = TypeVar("T")

_STEP = 0.25
"""Seconds after which a wait looks whether its call was cancelled."""

_WRITER_WAITS = 0.05
"""Seconds that SQLite itself waits for the write lock; the rest of the wait is ours, in the order of tickets."""

LOCK_FILE = "agora.lock"
"""Name of the file beside the store that puts writers in order."""


class Database:
    """One SQLite file: a writer thread behind a queue and a bounded pool of readers.

    Every write is one `BEGIN IMMEDIATE` transaction: the lock is taken before the first read, so a
    transaction never fails half-way on a lock and journal order is commit order. Writers of all processes take
    turns in the order in which they came; a foreign lock is waited for as well, up to `busy_timeout` seconds.
    """

    def __init__(  # noqa: PLR0913 - what the store decides about its file
        self,
        path: Path,
        ready: Callable[[sqlite3.Connection], bool],
        prepare: Callable[[sqlite3.Connection], None],
        *,
        synchronous: Literal["normal", "full"],
        busy_timeout: float,
        readers: int,
        log: Log | None = None,
    ) -> None:
        """Open the file, and open it anew should it be replaced.

        `ready` says in a read transaction whether the file can be used as it is, so that opening never waits for a
        writer; where it cannot, `prepare` runs in a write transaction. `busy_timeout` is in seconds.
        """
        self.path = path
        self._ready = ready
        self._prepare = prepare
        self._busy_timeout = busy_timeout
        self._readers = readers
        self._tickets = Tickets(path.with_name(LOCK_FILE), log)
        self._opener = Opener(path, self._tickets.path, synchronous=synchronous, busy_timeout=busy_timeout)
        self._jobs: queue.SimpleQueue[_Job | None] = queue.SimpleQueue()
        self._idle: queue.LifoQueue[Connection | None] = queue.LifoQueue()
        self._closed = False
        self._closing = threading.Lock()
        self._ending = threading.Lock()
        self._following = threading.Lock()
        with translated(path):
            writer = self._opener.open(_WRITER_WAITS)
            try:
                self._prepare_file(writer)
            except BaseException:
                writer.close()
                raise
        self._identity, self._limit = writer.identity, writer.limit
        # Connections are made when first needed; a place in the pool is worth one connection.
        for _ in range(readers):
            self._idle.put(None)
        self._thread = threading.Thread(target=self._work, args=(writer,), name="agora-writer", daemon=True)
        self._thread.start()

    def write(self, job: Callable[[sqlite3.Connection], T], deadline: Deadline) -> T:
        """The result of `job`, run inside one committed transaction; if it raises, nothing was written.

        A job that waits in the queue when the deadline passes is not run. Once it runs, its outcome is
        waited for: a commit is never reported as a failure.
        """
        deadline.check()
        result = self.submit(job, deadline)
        while True:
            with contextlib.suppress(TimeoutError):
                return result.result(timeout=min(_STEP, deadline.remaining() + 0.01))
            if result.done():
                # It may have ended just after the wait did; then this is its outcome, a TimeoutError too.
                return result.result()
            if deadline.remaining() == 0.0 and result.cancel():
                deadline.check()
                raise DeadlineExceeded("the write did not start before its deadline")

    def submit(self, job: Callable[[sqlite3.Connection], T], deadline: Deadline) -> Future[T]:
        """Queue `job` as `write` does and return at once; writes run in the order in which they were queued.

        Raises: StoreUnavailable once the store is closed.
        """
        task = _Job(cast("Callable[[sqlite3.Connection], Any]", job), deadline, Future())
        with self._closing:
            if self._closed:
                raise StoreUnavailable("the store is closed")
            self._jobs.put(task)
        return cast("Future[T]", task.result)

    @contextlib.contextmanager
    def read(self, deadline: Deadline) -> Iterator[sqlite3.Connection]:
        """A connection from the pool, outside any transaction; waits for a free one until the deadline."""
        connection = self._borrow(deadline)
        try:
            with translated(self.path):
                if self._closed:
                    raise StoreUnavailable("the store is closed")
                self._follow_file(connection)
                if connection is not None and not self._is_good(connection):
                    connection.close()
                    connection = None
                if connection is None:
                    connection = self._opener.open(self._busy_timeout)
                yield connection
        finally:
            if connection is not None and (self._closed or not _rolled_back(connection)):
                connection.close()
                connection = None
            self._idle.put(connection)

    def _is_good(self, connection: Connection) -> bool:
        limit = connection.limit
        return connection.identity == self._identity and (limit is None or limit.holds(self.path))

    @property
    def read_only(self) -> str | None:
        """Why the store can only be read; None if it can be written. As of the last write that was tried."""
        return None if self._limit is None else self._limit.reason

    def _borrow(self, deadline: Deadline) -> Connection | None:
        while True:
            deadline.check()
            with contextlib.suppress(queue.Empty):
                return self._idle.get(timeout=min(_STEP, deadline.remaining() + 0.001))

    @property
    def fair(self) -> bool:
        """Whether writers take turns; False where the file system has no locks, or none that can be used."""
        return self._tickets.fair

    @contextlib.contextmanager
    def apart(self) -> Iterator[sqlite3.Connection]:
        """A connection outside the pool and any transaction, for what cannot run inside one."""
        with translated(self.path), contextlib.closing(self._opener.open(self._busy_timeout)) as connection:
            yield connection

    def close(self) -> None:
        """Run the writes that were accepted, wait for reads under way, then close every connection.

        May be called twice, by several threads too: each returns when the files are let go.
        """
        with self._closing:
            if not self._closed:
                self._closed = True
                self._jobs.put(None)
        with self._ending:
            ends = time.monotonic() + max(self._busy_timeout, 1.0) + 5
            self._thread.join(timeout=ends - time.monotonic())
            places = 0
            with contextlib.suppress(queue.Empty):
                while places < self._readers:
                    connection = self._idle.get(timeout=max(0.001, ends - time.monotonic()))
                    places += 1
                    if connection is not None:
                        connection.close()
            # Whoever waits for a place gets one, and is told that the store is closed.
            for _ in range(places):
                self._idle.put(None)

    def _work(self, writer: Connection) -> None:
        while (task := self._jobs.get()) is not None:
            if not task.result.set_running_or_notify_cancel():
                continue
            try:
                with translated(self.path):
                    self._follow_file(writer)
                    # What could not be written a moment ago may be writable by now.
                    if writer.identity != self._identity or writer.limit is not None:
                        writer.close()
                        writer = self._opener.open(_WRITER_WAITS)
                        self._limit = writer.limit
                    outcome = self._transact(writer, task)
            except BaseException as error:  # noqa: BLE001 - handed to the caller, who raises it
                task.result.set_exception(error)
            else:
                task.result.set_result(outcome)
        with contextlib.suppress(sqlite3.Error):
            # Without the limit it would read whole indexes, at the very moment somebody waits for us to end.
            writer.execute("PRAGMA analysis_limit = 200")
            writer.execute("PRAGMA optimize")
        writer.close()
        self._tickets.close()

    def _transact(self, writer: Connection, task: _Job) -> object:
        if writer.limit is not None:
            raise StoreUnavailable(f"the store {self.path} can only be read: {writer.limit.reason}", hint=WRITABLE)
        try:
            self._begin(writer, task.deadline, self._tickets)
            return self._commit(writer, task)
        finally:
            self._tickets.leave()

    def _commit(self, writer: Connection, task: _Job) -> object:
        try:
            # The lock may have come too late: nobody waits for this write any more.
            task.deadline.check()
            check_version(writer)
            outcome = task.run(writer)
            writer.execute("COMMIT")
        except BaseException:
            if not _rolled_back(writer):
                # Left open, it would fail every later write; without an identity it is replaced.
                writer.close()
                writer.identity = None
            raise
        return outcome

    def _begin(self, connection: sqlite3.Connection, deadline: Deadline, tickets: Tickets) -> None:
        """Begin a write transaction, in turn; the turn lasts until `tickets` leave it."""
        gives_up = time.monotonic() + self._busy_timeout

        def left() -> float:
            return min(deadline.remaining(), gives_up - time.monotonic())

        while True:
            tickets.wait(left)
            try:
                connection.execute("BEGIN IMMEDIATE")
            except sqlite3.OperationalError as error:
                if error.sqlite_errorcode & 0xFF not in BUSY:
                    raise
                if left() <= 0:
                    # A lock that lasts tells more than the deadline that it outlasted.
                    with contextlib.suppress(DeadlineExceeded):
                        deadline.check()
                    raise
                # A foreign lock, or no order: full jitter keeps waiting writers from retrying in step.
                time.sleep(random.uniform(0.0005, 0.01))  # noqa: S311 - not a secret
            else:
                return

    def _follow_file(self, old: Connection | None) -> None:
        """Start over on a new file if somebody deleted or replaced this one under us.

        Without it, writes would go on into the deleted file: acknowledged, and lost at exit.
        """
        if identity_of(self.path) == self._identity:
            return
        with self._following:
            if identity_of(self.path) == self._identity:
                return
            if old is not None:
                # The log beside the new file may still be the old file's, and would be replayed into the new one.
                with contextlib.suppress(sqlite3.Error):
                    old.execute("PRAGMA busy_timeout = 50")
                    old.execute("PRAGMA wal_checkpoint(TRUNCATE)")
            fresh = self._opener.open(_WRITER_WAITS)
            try:
                self._prepare_file(fresh)
                self._identity = fresh.identity
            finally:
                fresh.close()

    def _prepare_file(self, connection: Connection) -> None:
        connection.execute("BEGIN")
        try:
            ready = self._ready(connection)
        finally:
            connection.execute("ROLLBACK")
        if not ready:
            if connection.limit is not None:
                raise StoreUnavailable(
                    f"the store {self.path} can only be read, and an older release wrote it: it cannot be migrated",
                    hint="Make the folder writable, or copy it whole and set AGORA_HOME to the copy.",
                )
            with queue_of(self._tickets.path) as tickets:
                self._begin(connection, Deadline(self._busy_timeout), tickets)
                self._prepare(connection)
                connection.execute("COMMIT")


class _Job:
    __slots__ = ("deadline", "result", "run")

    def __init__(self, run: Callable[[sqlite3.Connection], Any], deadline: Deadline, result: Future[Any]) -> None:
        self.run, self.deadline, self.result = run, deadline, result


def _rolled_back(connection: sqlite3.Connection) -> bool:
    """End any transaction without writing; False if the connection is of no more use."""
    try:
        if connection.in_transaction:
            connection.execute("ROLLBACK")
    except sqlite3.Error:
        return False
    return True
