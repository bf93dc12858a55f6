from __future__ import annotations

import sqlite3
from collections.abc import Collection, Mapping

import numpy as np

from agora.model.deadline import Deadline
from agora.model.profile import Fingerprint
from agora.ports.encoder import Vector
from agora.stores.sqlite import rows
from agora.stores.sqlite.connection import Database
from agora.stores.sqlite.migrations import check_version

MOST = 50_000
"""Vectors that are kept: tools of former versions and vectors of former encoders pile up."""

_PATIENCE = 10.0
"""Seconds that a look may wait for a connection, and a write for its turn."""


class SqliteToolVectors:
    """Implements `agora.ports.tool_vectors.ToolVectors`."""

    def __init__(self, database: Database, fingerprint: Fingerprint, *, most: int = MOST) -> None:
        self._database = database
        self._digest = fingerprint.digest()
        self._dimension = fingerprint.dimension
        self._most = most

    def get(self, hashes: Collection[bytes]) -> dict[bytes, Vector]:
        """As `ToolVectors.get`."""
        found: dict[bytes, Vector] = {}
        with self._database.read(Deadline(_PATIENCE)) as connection:
            connection.execute("BEGIN")
            check_version(connection)
            for block in rows.blocks(list(hashes)):
                for key, data in connection.execute(
                    "SELECT text_hash, vector FROM tool_vectors WHERE fingerprint = ?"
                    f" AND text_hash IN ({rows.places(block)})",
                    (self._digest, *block),
                ):
                    # One of another length is none of this encoder's, whatever the row says.
                    if len(data) == 4 * self._dimension:
                        found[bytes(key)] = np.frombuffer(data, dtype="<f4").astype(np.float32)
        return found

    def put(self, vectors: Mapping[bytes, Vector]) -> None:
        """As `ToolVectors.put`."""
        values = [(self._digest, key, vector.astype("<f4").tobytes()) for key, vector in vectors.items()]

        def run(connection: sqlite3.Connection) -> None:
            self._make_room(connection, len(values))
            connection.executemany("INSERT OR REPLACE INTO tool_vectors VALUES (?, ?, ?)", values)

        if values:
            self._database.write(run, Deadline(_PATIENCE))

    def _make_room(self, connection: sqlite3.Connection, coming: int) -> None:
        # Which of them are still in use is not known; they are made anew in a moment.
        for which in ("WHERE fingerprint <> ?", "WHERE ? = ?"):
            held = connection.execute("SELECT count(*) FROM tool_vectors").fetchone()[0]
            if held + coming > self._most:
                connection.execute(f"DELETE FROM tool_vectors {which}", (self._digest,) * which.count("?"))
