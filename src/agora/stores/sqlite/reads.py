"""Who read what: written behind the answers, asked by saves and by cross-references."""

from __future__ import annotations

import contextlib
import sqlite3
import threading
from collections.abc import Callable, Sequence
from concurrent.futures import Future

from agora.errors import AgoraError
from agora.model.caller import Caller
from agora.model.crossref import Change, Changes, Read
from agora.model.deadline import Deadline
from agora.model.instants import from_micros, maybe, to_micros
from agora.stores.sqlite import journal, rows
from agora.stores.sqlite.connection import Database
from agora.text.echo import Echo

MOST = 10_000
"""Rows that the log keeps."""

MARKS = 5_000
"""Agents times namespaces whose marks are kept of those who came with one token; the newest are."""

DAYS = 30
_LIFE = DAYS * 86_400 * 1_000_000
_PATIENCE = 1.0
"""Seconds that writing the log waits for a lock: saves queue behind it, and a process that ends waits for it."""

_DELAY = 0.2
"""Seconds for which reads are collected: a transaction for each would cost a busy session more than its answers do."""

_TOGETHER = 256
"""Reads that are written together at most."""

Failed = Callable[[AgoraError], None]

_COMPARED = 64
"""Notes that a save is compared with, those its session read last."""

_SWEPT = 200
"""Rows past their time that one write deletes at most; older ones count for nothing meanwhile."""


class ReadLog:
    """Takes reads without waiting, and writes those of a moment together in the store's own queue.

    `flush` before a save: what its session read is then in the log when the save looks.
    """

    def __init__(self, database: Database) -> None:
        self._database = database
        self._lock = threading.Lock()
        self._waiting: list[Read] = []
        self._timer: threading.Timer | None = None
        self._failed: Failed | None = None
        self._written: Future[None] | None = None

    def add(self, read: Read, failed: Failed) -> None:
        """Note a read; returns at once. `failed` is told if it cannot be written, in whatever thread finds out."""
        with self._lock:
            self._waiting.append(read)
            self._failed = failed
            full = len(self._waiting) >= _TOGETHER
            if self._timer is None and not full:
                self._timer = threading.Timer(_DELAY, self.flush)
                self._timer.daemon = True
                self._timer.start()
        if full:
            self.flush()

    def flush(self) -> None:
        """Queue the write of everything that was added; returns at once."""
        refused = written = None
        # Queued under the lock: else a save whose own flush finds nothing left could still overtake the write.
        with self._lock:
            taken, self._waiting = self._waiting, []
            timer, self._timer = self._timer, None
            failed = self._failed
            if taken:
                try:
                    written = self._database.submit(lambda connection: write(connection, taken), Deadline(_PATIENCE))
                    self._written = written
                except AgoraError as error:
                    refused = error
        if timer is not None:
            timer.cancel()
        if failed is None:
            return
        if refused is not None:
            failed(refused)
        elif written is not None:
            written.add_done_callback(lambda done: _ended(done, failed))

    def settle(self, deadline: Deadline) -> None:
        """Wait until what was added before is written, or has failed."""
        self.flush()
        with self._lock:
            last = self._written
        while last is not None and not last.done():
            deadline.check()
            # Within its own patience it is run or refused.
            with contextlib.suppress(TimeoutError):
                last.exception(timeout=min(0.05, deadline.remaining() + 0.001))


def _ended(done: Future[None], failed: Failed) -> None:
    error = None if done.cancelled() else done.exception()
    if error is not None:
        failed(error if isinstance(error, AgoraError) else AgoraError(f"reads were not logged: {error!r}"))


def write(connection: sqlite3.Connection, taken: Sequence[Read]) -> None:
    """Log reads, oldest first, and drop what is too much or too old."""
    given: dict[tuple[str, str, str], tuple[int, int]] = {}
    seen: dict[tuple[str, str, str, str], tuple[int, int]] = {}
    # Since it was read a backup may have been put back: a mark ahead of the journal would hide what comes next.
    head = journal.head(connection)
    for read in taken:
        when = min(read.sequence, head), to_micros(read.at)
        for public_id in read.ids:
            # The newest comes last, so that it gets the highest number.
            given.pop((read.session, read.agent, public_id), None)
            given[read.session, read.agent, public_id] = when
        seen |= {(*_came_as(read.identity), read.agent, namespace): when for namespace in read.namespaces}
    connection.executemany(
        "INSERT OR REPLACE INTO reads (session, agent, item_id, sequence, at)"
        " SELECT ?, ?, id, ?, ? FROM items WHERE public_id = ? AND purged_at IS NULL",
        ((session, agent, *when, public_id) for (session, agent, public_id), when in given.items()),
    )
    connection.executemany(
        "INSERT INTO read_marks SELECT ?, ?, ?, id, ?, ? FROM namespaces WHERE name = ?"
        " ON CONFLICT (door, token, agent, namespace_id)"
        " DO UPDATE SET sequence = max(sequence, excluded.sequence), at = max(at, excluded.at)",
        ((*who, *when, namespace) for (*who, namespace), when in seen.items()),
    )
    for came_as in {(door, token) for door, token, *_ in seen}:
        _drop_oldest_marks(connection, came_as)
    connection.execute("DELETE FROM reads WHERE id <= (SELECT max(id) FROM reads) - ?", (MOST,))
    connection.execute(
        f"DELETE FROM reads WHERE id IN (SELECT id FROM reads ORDER BY id LIMIT {_SWEPT}) AND at < ?",
        (to_micros(taken[-1].at) - _LIFE,),
    )


