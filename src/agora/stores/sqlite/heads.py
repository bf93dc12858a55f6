from __future__ import annotations

import sqlite3
from dataclasses import dataclass

from agora.model.note import Draft
from agora.stores.sqlite import fulltext, journal
from agora.stores.sqlite.journal import Actor
from agora.text.identity import content_hash


@dataclass(frozen=True, slots=True)
class Head:
    """The row that a save meets: the current version of its key, or the row with the same text."""

    row: int
    public_id: str
    key: str | None
    version: int
    content_hash: bytes
    live: bool


_HEAD = (
    # Of a purged row that an import brought there is no hash.
    "SELECT id, public_id, key, version, ifnull(content_hash, x''),"
    " forgotten_at IS NULL AND (expires_at IS NULL OR expires_at > ?) FROM items"
    " WHERE superseded_by IS NULL AND contests IS NULL AND type = 'note' AND namespace_id = ?"
)


def of_key(connection: sqlite3.Connection, namespace_id: int, key: str, now: int) -> Head | None:
    """The newest version of a key, forgotten or expired though it may be."""
    return _one(connection.execute(f"{_HEAD} AND key = ?", (now, namespace_id, key)).fetchone())


def of_text(connection: sqlite3.Connection, namespace_id: int, content: str, now: int) -> Head | None:
    """The live row with exactly these bytes: one without a key first, then the oldest."""
    return _one(
        connection.execute(
            f"{_HEAD} AND content_hash = ? AND forgotten_at IS NULL AND (expires_at IS NULL OR expires_at > ?)"
            " ORDER BY key IS NOT NULL, id LIMIT 1",
            (now, namespace_id, content_hash(content), now),
        ).fetchone()
    )


def retire_expired(
    connection: sqlite3.Connection, namespace_id: int, namespace: str, content: str, now: int, actor: Actor
) -> None:
    """Take rows of this text that only the clock has ended out of its place in the index of texts."""
    found = connection.execute(
        f"{_HEAD} AND content_hash = ? AND forgotten_at IS NULL AND expires_at <= ?",
        (now, namespace_id, content_hash(content), now),
    ).fetchall()
    for old in filter(None, map(_one, found)):
        connection.execute("UPDATE items SET forgotten_at = ?, forget_reason = 'expired' WHERE id = ?", (now, old.row))
        fulltext.remove(connection, old.row, namespace_id, "note")
        journal.append(
            connection,
            journal.Change(now, namespace_id, namespace, "expire", old.row, old.public_id, old.content_hash),
            actor,
        )


def same(connection: sqlite3.Connection, namespace_id: int, draft: Draft, now: int) -> Head | None:
    """The live row that a save of `draft` would only add its saver to.

    With a key: its current version, if the text is the same. Without: any row of the same text.
    """
    if draft.key is None:
        return of_text(connection, namespace_id, draft.content, now)
    head = of_key(connection, namespace_id, draft.key, now)
    return head if head and head.live and head.content_hash == content_hash(draft.content) else None


def _one(found: tuple[int, str, str | None, int, bytes, int] | None) -> Head | None:
    return None if found is None else Head(*found[:5], live=bool(found[5]))
