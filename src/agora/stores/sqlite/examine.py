from __future__ import annotations

import contextlib
import sqlite3
from collections.abc import Iterator
from pathlib import Path

from agora.ports.vector_index import Source
from agora.stores.sqlite.checks import Problem, find_problems
from agora.stores.sqlite.erasing import unfinished
from agora.stores.sqlite.failures import translated
from agora.stores.sqlite.index.checking import begun, index_problems
from agora.stores.sqlite.leftovers import told
from agora.stores.sqlite.migrations import LATEST, is_current, recognise, version_of
from agora.stores.sqlite.opening import Reader, open_to_read
from agora.stores.sqlite.rules import problem


def examine(path: Path, index: Path | None = None) -> list[Problem]:
    """Everything that is wrong with the store at `path`, found without changing it; none for a store not yet made.

    `index`: the folder of its own vector index, if it has that one. A store of an older release is held to the schema
    of that release.

    Raises: StoreUnavailable, StoreCorrupt, StoreVersion if it cannot be read at all.
    """
    if not path.exists():
        return []
    with translated(path), _reading(path) as connection:
        if not version_of(connection):
            # A file without anything in it, as the first opener makes it: a store to be.
            return []
        problems = find_problems(connection)
        if index is not None and version_of(connection) == LATEST:
            problems += _of_index(connection, index, known=bool(problems))
        return problems


@contextlib.contextmanager
def snapshot(path: Path) -> Iterator[Source | None]:
    """The store at `path` as an index of another kind follows it; None if there is nothing to follow.

    Raises: as `examine`.
    """
    if not path.exists():
        yield None
        return
    with translated(path), _reading(path) as connection:
        yield begun(connection)[0] if version_of(connection) == LATEST and _has_encoder(connection) else None


def _has_encoder(connection: sqlite3.Connection) -> bool:
    return connection.execute("SELECT 1 FROM encoders WHERE state = 'active'").fetchone() is not None


def remarks(path: Path) -> list[str]:
    """What there is to say of a store beside damage: older schema, a move to another encoder, an unfinished purge."""
    with translated(path), _reading(path) as connection:
        version = version_of(connection)
        if not version:
            return [f"{path} is empty: the next use makes a store of it"]
        if version != LATEST:
            return [f"{path} has schema {version}, of an older release: the next use brings it to {LATEST}"]
        try:
            return told(connection) + unfinished(connection)
        except (sqlite3.DatabaseError, MemoryError):
            # It is damaged, and the checks have said so.
            return []


@contextlib.contextmanager
def _reading(path: Path) -> Iterator[sqlite3.Connection]:
    """One read transaction: tables are compared with each other while other processes go on writing."""
    with contextlib.closing(open_to_read(path, Reader)[0]) as connection:
        connection.execute("BEGIN")
        recognise(connection)
        is_current(connection)
        yield connection


def _of_index(connection: sqlite3.Connection, index: Path, *, known: bool) -> list[Problem]:
    try:
        return index_problems(index, connection)
    except Exception as error:  # noqa: BLE001 - what comes out of a damaged page may be anything
        # The rows that it was made from cannot be read, which the checks of these have found.
        return [] if known else [problem("index_differs", f"the index cannot be compared with the store: {error}")]
