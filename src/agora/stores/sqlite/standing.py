"""A row as it stands in this store, for what comes from elsewhere to be held against."""

from __future__ import annotations

import sqlite3
from typing import NamedTuple

NOT_HERE = 0
"""In `superseded_by`: by a version that this store does not hold."""


class Standing(NamedTuple):
    """A row as it stands in this store."""

    row: int
    public_id: str
    namespace: str
    type: str
    kind: str
    key: str | None
    version: int
    title: str | None
    content_hash: bytes | None
    created_at: int
    supersedes: int | None
    superseded_by: int | None
    superseded_at: int | None
    forgotten_at: int | None
    expires_at: int | None
    purged_at: int | None
    contests: int | None

    def live(self, now: int) -> bool:
        """Whether queries find it."""
        expired = self.expires_at is not None and self.expires_at <= now
        return self.superseded_by is None and self.forgotten_at is None and not expired


STANDING = (
    "SELECT i.id, i.public_id, n.name, i.type, i.kind, i.key, i.version, t.title, i.content_hash, i.created_at,"
    " i.supersedes, i.superseded_by, i.superseded_at, i.forgotten_at, i.expires_at, i.purged_at, i.contests"
    " FROM items i JOIN namespaces n ON n.id = i.namespace_id LEFT JOIN texts t ON t.item_id = i.id"
)
"""A query for rows as `Standing`, up to its conditions."""


def by_id(connection: sqlite3.Connection, public_id: str | None) -> Standing | None:
    """The row with this id, in whatever namespace and state."""
    return one(connection.execute(f"{STANDING} WHERE i.public_id = ?", (public_id,)))


def one(cursor: sqlite3.Cursor) -> Standing | None:
    """The first row that a query as `STANDING` found."""
    found = cursor.fetchone()
    return None if found is None else Standing(*found)
