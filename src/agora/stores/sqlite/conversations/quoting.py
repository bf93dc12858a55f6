"""Which summaries say what is to be forgotten."""

from __future__ import annotations

import sqlite3

QUOTED = "it tells of a message that was forgotten"
"""What a summary is forgotten for, together with a message that it covers or an earlier summary."""

_COVERING = (
    "SELECT s.id FROM items m JOIN items s ON s.namespace_id = m.namespace_id AND s.type = 'summary'"
    " AND s.key = m.session JOIN summaries c ON c.item_id = s.id AND m.seq BETWEEN c.first AND c.last"
    " WHERE m.id = ? AND m.type = 'message' AND s.forgotten_at IS NULL AND s.purged_at IS NULL"
    # Each summary was made of the one before it.
    " UNION ALL SELECT s.id FROM items m JOIN items s ON s.namespace_id = m.namespace_id AND s.type = 'summary'"
    " AND s.key = m.key AND s.version > m.version WHERE m.id = ? AND m.type = 'summary'"
    " AND s.forgotten_at IS NULL AND s.purged_at IS NULL ORDER BY 1"
)


_GONE = (
    "SELECT 1 FROM items s JOIN summaries c ON c.item_id = s.id JOIN items m ON m.namespace_id = s.namespace_id"
    " AND m.type = 'message' AND m.superseded_by IS NULL AND m.session = s.key AND m.seq BETWEEN c.first AND c.last"
    " WHERE s.id = ? AND s.type = 'summary' AND m.forgotten_at IS NOT NULL LIMIT 1"
)


def tells_of_forgotten(connection: sqlite3.Connection, row: int) -> bool:
    """Whether the row is a summary and a message that it covers is forgotten."""
    return connection.execute(_GONE, (row,)).fetchone() is not None


def quoting(connection: sqlite3.Connection, row: int) -> list[int]:
    """Summaries, old versions too, that cover the message of this row or came from the summary of this row."""
    return [found for (found,) in connection.execute(_COVERING, (row, row))]
