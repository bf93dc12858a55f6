"""A backup in place of what the store holds, while other processes go on using it.

Its pages go through SQLite into the live file, as one write transaction: readers see the old content or the new one,
never a mixture; a death in the middle leaves the old one; no file is put in another's place, whose log could be played
into it. Whatever remembers the store's past notices another one by the hashes of the journal, and whatever remembers
its pages by the counter that SQLite raises with each commit.

Where the live file is so damaged that SQLite cannot write to it, and so nobody else can either, it is replaced.
"""

from __future__ import annotations

import contextlib
import secrets
import shutil
import sqlite3
import tempfile
import time
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

from agora.errors import AgoraError, StoreCorrupt, StoreUnavailable
from agora.stores.sqlite import fulltext
from agora.stores.sqlite.backup import PART, Contents, Told, contents, copy_pages, opened, part_of, sweep, usable
from agora.stores.sqlite.checks import find_problems
from agora.stores.sqlite.failures import BUSY, DAMAGED, translated
from agora.stores.sqlite.migrations import LATEST, is_current, migrate, recognise, version_of
from agora.stores.sqlite.repairing.turn import in_turn
from agora.stores.sqlite.store import INDEX_FOLDER
from agora.text.analysis import VERSION

BEFORE = ".before-restore-"
"""What comes between the store's name and the time in the name of the copy that is made before a restore."""

_PAGES = 1024
_SHOWN = 3
_OUTDATED = "fulltext_outdated"
"""The one problem that a whole backup of an older release has; it is mended on the way."""


class Backup:
    """A backup that has been checked, ready to be put in place. See `checked`."""

    def __init__(self, file: Path, connection: sqlite3.Connection, found: Contents) -> None:
        self.file = file
        self.contents = found
        self._connection = connection

    def put_in_place_of(self, store: Path, copy: Path | None, waits: float, told: Told) -> None:
        """Make this what the store at `store` holds; when this returns it is on the disk, and every process sees it.

        What was there goes to the file `copy`, complete to the last change before this one, or nowhere if None.
        Another process's write is waited for up to `waits` seconds, and so are, by the others, these ones.

        Raises: StoreUnavailable, StoreVersion for a store of a later release, StoreCorrupt for another program's file.
        The store is as it was then.
        """
        store.parent.mkdir(parents=True, mode=0o700, exist_ok=True)
        sweep(store)
        with _fitting(self._connection, store, told) as source, in_turn(store, waits):
            try:
                with translated(store):
                    _into(source, store, copy, waits, told)
            except StoreCorrupt:
                if not _is_beyond_use(store):
                    raise
                with translated(store):
                    _instead(source, store, copy, told)
            _verify(store, self.contents, copy)
            with translated(store):
                _let_lost_files_go(store, waits)


@contextlib.contextmanager
def checked(file: Path, now: int, told: Told) -> Iterator[Backup]:
    """The backup in `file`, every invariant of it checked; `now` in microseconds since 1970.

    Raises: StoreCorrupt if it is damaged or something else, StoreVersion if a later release wrote it.
    """
    with opened(file) as connection:
        told("checking", 0, None)
        with usable(file):
            problems = [each.message for each in find_problems(connection) if each.code != _OUTDATED]
            if problems:
                raise StoreCorrupt(f"it is damaged: {'; '.join(problems[:_SHOWN])}")
        yield Backup(file, connection, contents(connection, now))


@contextlib.contextmanager
def _fitting(source: sqlite3.Connection, store: Path, told: Told) -> Iterator[sqlite3.Connection]:
    """The backup as this release and this store need it: itself, or a private copy that has been brought up to date."""
    page_size = _page_size_of(store)
    other_size = page_size not in {None, source.execute("PRAGMA page_size").fetchone()[0]}
    if version_of(source) == LATEST and (fulltext.built_by(source) or 0) >= VERSION and not other_size:
        yield source
        return
    told("bringing the backup up to date", 0, None)
    with _scratch(store, named=other_size) as scratch:
        source.backup(scratch)
        scratch.execute("PRAGMA journal_mode = MEMORY")
        scratch.execute("BEGIN")
        migrate(scratch)
        if (fulltext.built_by(scratch) or 0) < VERSION:
            fulltext.rebuild(scratch)
        if problems := find_problems(scratch):
            raise StoreCorrupt(f"the backup cannot be brought up to date: {problems[0].message}")
        scratch.execute("COMMIT")
        if other_size:
            scratch.execute(f"PRAGMA page_size = {page_size}")
            scratch.execute("VACUUM")
        yield scratch


@contextlib.contextmanager
def _scratch(store: Path, *, named: bool) -> Iterator[sqlite3.Connection]:
    """An empty database whose file is gone at the end; without a name it goes even when this process is killed.

    SQLite changes the size of pages only in a file that has a name.
    """
    with contextlib.ExitStack() as stack:
        where = ""
        if named:
            made = stack.enter_context(
                tempfile.TemporaryDirectory(prefix=f"{store.name}.scratch-", suffix=PART, dir=store.parent)
            )
            where = str(Path(made) / "scratch")
        yield stack.enter_context(closing(sqlite3.connect(where, isolation_level=None)))


