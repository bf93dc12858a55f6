from __future__ import annotations

import sqlite3
from datetime import datetime

from agora.errors import PayloadTooLarge
from agora.model.deadline import Deadline
from agora.model.instants import from_micros, to_micros
from agora.ports.kept_results import KeptResult
from agora.stores.sqlite.connection import Database
from agora.stores.sqlite.migrations import check_version

MOST = 200_000_000
"""Bytes of all results together: those beyond it go, the oldest first."""

LARGEST = 20_000_000
"""Bytes of one result."""


class SqliteKeptResults:
    """Implements `agora.ports.kept_results.KeptResults`."""

    def __init__(self, database: Database, *, most: int = MOST, largest: int = LARGEST) -> None:
        """`most` and `largest` are in bytes: of all results together and of one."""
        self._database = database
        self._most = most
        self._largest = min(largest, most)

    def keep(self, result: KeptResult, deadline: Deadline) -> None:
        """As `KeptResults.keep`."""
        if len(result.content) > self._largest:
            raise PayloadTooLarge("content", f"must have at most {self._largest:,} bytes", len(result.content))
        row = (
            *(result.id, result.namespace, result.backend, result.tool),
            *(to_micros(result.created_at), to_micros(result.expires_at), len(result.content), result.content),
        )

        def run(connection: sqlite3.Connection) -> None:
            _sweep(connection, row[4])
            connection.execute("INSERT INTO kept_results VALUES (?, ?, ?, ?, ?, ?, ?, ?)", row)
            self._bound(connection)

        self._database.write(run, deadline)

    def fetch(self, id_: str, now: datetime, deadline: Deadline) -> KeptResult | None:
        """As `KeptResults.fetch`."""
        with self._database.read(deadline) as connection:
            connection.execute("BEGIN")
            check_version(connection)
            found = connection.execute(
                "SELECT id, namespace, backend, tool, created_at, expires_at, content FROM kept_results"
                " WHERE id = ? AND expires_at > ?",
                (id_, to_micros(now)),
            ).fetchone()
        return None if found is None else _result(found)

    def sweep(self, now: datetime, deadline: Deadline) -> int:
        """As `KeptResults.sweep`."""
        micros = to_micros(now)
        with self._database.read(deadline) as connection:
            old = connection.execute("SELECT 1 FROM kept_results WHERE expires_at <= ? LIMIT 1", (micros,)).fetchone()
        return 0 if old is None else self._database.write(lambda c: _sweep(c, micros), deadline)

    def _bound(self, connection: sqlite3.Connection) -> None:
        # Sizes are in the index beside the times: no content is read.
        total, last = 0, None
        for created_at, rowid, size in connection.execute(
            "SELECT created_at, rowid, size FROM kept_results ORDER BY created_at DESC, rowid DESC"
        ):
            total += size
            if total > self._most:
                last = created_at, rowid
                break
        if last is not None:
            connection.execute("DELETE FROM kept_results WHERE (created_at, rowid) <= (?, ?)", last)


def _sweep(connection: sqlite3.Connection, now: int) -> int:
    return connection.execute("DELETE FROM kept_results WHERE expires_at <= ?", (now,)).rowcount


def _result(row: tuple[str, str, str, str, int, int, bytes]) -> KeptResult:
    id_, namespace, backend, tool, created_at, expires_at, content = row
    return KeptResult(id_, namespace, backend, tool, from_micros(created_at), from_micros(expires_at), content)
