"""The schema's history: numbered SQL files, applied in order, each once, in one transaction."""

from __future__ import annotations

import re
import sqlite3
from contextlib import closing
from functools import cache
from importlib import resources
from typing import NamedTuple, Self

from agora.errors import StoreCorrupt, StoreVersion

APPLICATION_ID = 0x41474F52
"""Marks the file as a store of Agora in SQLite's header: "AGOR"."""


def _files() -> list[tuple[int, str]]:
    names = [entry.name for entry in resources.files(__name__).iterdir()]
    return sorted((int(match[1]), match[0]) for name in names if (match := re.fullmatch(r"(\d{4})_\w+\.sql", name)))


_FILES = _files()
LATEST = _FILES[-1][0]
"""The schema that this release writes."""


def recognise(connection: sqlite3.Connection) -> None:
    """Return if the file is a store of Agora, of whatever version, or empty. Changes nothing.

    Raises: StoreCorrupt.
    """
    # Tables first: whoever makes them marks the file in the same transaction, so tables once seen are marked by the
    # time of the second question. An empty database has none yet: that is a store to be.
    tables = connection.execute("SELECT 1 FROM sqlite_master LIMIT 1").fetchone()
    if tables and connection.execute("PRAGMA application_id").fetchone()[0] != APPLICATION_ID:
        raise StoreCorrupt(
            "the file is an SQLite database, but not a store of Agora",
            hint="Move it away, or set AGORA_HOME to another folder.",
        )


def is_current(connection: sqlite3.Connection) -> bool:
    """Whether the schema is `LATEST`; False for an older or an empty one.

    Raises: StoreVersion for a store of a later release.
    """
    version = version_of(connection)
    if version > LATEST:
        raise StoreVersion(
            f"the store has schema {version}, this release knows up to {LATEST}",
            hint="Install a newer release of Agora: `pip install --upgrade agora-memory`.",
        )
    return version == LATEST


def migrate(connection: sqlite3.Connection) -> None:
    """Bring the schema to `LATEST` inside the caller's transaction, which must hold the write lock.

    Raises: StoreVersion for a store of a later release, StoreCorrupt for a file that is not a store.
    """
    recognise(connection)
    if is_current(connection):
        return
    _apply(connection, version_of(connection), LATEST)


def _apply(connection: sqlite3.Connection, version: int, target: int) -> None:
    connection.execute(f"PRAGMA application_id = {APPLICATION_ID}")
    for number, name in _FILES:
        if version < number <= target:
            for statement in _statements(resources.files(__name__).joinpath(name).read_text("utf-8")):
                connection.execute(statement)
    connection.execute(f"PRAGMA user_version = {target}")


class Object(NamedTuple):
    """A table or an index as the schema defines it, without its comments and its blanks."""

    kind: str
    table: str
    sql: str

    @classmethod
    def of(cls, kind: str, table: str, sql: str | None) -> Self:
        """As `sqlite_master` has it. Tables inside the full text are SQLite's: how it writes them is its own affair."""
        bare = "" if sql is None or table.startswith("fulltext_") else re.sub(r"--[^\n]*|\s+", "", sql)
        return cls(kind, table, bare)


@cache
def expected(version: int) -> dict[str, Object]:
    """What a store of this version has, by name: tables first, then the indexes on them."""
    return {name: Object.of(kind, table, sql) for name, kind, table, sql in _definitions(version)}


@cache
def definition(name: str) -> str:
    """The statement that makes a table or an index of this release's schema."""
    return next(sql for found, _, _, sql in _definitions(LATEST) if found == name)


@cache
def _definitions(version: int) -> tuple[tuple[str, str, str, str], ...]:
    with closing(sqlite3.connect(":memory:", isolation_level=None)) as empty:
        _apply(empty, 0, version)
        rows = empty.execute("SELECT name, type, tbl_name, sql FROM sqlite_master ORDER BY type DESC, rowid").fetchall()
    return tuple(row for row in rows if not row[0].startswith("sqlite_"))


def check_version(connection: sqlite3.Connection) -> None:
    """Return if the schema is the one this release knows: another process may have migrated meanwhile.

    Raises: StoreVersion.
    """
    version = version_of(connection)
    if version != LATEST:
        newer = "A newer release of Agora has opened this store: restart this process."
        older = "An older release of Agora wrote this store: it is migrated when it is opened."
        raise StoreVersion(
            f"the store now has schema {version}, this process knows {LATEST}",
            hint=newer if version > LATEST else older,
        )


def version_of(connection: sqlite3.Connection) -> int:
    """The schema's version; 0 for an empty file."""
    return int(connection.execute("PRAGMA user_version").fetchone()[0])


def _statements(script: str) -> list[str]:
    # `executescript` would commit the caller's transaction first.
    statements, part = [], ""
    for line in script.splitlines(keepends=True):
        part += line
        if sqlite3.complete_statement(part):
            statements.append(part)
            part = ""
    return statements