def _into(source: sqlite3.Connection, store: Path, copy: Path | None, waits: float, told: Told) -> None:
    gives_up = time.monotonic() + waits
    holds_lock = False

    def look(status: int, left: int, total: int) -> None:
        nonlocal holds_lock
        if status in BUSY:
            if time.monotonic() >= gives_up:
                raise StoreUnavailable(
                    f"the store {store} is locked by another process",
                    hint="Nothing was changed. Try again; if it lasts, end the process that holds the lock.",
                )
            return
        if not holds_lock:
            # From its first step on the backup holds the write lock: what is copied now is the last of the old past.
            holds_lock = True
            if copy is not None and not is_new:
                _keep(store, copy, told)
        told("restoring", total - left, total)

    # The step that copies the last page commits: it must not be the first.
    pages = max(1, min(_PAGES, source.execute("PRAGMA page_count").fetchone()[0] - 1))
    with closing(sqlite3.connect(store, isolation_level=None, timeout=0.05)) as live:
        is_new = _look_at(live, source)
        live.execute("PRAGMA synchronous = FULL")
        try:
            source.backup(live, pages=pages, progress=look, sleep=0.005)
        except (AgoraError, sqlite3.Error):
            if holds_lock and copy is not None:
                # Nothing has changed: it would be one more copy of what is there.
                copy.unlink(missing_ok=True)
            raise
        # The log has all pages a second time. Who still reads the old state will cut it later.
        live.execute("PRAGMA busy_timeout = 500")
        with contextlib.suppress(sqlite3.OperationalError):
            live.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()


def _look_at(live: sqlite3.Connection, source: sqlite3.Connection) -> bool:
    """Whether the live file is still to be made.

    Raises: StoreVersion, StoreCorrupt if it must not be overwritten.
    """
    try:
        recognise(live)
        is_current(live)
        is_new = not live.execute("PRAGMA page_count").fetchone()[0]
    except sqlite3.DatabaseError as error:
        if getattr(error, "sqlite_errorcode", 0) & 0xFF not in DAMAGED:
            raise
        # Pages that cannot be understood can be overwritten all the same.
        return False
    if is_new:
        live.execute(f"PRAGMA page_size = {source.execute('PRAGMA page_size').fetchone()[0]}")
        live.execute("PRAGMA journal_mode = WAL")
    return bool(is_new)


def _keep(store: Path, copy: Path, told: Told) -> None:
    # One more connection of SQLite's own: it reads what was committed last, whatever the other is about to commit.
    with part_of(copy) as part, closing(sqlite3.connect(store, isolation_level=None)) as old:
        copy_pages(old, part, copy, lambda _, done, total: told("keeping what was there", done, total))


def _page_size_of(store: Path) -> int | None:
    """The size of the store's pages; None if it is still to be made, or cannot be read."""
    if not store.exists():
        return None
    with closing(sqlite3.connect(store, isolation_level=None)) as live:
        try:
            pages, size = (live.execute(f"PRAGMA {each}").fetchone()[0] for each in ("page_count", "page_size"))
        except sqlite3.DatabaseError:
            return None
    return int(size) if pages else None


def _is_beyond_use(store: Path) -> bool:
    """Whether no process can open the store, and so none can make a log that belongs to it."""
    with closing(sqlite3.connect(store, isolation_level=None)) as live:
        try:
            recognise(live)
        except sqlite3.DatabaseError as error:
            return getattr(error, "sqlite_errorcode", 0) & 0xFF in DAMAGED
    return False


def _instead(source: sqlite3.Connection, store: Path, copy: Path | None, told: Told) -> None:
    aside = copy or store.with_name(f"{store.name}{BEFORE}{secrets.token_hex(4)}")
    moved: list[tuple[Path, Path]] = []
    try:
        with part_of(store) as part:
            copy_pages(source, part, store, told)
            if copy is not None:
                # This process has the file open nowhere, so that no lock is lost by reading it.
                shutil.copyfile(store, copy)
                copy.chmod(0o600)
            # Before the file itself: a log must never lie beside a file that it does not belong to.
            for ending in ("-wal", "-shm"):
                log, kept = (each.with_name(each.name + ending) for each in (store, aside))
                if log.exists():
                    log.replace(kept)
                    moved.append((log, kept))
    except BaseException:
        for log, kept in reversed(moved):
            kept.replace(log)
        if copy is not None:
            copy.unlink(missing_ok=True)
        raise
    if copy is None:
        for _, kept in moved:
            kept.unlink(missing_ok=True)


def _verify(store: Path, wanted: Contents, copy: Path | None) -> None:
    """Look at the store once more, as everybody else does now."""
    with translated(store), closing(sqlite3.connect(store, isolation_level=None)) as live:
        live.execute("BEGIN")
        found = live.execute("SELECT hash FROM journal WHERE sequence = ?", (wanted.sequence,)).fetchone()
        if (found and found[0]) != wanted.hash or live.execute("PRAGMA quick_check(1)").fetchone()[0] != "ok":
            kept = f" What was there before is in {copy}." if copy else ""
            raise StoreCorrupt(f"the store {store} does not hold what the backup holds", hint=f"Restore again.{kept}")


def _let_lost_files_go(store: Path, waits: float) -> None:
    """Let the store name no files of the vector index that are not there: they were made since, or on another machine.

    They are derived, and written anew by the next compaction.
    """
    with closing(sqlite3.connect(store, isolation_level=None, timeout=waits)) as live:
        named = live.execute("SELECT file FROM segments UNION SELECT state FROM generations").fetchall()
        if all(store.with_name(INDEX_FOLDER).joinpath(name).exists() for (name,) in named):
            return
        # Somebody else may be writing for long; then the status speaks of the files until the next compaction.
        with contextlib.suppress(sqlite3.OperationalError):
            live.execute("BEGIN IMMEDIATE")
            live.execute("DELETE FROM generations")
            live.execute("DELETE FROM segments")
            live.execute("COMMIT")
