"""A copy of a store that is in use: SQLite's online backup, checked before it gets its name.

All pages come from one read transaction, which holds up no writer and which no writer disturbs. Without it SQLite
begins anew each time that another process writes, and never ends on a busy store (measured: 40 MB in 0.06 s of copying,
beside two writers with 1,600 commits a second; `VACUUM INTO` takes four times as long and reads every row).
"""

from __future__ import annotations

import contextlib
import os
import re
import secrets
import shutil
import sqlite3
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NamedTuple

from agora.errors import StoreCorrupt, StoreUnavailable
from agora.stores.sqlite.checks import Problem, find_problems
from agora.stores.sqlite.checks_file import damage
from agora.stores.sqlite.failures import DAMAGED, translated
from agora.stores.sqlite.migrations import is_current, recognise, version_of
from agora.stores.sqlite.opening import open_to_read

Told = Callable[[str, int, int | None], None]
"""Told what is being done, how much of it is done, and of how much."""

PART = ".part"
"""What a file's name ends with while it is written."""

_PAGES = 1024
_OLD = 86_400.0
"""Seconds after which a file that was never finished is no longer anybody's work."""


class Contents(NamedTuple):
    """What a store, or a copy of one, holds."""

    notes: int
    """Notes that queries find: neither superseded nor forgotten nor expired."""
    versions: int
    """All versions of all notes."""
    facts: int
    """All statements, history included."""
    messages: int
    """Of all conversations."""
    sequence: int
    hash: bytes | None
    """Of the last change: two stores with the same one have the same past."""
    changed: int | None
    """When that was, in microseconds since 1970."""
    schema: int
    model: str | None


class Copied(NamedTuple):
    """What a backup holds, how large it is, and what the check of it found."""

    contents: Contents
    bytes: int
    problems: list[Problem]


def back_up(store: Path, target: Path, now: int, told: Told, *, quick: bool = False) -> Copied:
    """Write what the store at `store` holds at this moment to `target`, which appears whole or not at all.

    A file that is there is replaced. `quick` checks the file's structure alone; otherwise every invariant is checked.
    Problems that the store itself has are in the copy too: it is kept, and they are told.

    Raises: StoreUnavailable without a store or without room, StoreCorrupt, StoreVersion. Nothing is left then.
    """
    sweep(target)
    with part_of(target) as part:
        with in_use(store) as source:
            copy_pages(source, part, target, told)
        told("checking", 0, None)
        with opened(part) as copy:
            problems = list(damage(copy)) if quick else find_problems(copy)
            found = contents(copy, now)
        if any(each.code == "file_damaged" for each in problems) and not _is_damaged(store):
            raise StoreUnavailable(
                f"the backup could not be read back as it was written: {problems[0].message}",
                hint="The store itself is whole. Check the disk that the backup goes to, or use another one.",
            )
    return Copied(found, target.stat().st_size, problems)


def contents(connection: sqlite3.Connection, now: int) -> Contents:
    """What the store behind an open transaction holds, as of `now` in microseconds since 1970."""
    notes, versions, facts, messages = connection.execute(
        "SELECT coalesce(sum(type = 'note' AND superseded_by IS NULL AND forgotten_at IS NULL"
        " AND (expires_at IS NULL OR expires_at > ?)), 0), coalesce(sum(type = 'note'), 0),"
        " coalesce(sum(type = 'fact'), 0), coalesce(sum(type = 'message'), 0) FROM items",
        (now,),
    ).fetchone()
    last = connection.execute("SELECT sequence, hash, at FROM journal ORDER BY sequence DESC LIMIT 1").fetchone()
    sequence, hash_, changed = last or (0, None, None)
    model = connection.execute("SELECT name FROM encoders WHERE state = 'active'").fetchone()
    schema = version_of(connection)
    counts = (notes, versions, facts, messages)
    return Contents(*counts, sequence, hash_, changed, schema, None if model is None else model[0])


@contextlib.contextmanager
def opened(file: Path) -> Iterator[sqlite3.Connection]:
    """A store that nobody uses, in one read transaction. Nothing is written beside it unless it has a log of its own.

    Raises: StoreCorrupt if it is no store of Agora or cannot be read, StoreVersion if a later release wrote it.
    """
    log = file.with_name(file.name + "-wal")
    # Without a log SQLite would still make one, and leave it on a medium that cannot be written.
    alone = "" if log.exists() and log.stat().st_size else "&immutable=1"
    with usable(file):
        connection = sqlite3.connect(f"{file.resolve().as_uri()}?mode=ro{alone}", uri=True, isolation_level=None)
    with contextlib.closing(connection):
        with usable(file):
            connection.execute("BEGIN")
            recognise(connection)
            if not version_of(connection):
                raise StoreCorrupt("there is nothing in it")
            is_current(connection)
        yield connection


