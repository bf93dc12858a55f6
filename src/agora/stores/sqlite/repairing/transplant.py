"""A damaged file made anew: every table that can be read into a fresh file, then its pages in place of the old ones.

The swap is SQLite's online backup, one transaction of the damaged store: processes that have it open see the old
content or the new, and go on. What is canonical is copied whole or not at all; of derived tables what can be read.
"""

from __future__ import annotations

import contextlib
import os
import sqlite3
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing
from pathlib import Path

from agora.errors import StoreCorrupt, StoreUnavailable
from agora.stores.sqlite.checks_file import DERIVED
from agora.stores.sqlite.migrations import LATEST, expected, migrate
from agora.stores.sqlite.repairing.turn import in_turn

FRESH = ".repairing"
"""What follows the store's name in that of the file in which it is made anew."""

_TRIES = 5
_PAGES = 512
_STEP = 1000


class _Changed(Exception):
    """Somebody wrote to the store after it was read."""


def transplant(path: Path, waits: float, mend: Callable[[sqlite3.Connection], None]) -> None:
    """Replace the content of the damaged file at `path` by what can be read of it, after `mend` has worked on that.

    Raises: StoreCorrupt if a canonical table cannot be read; StoreUnavailable. Nothing is changed then.
    """
    fresh = path.with_name(path.name + FRESH)
    for _ in range(_TRIES):
        # In turn, so that nobody comes between the end of the reading and the swap.
        with in_turn(path, waits), contextlib.suppress(_Changed):
            _once(path, fresh, waits, mend)
            return
    raise StoreUnavailable(
        "other processes kept writing to the store while it was repaired; nothing was changed",
        hint="End them, or try again when they are idle.",
    )


def sweep(path: Path, waits: float) -> None:
    """Delete what a repair that was killed has left beside the store at `path`: it holds notes.

    Raises: StoreUnavailable.
    """
    fresh = path.with_name(path.name + FRESH)
    if fresh.exists():
        # In turn: a repair that is under way has one of its own there.
        with in_turn(path, waits):
            _remove(fresh)


def _once(path: Path, fresh: Path, waits: float, mend: Callable[[sqlite3.Connection], None]) -> None:
    with closing(_connected(path, waits)) as guard, closing(_connected(path, waits)) as watch:
        # Nobody else writes, and nobody else repairs, while this one reads.
        guard.execute("BEGIN IMMEDIATE")
        before = _version(watch)
        try:
            with closing(_made(fresh, guard)) as made:
                mend(made)
                made.execute("COMMIT")
                guard.execute("ROLLBACK")
                _swap(made, path, waits, lambda: _version(watch) == before)
        finally:
            _remove(fresh)


def _made(fresh: Path, source: sqlite3.Connection) -> sqlite3.Connection:
    # What a killed repair left holds notes too.
    _remove(fresh)
    os.close(os.open(fresh, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600))
    made = sqlite3.connect(fresh, isolation_level=None)
    try:
        page_size = source.execute("PRAGMA page_size").fetchone()[0]
        made.execute(f"PRAGMA page_size = {page_size}")
        made.execute("PRAGMA auto_vacuum = INCREMENTAL")
        # A file that is worth nothing before it is whole.
        made.execute("PRAGMA journal_mode = MEMORY")
        made.execute("PRAGMA synchronous = OFF")
        made.execute("BEGIN")
        migrate(made)
        made.execute("DELETE FROM meta")
        for name, each in expected(LATEST).items():
            if each.kind == "table" and name != "fulltext" and not each.table.startswith("fulltext_"):
                _copy(source, made, name)
        made.execute("DELETE FROM sqlite_sequence")
        with contextlib.suppress(sqlite3.DatabaseError):
            # Where it cannot be read, the numbers are known from the rows.
            given = source.execute("SELECT name, seq FROM sqlite_sequence")
            made.executemany("INSERT INTO sqlite_sequence VALUES (?, ?)", given)
    except BaseException:
        made.close()
        raise
    return made


