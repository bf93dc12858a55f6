"""The schema's history: numbered SQL files, applied in order, each once, in one transaction."""

from __future__ import annotations

import re
import sqlite3
from importlib import resources

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
    version = _version(connection)
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
    version = _version(connection)
    connection.execute(f"PRAGMA application_id = {APPLICATION_ID}")
    for number, name in _FILES:
        if number > version:
            for statement in _statements(resources.files(__name__).joinpath(name).read_text("utf-8")):
                connection.execute(statement)
    connection.execute(f"PRAGMA user_version = {LATEST}")


def check_version(connection: sqlite3.Connection) -> None:
    """Return if the schema is the one this release knows: another process may have migrated meanwhile.

    Raises: StoreVersion.
    """
    version = _version(connection)
    if version != LATEST:
        raise StoreVersion(
            f"the store now has schema {version}, this process knows {LATEST}",
            hint="A newer release of Agora has opened this store: restart this process.",
        )


def _version(connection: sqlite3.Connection) -> int:
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