@contextlib.contextmanager
def usable(file: Path) -> Iterator[None]:
    """What is wrong with a backup, as an error that names it and says what to do."""
    hint = "Nothing was changed. Use another file: `agora backup` makes one."
    try:
        yield
    except StoreCorrupt as error:
        raise StoreCorrupt(f"{file} is no backup that can be used: {error.message}", hint=hint) from error
    except sqlite3.DatabaseError as error:
        if getattr(error, "sqlite_errorcode", 0) & 0xFF not in DAMAGED:
            raise StoreUnavailable(f"{file} cannot be read: {error}", hint="Check its permissions.") from error
        raise StoreCorrupt(f"{file} is no backup that can be used: {error}", hint=hint) from error


@contextlib.contextmanager
def in_use(store: Path) -> Iterator[sqlite3.Connection]:
    """The store in one read transaction, whoever else is reading and writing."""
    if not store.exists():
        raise StoreUnavailable(f"there is no store at {store}", hint="Set AGORA_HOME, or --home, to the data folder.")
    with translated(store), contextlib.closing(_connected(store)) as connection:
        connection.execute("BEGIN")
        recognise(connection)
        if not version_of(connection):
            raise StoreUnavailable(f"there is nothing in the store {store} yet", hint="Save a note first.")
        is_current(connection)
        yield connection


def _connected(store: Path) -> sqlite3.Connection:
    # As one that may write: whoever closes a store last has to tidy up after it.
    connection = sqlite3.connect(f"{store.resolve().as_uri()}?mode=rw", uri=True, isolation_level=None)
    try:
        connection.execute("SELECT 1 FROM sqlite_master LIMIT 1").fetchone()
    except sqlite3.OperationalError as error:
        connection.close()
        return open_to_read(store, sqlite3.Connection, refused=error)[0]
    except BaseException:
        connection.close()
        raise
    return connection


def copy_pages(source: sqlite3.Connection, file: Path, target: Path, told: Told) -> None:
    """Copy every page of an open transaction to `file`, which has its place on the disk when this returns.

    `target` is the name that errors speak of.
    """
    copy = sqlite3.connect(file, isolation_level=None)
    try:
        # Worth nothing before it is whole.
        copy.execute("PRAGMA journal_mode = OFF")
        copy.execute("PRAGMA synchronous = OFF")
        source.backup(copy, pages=_PAGES, progress=lambda _, left, total: told("copying", total - left, total))
    except sqlite3.Error as error:
        code = getattr(error, "sqlite_errorcode", 0) & 0xFF
        if code in DAMAGED:
            raise
        reason = "the disk is full" if code == sqlite3.SQLITE_FULL else str(error)
        raise StoreUnavailable(
            f"the file {target} cannot be written: {reason}", hint="Nothing is left of it. Use a disk with more room."
        ) from error
    finally:
        copy.close()
    _synced(file)


@contextlib.contextmanager
def part_of(target: Path) -> Iterator[Path]:
    """A new file beside `target`, for its owner alone, that takes its name at the end; gone if anything fails."""
    part = target.with_name(f"{target.name}.{secrets.token_hex(4)}{PART}")
    try:
        os.close(os.open(part, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600))
        try:
            yield part
            part.replace(target)
            _synced(target.parent)
        except BaseException:
            for ending in ("", "-journal", "-wal", "-shm"):
                part.with_name(part.name + ending).unlink(missing_ok=True)
            raise
    except OSError as error:
        raise StoreUnavailable(
            f"the file {target} cannot be written: {error.strerror or error}",
            hint="Name a file in a folder that this user can write, and that nobody has open.",
        ) from error


def _synced(path: Path) -> None:
    if path.is_dir() and os.name == "nt":
        # A folder cannot be opened there, and its names need no help.
        return
    descriptor = os.open(path, os.O_RDONLY if path.is_dir() else os.O_RDWR)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def sweep(target: Path) -> None:
    """Remove what backups to this name, or restores of this store, left when they were killed a day ago or earlier."""
    ours = re.compile(
        re.escape(target.name) + r"(\.before-restore-\w+(-\d+)?)?\.([0-9a-f]{8}|scratch-\w+)" + re.escape(PART)
    )
    with contextlib.suppress(OSError):
        for left in target.parent.iterdir():
            if ours.fullmatch(left.name) and time.time() - left.stat().st_mtime > _OLD:
                if left.is_dir():
                    shutil.rmtree(left)
                else:
                    left.unlink(missing_ok=True)


def _is_damaged(store: Path) -> bool:
    with in_use(store) as connection:
        return any(each.code == "file_damaged" for each in damage(connection))