def _drop_oldest_marks(connection: sqlite3.Connection, came_as: tuple[str, str]) -> None:
    """Keep `MARKS` of those who came so: whoever makes up names of agents fills no store, and drops no other's mark."""
    theirs = "FROM read_marks WHERE door = ? AND token = ?"
    if connection.execute(f"SELECT count(*) {theirs}", came_as).fetchone()[0] > MARKS:
        connection.execute(
            f"DELETE {theirs} AND (agent, namespace_id) IN"
            f" (SELECT agent, namespace_id {theirs} ORDER BY at DESC, sequence DESC LIMIT -1 OFFSET ?)",
            (*came_as, *came_as, MARKS),
        )


def echo_of(connection: sqlite3.Connection, caller: Caller, content: str, now: int) -> str | None:
    """Id of the note that `content` repeats, if the caller's session was given one; of several the nearest.

    A note that the caller's agent has itself saved, not as an echo, is its own: saying it again repeats nobody.
    """
    session, agent = caller.reader
    found = connection.execute(
        "SELECT i.id, i.public_id, substr(t.content, 1, 20000) FROM"
        " (SELECT item_id, id FROM reads WHERE session = ? AND agent = ? AND at >= ? ORDER BY id DESC LIMIT ?) r"
        " JOIN items i ON i.id = r.item_id JOIN texts t ON t.item_id = i.id"
        # A text of which three fifths stand in another is at most twice as long, give or take.
        " WHERE i.purged_at IS NULL AND length(t.content) * 5 >= ? ORDER BY r.id DESC",
        (session, agent, now - _LIFE, _COMPARED, 2 * len(content[:20_000])),
    ).fetchall()
    if not found:
        return None
    echo = Echo(content)
    shares = [(share, row, public_id) for row, public_id, text in found if (share := echo.share(text))]
    for _, row, public_id in sorted(shares, key=lambda each: -each[0]):
        own = connection.execute(
            "SELECT s.given FROM savers s JOIN agents a ON a.id = s.agent_id WHERE s.item_id = ? AND a.name = ?",
            (row, caller.agent),
        ).fetchall()
        if all(rows.echo_in(given) for (given,) in own):
            return str(public_id)
    return None


def changes(  # noqa: PLR0913 - who asks, about what, and from which time
    connection: sqlite3.Connection,
    namespaces: Sequence[str],
    caller: Caller,
    agents: Sequence[str],
    since: int | None,
    now: int,
    *,
    most: int,
    unread: bool = True,
) -> Changes:
    """What others did in `namespaces`: if `unread`, since the caller's agent was last answered from each.

    Whoever came with another token is another, whatever it calls itself: a name hides no change from whose it is.
    """
    wanted = rows.namespace_ids(connection, namespaces)
    session, reader = caller.reader
    inside = f"IN ({rows.places(wanted)})"
    mine = (*_came_as(caller.identity), reader)
    last = connection.execute(
        f"SELECT max(at) FROM read_marks WHERE door = ? AND token = ? AND agent = ? AND namespace_id {inside}",
        (*mine, *wanted),
    ).fetchone()[0]
    sql = [
        # Other names that the caller itself used in this session are no others.
        f"j.namespace_id {inside} AND (j.sequence > ifnull(r.sequence, 0) OR NOT ?) AND j.operation <> 'expire'",
        # What was said in conversations is nothing that anybody noted.
        f"NOT EXISTS (SELECT 1 FROM items i WHERE i.id = j.item_id AND NOT ({rows.FOUND}))",
        "NOT (c.token = ? AND (a.name IN (?, ?) OR (j.session = ? AND c.name = ?)))",
    ]
    values: list[object] = [*mine, *wanted, unread, caller.token, reader, caller.agent, session, caller.client]
    if agents:
        sql.append(f"a.name IN ({rows.places(agents)})")
        values += agents
    if since is not None:
        sql.append("j.at >= ?")
        values.append(since)
    where = (
        "FROM journal j JOIN agents a ON a.id = j.agent_id JOIN clients c ON c.id = j.client_id"
        " LEFT JOIN read_marks r ON r.door = ? AND r.token = ? AND r.agent = ? AND r.namespace_id = j.namespace_id"
        f" WHERE {' AND '.join(sql)}"
    )
    count = connection.execute(f"SELECT count(*) {where}", values).fetchone()[0]
    newest = connection.execute(
        "SELECT x.sequence, x.at, x.operation, x.subject, n.name, x.agent, x.client, x.session, x.origin, CASE WHEN"
        " i.forgotten_at IS NULL AND i.purged_at IS NULL AND (i.expires_at IS NULL OR i.expires_at > ?)"
        " THEN ifnull(t.title, substr(t.content, 1, 320)) END"
        " FROM (SELECT j.sequence, j.at, j.operation, j.subject, j.item_id, j.namespace_id, j.session, j.origin,"
        f" a.name AS agent, c.name AS client {where} ORDER BY j.sequence DESC LIMIT ?) x"
        " JOIN namespaces n ON n.id = x.namespace_id LEFT JOIN items i ON i.id = x.item_id"
        " LEFT JOIN texts t ON t.item_id = x.item_id ORDER BY x.sequence DESC",
        (now, *values, most),
    ).fetchall()
    return Changes(maybe(last), count, tuple(Change(row[0], from_micros(row[1]), *row[2:]) for row in newest))


def _came_as(identity: str | None) -> tuple[str, str]:
    """Door and token of somebody, as `Caller.identity` has it."""
    return ("local" if identity == "" else "http", identity or "")
