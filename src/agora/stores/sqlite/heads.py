from __future__ import annotations

import sqlite3
from dataclasses import dataclass

from agora.model.caller import Origin, rank
from agora.model.note import Draft
from agora.stores.sqlite import fulltext, journal
from agora.stores.sqlite.authority import is_above, level
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
    contests: str | None = None
    """Id of what it stands beside, if it is contested."""


@dataclass(frozen=True, slots=True)
class Place:
    """What a save finds: `joins` is the row of the same text that it only adds a saver to.

    Of its key: `head`, the newest version; `contested`, what stands beside it; `stands`, what is live and of higher
    authority than the save, which is then contested itself.
    """

    joins: Head | None
    head: Head | None = None
    contested: tuple[Head, ...] = ()
    stands: Head | None = None
    version: int = 1
    """The number of the key's next version."""


_ROW = (
    # Of a purged row that an import brought there is no hash.
    "SELECT i.id, i.public_id, i.key, i.version, ifnull(i.content_hash, x''),"
    " i.forgotten_at IS NULL AND (i.expires_at IS NULL OR i.expires_at > ?){} FROM items i{}"
    " WHERE i.superseded_by IS NULL AND i.contests IS {} NULL AND i.type = 'note' AND i.namespace_id = ?"
)
_HEAD = _ROW.format(", NULL", "", "")
_CONTESTED = _ROW.format(", ifnull(o.public_id, i.public_id)", " LEFT JOIN items o ON o.id = i.contests", "NOT")


def of_key(connection: sqlite3.Connection, namespace_id: int, key: str, now: int) -> Head | None:
    """The newest version of a key, forgotten or expired though it may be."""
    return _one(connection.execute(f"{_HEAD} AND i.key = ?", (now, namespace_id, key)).fetchone())


def contested(connection: sqlite3.Connection, namespace_id: int, key: str, now: int) -> tuple[Head, ...]:
    """What stands beside the newest version of a key, forgotten or expired though it may be, oldest first."""
    found = connection.execute(f"{_CONTESTED} AND i.key = ? ORDER BY i.id", (now, namespace_id, key)).fetchall()
    return tuple(filter(None, map(_one, found)))


def standing(
    connection: sqlite3.Connection, head: Head | None, beside: tuple[Head, ...], origin: Origin
) -> Head | None:
    """What is live under a key and of higher authority than `origin`: the highest, of these the head first."""
    live = [each for each in (head, *beside) if each is not None and each.live]
    above = [each for each in live if is_above(connection, each.row, origin)]
    return min(above, key=lambda each: level(connection, each.row) or 0, default=None)


def settled_by(connection: sqlite3.Connection, beside: tuple[Head, ...], origin: Origin, row: int | None) -> list[Head]:
    """What a save of `origin` settles: what is contested under its key by others than `row` of no higher authority."""
    return [each for each in beside if each.row != row and (level(connection, each.row) or 0) >= rank(origin)]


def of_text(connection: sqlite3.Connection, namespace_id: int, content: str, now: int) -> Head | None:
    """The live row with exactly these bytes: one without a key first, then the oldest."""
    return _one(
        connection.execute(
            f"{_HEAD} AND i.content_hash = ? AND i.forgotten_at IS NULL"
            " AND (i.expires_at IS NULL OR i.expires_at > ?) ORDER BY i.key IS NOT NULL, i.id LIMIT 1",
            (now, namespace_id, content_hash(content), now),
        ).fetchone()
    )


def retire_expired(
    connection: sqlite3.Connection, namespace_id: int, namespace: str, content: str, now: int, actor: Actor
) -> None:
    """Take rows of this text that only the clock has ended out of its place in the index of texts."""
    found = connection.execute(
        f"{_HEAD} AND i.content_hash = ? AND i.forgotten_at IS NULL AND i.expires_at <= ?",
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


def place(connection: sqlite3.Connection, namespace_id: int, draft: Draft, origin: Origin, now: int) -> Place:
    """What a save of `draft` by `origin` finds.

    It joins, with a key, the current version of the same text, or what is contested if it would be contested itself;
    without a key any row of the same text.
    """
    if draft.key is None:
        return Place(of_text(connection, namespace_id, draft.content, now))
    head = of_key(connection, namespace_id, draft.key, now)
    beside = contested(connection, namespace_id, draft.key, now)
    stands = standing(connection, head, beside, origin)
    exact = content_hash(draft.content)
    candidates = (head, *(beside if stands else ()))
    joins = next((each for each in candidates if each and each.live and each.content_hash == exact), None)
    last = connection.execute(
        "SELECT max(version) FROM items WHERE namespace_id = ? AND type = 'note' AND key = ?", (namespace_id, draft.key)
    ).fetchone()[0]
    return Place(joins, head, beside, stands, 1 + (last or 0))


def _one(found: tuple[int, str, str | None, int, bytes, int, str | None] | None) -> Head | None:
    return None if found is None else Head(*found[:5], live=bool(found[5]), contests=found[6])
