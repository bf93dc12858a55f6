from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterator

import numpy as np

from agora.errors import EmbeddingMismatch, StoreCorrupt
from agora.ports.vector_index import Changed, Passages, Rows
from agora.stores.sqlite.instants import NEVER
from agora.stores.sqlite.migrations import check_version
from agora.stores.sqlite.rows import blocks, places

_BLOCK = 4096

_LOAD = (
    "SELECT i.id, p.n, i.namespace_id, i.expires_at, v.vector FROM items i"
    " JOIN passages p ON p.item_id = i.id JOIN vectors v ON v.passage_id = p.id AND v.encoder_id = ?"
    " WHERE i.superseded_by IS NULL AND i.forgotten_at IS NULL"
)

_CHANGED = (
    # A cross join keeps this order: the tail is short, and a plan that begins with the items reads all of them.
    "SELECT DISTINCT i.id, i.superseded_by IS NULL AND i.forgotten_at IS NULL, i.expires_at"
    " FROM journal j CROSS JOIN items i ON i.id = j.item_id WHERE j.sequence > ? ORDER BY i.id"
)


class SqliteSource:
    """A transaction on one connection, as an index follows it; implements `agora.ports.vector_index.Source`."""

    def __init__(
        self,
        connection: sqlite3.Connection,
        digest: str,
        dimension: int,
        mismatch: Callable[[], EmbeddingMismatch],
    ) -> None:
        """A transaction yet to begin, over the vectors of the encoder whose fingerprint has this `digest`."""
        self.connection = connection
        self.dimension = dimension
        self._digest = digest
        self._mismatch = mismatch
        self.store = ""
        self.head = 0
        self.encoder_id = 0

    def begin(self) -> None:
        """As `Source.begin`."""
        self.connection.execute("BEGIN")
        check_version(self.connection)
        store, encoder_id, head = self.connection.execute(
            "SELECT (SELECT value FROM meta WHERE key = 'store'),"
            " (SELECT id FROM encoders WHERE digest = ? AND state = 'active'),"
            " (SELECT max(sequence) FROM journal)",
            (self._digest,),
        ).fetchone()
        self.head = head or 0
        if encoder_id is None:
            # Another process may have moved the store to another profile since this one opened it.
            raise self._mismatch()
        self.encoder_id, self.store = encoder_id, f"{store}/{encoder_id}"

    def hash_at(self, sequence: int) -> bytes | None:
        """As `Source.hash_at`."""
        found = self.connection.execute("SELECT hash FROM journal WHERE sequence = ?", (sequence,)).fetchone()
        return None if found is None else bytes(found[0])

    def changed(self, since: int) -> Changed:
        """As `Source.changed`."""
        found = self.connection.execute(_CHANGED, (since,)).fetchall()
        return Changed(
            np.array([row[0] for row in found], dtype=np.int64),
            np.array([row[1] for row in found], dtype=np.bool_),
            np.array([NEVER if row[2] is None else row[2] for row in found], dtype=np.int64),
        )

    def passages(self, rows: Rows) -> Passages:
        """As `Source.passages`."""
        found = []
        for block in blocks(np.unique(rows).tolist()):
            found += self.connection.execute(
                f"{_LOAD} AND i.id IN ({places(block)}) ORDER BY i.id, p.n", (self.encoder_id, *block)
            ).fetchall()
        return self._arrays(found)

    def everything(self) -> Iterator[Passages]:
        """As `Source.everything`."""
        cursor = self.connection.execute(_LOAD + " ORDER BY i.id, p.n", (self.encoder_id,))
        while found := cursor.fetchmany(_BLOCK):
            yield self._arrays(found)

    def count(self) -> int:
        """As `Source.count`."""
        return int(
            self.connection.execute(
                "SELECT count(*) FROM items i JOIN passages p ON p.item_id = i.id"
                " JOIN vectors v ON v.passage_id = p.id AND v.encoder_id = ?"
                " WHERE i.superseded_by IS NULL AND i.forgotten_at IS NULL",
                (self.encoder_id,),
            ).fetchone()[0]
        )

    def _arrays(self, found: list[tuple[int, int, int, int | None, bytes]]) -> Passages:
        if any(len(row[4]) != 4 * self.dimension for row in found):
            raise StoreCorrupt("a vector in the store has not the length that its encoder makes")
        vectors = np.frombuffer(b"".join(row[4] for row in found), dtype="<f4").reshape(len(found), self.dimension)
        return Passages(
            np.array([row[0] for row in found], dtype=np.int64),
            np.array([row[1] for row in found], dtype=np.int64),
            np.array([row[2] for row in found], dtype=np.int64),
            np.array([NEVER if row[3] is None else row[3] for row in found], dtype=np.int64),
            vectors.astype(np.float32, copy=False),
        )
