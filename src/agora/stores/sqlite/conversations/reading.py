from __future__ import annotations

import sqlite3
from collections.abc import Sequence
from typing import Any, cast

import numpy as np

from agora.model.caller import RANKS
from agora.model.instants import from_micros, maybe
from agora.model.message import Message, Strategy, Summary
from agora.ports.conversations import ConversationRow
from agora.ports.encoder import Vector
from agora.stores.sqlite import journal
from agora.stores.sqlite.rows import blocks, metadata_of, namespace_ids, places

_MESSAGES = (
    "SELECT i.public_id, i.id, i.session, i.seq, i.kind, i.speaker, t.content, i.occurred_at, i.created_at, t.metadata,"
    " a.name, s.origin FROM items i JOIN texts t ON t.item_id = i.id JOIN savers s ON s.item_id = i.id AND s.n = 0"
    " JOIN agents a ON a.id = s.agent_id"
    " WHERE i.type = 'message' AND i.superseded_by IS NULL AND i.forgotten_at IS NULL"
    " AND i.namespace_id = ? AND i.session = ? AND i.seq BETWEEN ? AND ? ORDER BY i.seq{} LIMIT ?"
)
_SUMMARY = (
    "SELECT t.content, c.first, c.last, i.version, c.written_by, i.created_at, s.origin"
    " FROM items i JOIN texts t ON t.item_id = i.id JOIN summaries c ON c.item_id = i.id"
    " JOIN savers s ON s.item_id = i.id AND s.n = 0"
    " WHERE i.namespace_id = ? AND i.type = 'summary' AND i.key = ? AND i.superseded_by IS NULL AND i.contests IS NULL"
    " AND i.forgotten_at IS NULL"
)
_LISTED = (
    "SELECT i.namespace_id, i.session, count(*), min(i.effective_at), max(i.effective_at), max(i.id) FROM items i"
    " WHERE i.type = 'message' AND i.superseded_by IS NULL AND i.namespace_id IN ({}) AND i.forgotten_at IS NULL{}"
    " GROUP BY i.namespace_id, i.session ORDER BY 6 DESC LIMIT ?"
)


