from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterator
from weakref import WeakKeyDictionary

import numpy as np

from agora.errors import EmbeddingMismatch, StoreCorrupt
from agora.model.instants import NEVER
from agora.ports.vector_index import Changed, Passages, Rows
from agora.stores.sqlite.fulltext import check_analysis
from agora.stores.sqlite.migrations import check_version
from agora.stores.sqlite.rows import FOUND, blocks, places

_BLOCK = 4096

_PRUNED = b"pruned"
"""In place of a hash that nobody can have: what was before the first change is no longer known."""

_LOAD = (
    # In this order, by the index on places: any other has to sort every vector of the store first, in memory.
    "SELECT i.id, p.n, i.namespace_id, i.expires_at, v.vector FROM encoders e CROSS JOIN items i"
    " CROSS JOIN passages p ON p.item_id = i.id AND p.layout = e.layout"
    " CROSS JOIN vectors v ON v.passage_id = p.id AND v.encoder_id = e.id"
    f" WHERE e.id = ? AND i.superseded_by IS NULL AND i.forgotten_at IS NULL AND {FOUND}"
)

_BEGUN = (
    "SELECT m.value || ifnull('.' || r.value, ''), e.id, g.state, j.sequence, j.hash, a.value FROM meta m"
    # A repair may have changed vectors: an index from before it is one of another store.
    " LEFT JOIN meta r ON r.key = 'revectored' LEFT JOIN meta a ON a.key = 'analysis'"
    " LEFT JOIN encoders e ON e.digest = ? AND e.state = 'active'"
    " LEFT JOIN generations g ON g.encoder_id = e.id"
    " LEFT JOIN journal j ON j.sequence = (SELECT max(sequence) FROM journal)"
    " WHERE m.key = 'store'"
)

_CHANGED = (
    # A cross join keeps this order: the tail is short, and a plan that begins with the items reads all of them.
    "SELECT DISTINCT i.id, i.superseded_by IS NULL AND i.forgotten_at IS NULL, i.expires_at"
    f" FROM journal j CROSS JOIN items i ON i.id = j.item_id WHERE j.sequence > ? AND {FOUND} ORDER BY i.id"
)

_Begun = tuple[str, int, str | None, int, bytes | None]
"""Store, encoder, state file of the index's generation, sequence and hash of the journal's head."""

_KNOWN: WeakKeyDictionary[sqlite3.Connection, tuple[tuple[int, int, str], _Begun]] = WeakKeyDictionary()
"""What each connection last saw, and the numbers by which it knows that nothing was committed since."""


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
        self.hash: bytes | None = None
        self.state: str | None = None
        self.encoder_id = 0

    def begin(self) -> None:
        """As `Source.begin`. Beside it `hash` is that of the head, `state` names the generation of the index."""
        connection = self.connection
        connection.execute("BEGIN")
        # The number changes with every commit of another connection, the other with every change by this one. While
        # both stand still, so does the snapshot, and this is all that most queries have to ask.
        seen = connection.execute("PRAGMA data_version").fetchone()[0], connection.total_changes, self._digest
        known = _KNOWN.get(connection)
        if known is None or known[0] != seen:
            known = seen, self._begun()
            _KNOWN[connection] = known
        self.store, self.encoder_id, self.state, self.head, self.hash = known[1]

    def look(self) -> None:
        """What `begin` tells, of a transaction that is under way on any connection. Raises: as `begin`."""
        self.store, self.encoder_id, self.state, self.head, self.hash = self._begun()

    def _begun(self) -> _Begun:
        check_version(self.connection)
        found = self.connection.execute(_BEGUN, (self._digest,)).fetchone()
        store, encoder_id, state, head, hash_, analysis = found or (None,) * 6
        check_analysis(analysis)
        if encoder_id is None:
            # Another process may have moved the store to another profile since this one opened it.
            raise self._mismatch()
        return f"{store}/{encoder_id}", encoder_id, state, head or 0, hash_

    def begin_again(self) -> None:
        """End the transaction and begin another, of the newest snapshot. Raises: as `begin`."""
        self.connection.execute("ROLLBACK")
        self.begin()

    def hash_at(self, sequence: int) -> bytes | None:
        """As `Source.hash_at`."""
        if sequence == self.head:
            return self.hash
        if sequence == 0:
            # Nothing was applied yet. That can be gone on from only while the journal still has its beginning.
            first = self.connection.execute("SELECT sequence FROM journal ORDER BY sequence LIMIT 1").fetchone()
            return None if first is None or first[0] == 1 else _PRUNED
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

    def everything(self, after: int = 0) -> Iterator[Passages]:
        """As `Source.everything`."""
        cursor = self.connection.execute(_LOAD + " AND i.id > ? ORDER BY i.id, p.n", (self.encoder_id, after))
        while found := cursor.fetchmany(_BLOCK):
            yield self._arrays(found)

    def selected(self, namespaces: tuple[int, ...], now: int, most: int) -> Rows | None:
        """As `Source.selected`: looks at no more rows than it must."""
        found = self.connection.execute(
            f"SELECT id FROM items i WHERE namespace_id IN ({places(namespaces)}) AND {FOUND}"
            " AND superseded_by IS NULL AND forgotten_at IS NULL AND ifnull(expires_at, ?) > ? LIMIT ?",
            (*namespaces, NEVER, now, most + 1),
        ).fetchall()
        return None if len(found) > most else np.sort(np.array([row for (row,) in found], dtype=np.int64))

    def count(self) -> int:
        """As `Source.count`."""
        return int(
            self.connection.execute(
                "SELECT count(*) FROM items i JOIN passages p ON p.item_id = i.id"
                " JOIN vectors v ON v.passage_id = p.id AND v.encoder_id = ?"
                f" WHERE i.superseded_by IS NULL AND i.forgotten_at IS NULL AND {FOUND}",
                (self.encoder_id,),
            ).fetchone()[0]
        )

    def _arrays(self, found: list[tuple[int, int, int, int | None, bytes]]) -> Passages:
        if any(len(row[4]) != 4 * self.dimension for row in found):
            raise StoreCorrupt("a vector in the store has not the length that its encoder makes")
        vectors = np.frombuffer(b"".join(row[4] for row in found), dtype="<f4").reshape(len(found), self.dimension)
        # No comparison holds for what is no number: it would be missing from answers, and nobody would know.
        if not np.isfinite(vectors).all():
            raise StoreCorrupt("a vector in the store is no row of numbers")
        return Passages(
            np.array([row[0] for row in found], dtype=np.int64),
            np.array([row[1] for row in found], dtype=np.int64),
            np.array([row[2] for row in found], dtype=np.int64),
            np.array([NEVER if row[3] is None else row[3] for row in found], dtype=np.int64),
            vectors.astype(np.float32, copy=False),
        )