def _copy(source: sqlite3.Connection, target: sqlite3.Connection, table: str) -> None:
    columns = [column[1] for column in target.execute(f"PRAGMA table_info({table})")]
    there = [column[1] for column in source.execute(f"PRAGMA table_info({table})")]
    shared = [column for column in columns if column in there]
    if not shared:
        # Of an older schema, or lost.
        if table in DERIVED or not _is_lost(source, table):
            return
        raise _unreadable(table, "it is missing")
    named, marks = ", ".join(shared), ", ".join("?" * len(shared))
    insert = f"INSERT INTO {table} ({named}) VALUES ({marks})"
    select = f"SELECT {named} FROM {table} NOT INDEXED"
    if table not in DERIVED:
        try:
            target.executemany(insert, source.execute(select))
        except (sqlite3.DatabaseError, MemoryError) as error:
            raise _unreadable(table, str(error)) from error
        return
    key = "rowid" if "WITHOUT ROWID" not in _sql(target, table) else columns[0]
    for order in ("", " DESC"):
        # From both ends up to the damage.
        with contextlib.suppress(sqlite3.DatabaseError, MemoryError):
            for rows in _blocks(source.execute(f"{select} ORDER BY {key}{order}")):
                target.executemany(insert.replace("INSERT", "INSERT OR IGNORE", 1), rows)


def _blocks(cursor: sqlite3.Cursor) -> Iterator[Sequence[tuple[object, ...]]]:
    """What a cursor gives, to the last row before it fails."""
    rows: list[tuple[object, ...]] = []
    try:
        for row in cursor:
            rows.append(row)
            if len(rows) == _STEP:
                yield rows
                rows = []
    except (sqlite3.DatabaseError, MemoryError):
        yield rows
        raise
    yield rows


def _is_lost(source: sqlite3.Connection, table: str) -> bool:
    version = source.execute("PRAGMA user_version").fetchone()[0]
    return table in expected(version)


def _sql(connection: sqlite3.Connection, table: str) -> str:
    return str(connection.execute("SELECT sql FROM sqlite_master WHERE name = ?", (table,)).fetchone()[0])


def _unreadable(table: str, why: str) -> StoreCorrupt:
    return StoreCorrupt(
        f"the table {table!r} cannot be read whole ({why}); nothing was changed",
        hint="Put a backup back: `agora restore-backup FILE`.",
    )


def _version(watch: sqlite3.Connection) -> int:
    """A number that changes whenever another connection commits."""
    return int(watch.execute("PRAGMA data_version").fetchone()[0])


def _swap(made: sqlite3.Connection, path: Path, waits: float, unchanged: Callable[[], bool]) -> None:
    checked, gives_up = False, time.monotonic() + waits

    def look(status: int, remaining: int, total: int) -> None:
        nonlocal checked
        del remaining, total
        if status == sqlite3.SQLITE_OK and not checked:
            # From its first step on the backup holds the write lock.
            if not unchanged():
                raise _Changed
            checked = True
        elif status != sqlite3.SQLITE_DONE and not checked and time.monotonic() >= gives_up:
            raise StoreUnavailable(
                f"the store {path} is locked by another process",
                hint="Nothing was changed. Try again; if it lasts, end the process that holds the lock.",
            )

    # The step that copies the last page commits: it must not be the first.
    pages = min(_PAGES, made.execute("PRAGMA page_count").fetchone()[0] - 1)
    with closing(_connected(path, waits)) as target:
        made.backup(target, pages=pages, progress=look, sleep=0.01)


def _connected(path: Path, waits: float) -> sqlite3.Connection:
    return sqlite3.connect(path, isolation_level=None, timeout=waits)


def _remove(fresh: Path) -> None:
    for ending in ("", "-journal", "-wal", "-shm"):
        fresh.with_name(fresh.name + ending).unlink(missing_ok=True)
