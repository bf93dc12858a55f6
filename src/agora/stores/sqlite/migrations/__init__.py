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


def migrate(connection: sqlite3.Connection) -> None:
    """Bring the schema to `LATEST` inside the caller's transaction, which must hold the write lock.

    Raises: StoreVersion for a store of a later release, StoreCorrupt for a file that is not a store.
    """
    version = _version(connection)
    if version == LATEST:
        return
    if version == 0:
        if connection.execute("SELECT 1 FROM sqlite_master LIMIT 1").fetchone():
            raise StoreCorrupt(
                "the file is an SQLite database, but not a store of Agora",
                hint="Move it away, or set AGORA_HOME to another folder.",
            )
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
    if _version(connection) != LATEST:
        raise StoreVersion(
            f"the store now has schema {_version(connection)}, this process knows {LATEST}",
            hint="A newer release of Agora has opened this store: restart this process.",
        )


def _version(connection: sqlite3.Connection) -> int:
    version = int(connection.execute("PRAGMA user_version").fetchone()[0])
    if version > LATEST:
        raise StoreVersion(
            f"the store has schema {version}, this release knows up to {LATEST}",
            hint="Install a newer release of Agora: `pip install --upgrade agora-memory`.",
        )
    if version and int(connection.execute("PRAGMA application_id").fetchone()[0]) != APPLICATION_ID:
        raise StoreCorrupt(
            "the file is an SQLite database, but not a store of Agora",
            hint="Move it away, or set AGORA_HOME to another folder.",
        )
    return version


def _statements(script: str) -> list[str]:
    # `executescript` would commit the caller's transaction first.
    statements, part = [], ""
    for line in script.splitlines(keepends=True):
        part += line
        if sqlite3.complete_statement(part):
            statements.append(part)
            part = ""
    return statements