class SqliteConversationReading:
    """One open read transaction; implements `agora.ports.conversations.ConversationReading`."""

    def __init__(self, connection: sqlite3.Connection, digest: str, default: Strategy) -> None:
        """`digest`: of the encoder whose vectors are read. `default`: what is listed where no strategy was chosen."""
        self._connection = connection
        self._digest = digest
        self._default = default
        self.sequence = journal.head(connection)

    def count(self, namespace: str, session: str) -> int:
        """As `ConversationReading.count`."""
        found = self._namespace(namespace)
        return 0 if found is None else last_number(self._connection, found, session)

    def live(self, namespace: str, session: str, first: int, last: int) -> int:
        """As `ConversationReading.live`."""
        found = self._namespace(namespace)
        counted = self._connection.execute(
            "SELECT count(*) FROM items i WHERE i.type = 'message' AND i.superseded_by IS NULL"
            " AND i.forgotten_at IS NULL AND i.namespace_id = ? AND i.session = ? AND i.seq BETWEEN ? AND ?",
            (found, session, first, last),
        )
        return int(counted.fetchone()[0])

    def messages(
        self,
        namespace: str,
        session: str,
        first: int,
        last: int,
        *,
        oldest: int | None = None,
        newest: int | None = None,
    ) -> tuple[Message, ...]:
        """As `ConversationReading.messages`."""
        found = self._namespace(namespace)
        if found is None:
            return ()
        most = oldest if newest is None else newest
        query = _MESSAGES.format("" if newest is None else " DESC")
        read = self._connection.execute(query, (found, session, first, last, -1 if most is None else most)).fetchall()
        return tuple(_message(namespace, row) for row in (read if newest is None else reversed(read)))

    def vectors(self, rows: Sequence[int]) -> dict[int, Vector]:
        """As `ConversationReading.vectors`: none where the store is another encoder's."""
        sums: dict[int, Vector] = {}
        several: set[int] = set()
        for block in blocks(rows):
            for row, stored in self._connection.execute(
                "SELECT p.item_id, v.vector FROM encoders e CROSS JOIN passages p ON p.layout = e.layout"
                f" AND p.item_id IN ({places(block)}) CROSS JOIN vectors v ON v.passage_id = p.id"
                " AND v.encoder_id = e.id WHERE e.digest = ? AND e.state = 'active' ORDER BY p.item_id, p.n",
                (*block, self._digest),
            ):
                vector = np.frombuffer(stored, dtype="<f4")
                if row in sums:
                    several.add(row)
                    vector = sums[row] + vector
                sums[row] = vector
        return sums | {row: _unit(sums[row]) for row in several}

    def summary(self, namespace: str, session: str) -> Summary | None:
        """As `ConversationReading.summary`."""
        found = self._namespace(namespace)
        return None if found is None else current_summary(self._connection, found, session)

    def strategy(self, namespace: str, session: str) -> Strategy | None:
        """As `ConversationReading.strategy`."""
        found = self._connection.execute(
            "SELECT c.strategy FROM conversations c JOIN namespaces n ON n.id = c.namespace_id"
            " WHERE n.name = ? AND c.session = ?",
            (namespace, session),
        ).fetchone()
        return None if found is None or found[0] is None else cast("Strategy", found[0])

    def listed(self, namespaces: Sequence[str], most: int, session: str | None = None) -> tuple[ConversationRow, ...]:
        """As `ConversationReading.listed`."""
        ids = namespace_ids(self._connection, namespaces)
        names = dict(self._connection.execute("SELECT id, name FROM namespaces").fetchall())
        named, wanted = ("", ()) if session is None else (" AND i.session = ?", (session,))
        query = _LISTED.format(places(ids), named)
        found = self._connection.execute(query, (*ids, *wanted, most)).fetchall()
        return tuple(
            ConversationRow(
                *(names[row[0]], row[1], row[2], from_micros(row[3]), from_micros(row[4])),
                self.strategy(names[row[0]], row[1]) or self._default,
            )
            for row in found
        )

    def _namespace(self, name: str) -> int | None:
        found = namespace_ids(self._connection, (name,))
        return found[0] if found else None


def last_number(connection: sqlite3.Connection, namespace_id: int, session: str) -> int:
    """The highest number that a message of a conversation ever had; 0 if there is none."""
    found = connection.execute(
        "SELECT max(ifnull((SELECT max(seq) FROM items WHERE type = 'message' AND superseded_by IS NULL"
        " AND namespace_id = ?1 AND session = ?2), 0),"
        " ifnull((SELECT last FROM conversations WHERE namespace_id = ?1 AND session = ?2), 0))",
        (namespace_id, session),
    ).fetchone()
    return int(found[0])


def current_summary(connection: sqlite3.Connection, namespace_id: int, session: str) -> Summary | None:
    """The current summary of a conversation; with a message that it covers it was forgotten too."""
    found = connection.execute(_SUMMARY, (namespace_id, session)).fetchone()
    if found is None:
        return None
    text, first, last, version, written_by, at, origin = found
    return Summary(text, first, last, version, written_by, from_micros(at), origin)


def _message(namespace: str, row: Sequence[Any]) -> Message:
    public_id, number, session, seq, role, speaker, content, occurred, created, metadata, agent, origin = row
    return Message(
        id=public_id,
        row=number,
        namespace=namespace,
        session=session,
        seq=seq,
        role=role,
        speaker=speaker,
        content=content,
        occurred_at=maybe(occurred),
        created_at=from_micros(created),
        metadata=metadata_of(public_id, metadata),
        agent=agent,
        origin=origin if origin in RANKS else RANKS[-1],
    )


def _unit(vector: Vector) -> Vector:
    length = float(np.linalg.norm(vector))
    return (vector / length if length else vector).astype(np.float32)
