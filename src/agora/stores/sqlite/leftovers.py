"""What moves to other encoders leave behind, and how it goes: a little at a time, so that no writer waits for it."""

from __future__ import annotations

import sqlite3
import time
from collections.abc import Callable

from agora.model.deadline import Deadline
from agora.stores.sqlite.connection import Database
from agora.stores.sqlite.fulltext import LAYOUT, SPARE
from agora.stores.sqlite.incoming import empty_spare

_VECTORS = 256
_PASSAGES = 500
_PAGES = 256
"""Rows and pages in one transaction: a few milliseconds."""

_PAUSE = 0.012
"""Seconds between two transactions: longer than a writer sleeps between two tries where writers have no order."""

_IN_USE = "(SELECT layout FROM encoders WHERE state IN ('active', 'building'))"
_RETIRED = "v.encoder_id IN (SELECT id FROM encoders WHERE state = 'retired')"
_COMING = f"SELECT 1 FROM encoders WHERE state = 'building' AND layout <> {LAYOUT}"
_SPARE_FULL = (
    f"SELECT EXISTS (SELECT 1 FROM {SPARE.fulltext}_content) OR EXISTS (SELECT 1 FROM {SPARE.terms})"
    f" OR EXISTS (SELECT 1 FROM {SPARE.sizes})"
)


def clean(database: Database, deadline: Deadline) -> int:
    """Delete vectors of retired encoders and all that belongs to layouts without an encoder; how many vectors.

    The space goes back to the file system. Only for the process that has the right to re-embed.

    Raises: StoreUnavailable.
    """
    if _asked(database, deadline, lambda c: bool(c.execute(_SPARE_FULL).fetchone()[0] and not _is_coming(c))):
        database.write(empty_spare, deadline)
    vectors = _delete_vectors(database, deadline)
    _delete_passages(database, deadline)
    free, before = _free(database, deadline), None
    # A file that somebody made without auto-vacuum keeps its pages: they are used again.
    while free and free != before:
        database.write(_shorten, deadline)
        time.sleep(_PAUSE)
        free, before = _free(database, deadline), free
    if vectors:
        # The file gets shorter when the log is written back; who reads an older state now will see to that later.
        with database.apart() as connection:
            connection.execute("PRAGMA busy_timeout = 100")
            # The first writes nearly all of it back and is in nobody's way; the second holds the lock for the rest.
            connection.execute("PRAGMA wal_checkpoint(PASSIVE)")
            connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    return vectors


def told(connection: sqlite3.Connection) -> list[str]:
    """What there is to say of a store between two encoders; nothing of one that is not. Takes time with its size."""
    said = []
    for encoder_id, name in connection.execute("SELECT id, name FROM encoders WHERE state = 'building'").fetchall():
        done = connection.execute("SELECT count(*) FROM vectors WHERE encoder_id = ?", (encoder_id,)).fetchone()[0]
        said.append(f"on its way to {name}, {done} vectors so far: `agora reembed` goes on with it")
    left = connection.execute(f"SELECT count(*) FROM vectors v WHERE {_RETIRED}").fetchone()[0]
    stray = connection.execute(f"SELECT count(*) FROM passages WHERE layout NOT IN {_IN_USE}").fetchone()[0]
    if left or stray or (connection.execute(_SPARE_FULL).fetchone()[0] and not _is_coming(connection)):
        said.append(f"{left} vectors of former encoders are left over: `agora reembed` deletes them")
    return said


def _is_coming(connection: sqlite3.Connection) -> bool:
    """Whether the spare tables are in use."""
    return connection.execute(_COMING).fetchone() is not None


def _free(database: Database, deadline: Deadline) -> int:
    with database.read(deadline) as connection:
        return int(connection.execute("PRAGMA freelist_count").fetchone()[0])


def _asked(database: Database, deadline: Deadline, question: Callable[[sqlite3.Connection], bool]) -> bool:
    with database.read(deadline) as connection:
        return question(connection)


def _delete_vectors(database: Database, deadline: Deadline) -> int:
    # By the index on passages: an index on encoders alone would cost every save.
    some = f"SELECT v.passage_id, v.id FROM vectors v WHERE v.passage_id > ? AND {_RETIRED}"
    some += " ORDER BY v.passage_id LIMIT ?"
    deleted, last = 0, 0
    while True:
        with database.read(deadline) as connection:
            found = connection.execute(some, (last, _VECTORS)).fetchall()
        if not found:
            return deleted
        ids, last = [(each[1],) for each in found], found[-1][0] - 1
        _delete(database, deadline, "vectors", "id", ids)
        deleted += len(ids)


def _delete_passages(database: Database, deadline: Deadline) -> None:
    with database.read(deadline) as connection:
        unused = connection.execute(f"SELECT DISTINCT layout FROM passages WHERE layout NOT IN {_IN_USE}").fetchall()
    for (layout,) in unused:
        while True:
            with database.read(deadline) as connection:
                ids = connection.execute(
                    "SELECT id FROM passages WHERE layout = ? LIMIT ?", (layout, _PASSAGES)
                ).fetchall()
            if not ids:
                break
            _delete(database, deadline, "vectors", "passage_id", ids)
            _delete(database, deadline, "passages", "id", ids)


def _shorten(connection: sqlite3.Connection) -> None:
    # One page a statement: of a pragma without columns, Python's sqlite3 runs no more than the first step.
    for _ in range(_PAGES):
        connection.execute("PRAGMA incremental_vacuum(1)")


def _delete(database: Database, deadline: Deadline, table: str, column: str, values: list[tuple[int]]) -> None:
    def run(connection: sqlite3.Connection) -> None:
        # No byte of a deleted vector stays, neither between the rows of a page nor in one that cannot leave the file.
        connection.execute("PRAGMA secure_delete = ON")
        connection.executemany(f"DELETE FROM {table} WHERE {column} = ?", values)

    database.write(run, deadline)
    time.sleep(_PAUSE)
