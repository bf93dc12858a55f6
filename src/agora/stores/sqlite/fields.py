"""What may change of an item, and whose word it is: metadata, confidence, expiry, tags are those of its highest savers.

What a saver of lower authority gives stays that saver's: it is kept in `savers.given`, and no filter finds it there.
"""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from agora.model.caller import rank
from agora.stores.sqlite.authority import level
from agora.stores.sqlite.rows import canonical, digest, metadata_of


def mutable(connection: sqlite3.Connection, row: int) -> dict[str, Any]:
    """The fields of an item that a later change may touch, for the journal's images."""
    confidence, expires_at, metadata, public_id, type_ = connection.execute(
        "SELECT i.confidence, i.expires_at, t.metadata, i.public_id, i.type FROM items i"
        " JOIN texts t ON t.item_id = i.id WHERE i.id = ?",
        (row,),
    ).fetchone()
    if type_ == "fact":
        # When it ends for queries is drawn from others too: what was said of it is beside it.
        kept = connection.execute("SELECT expires_at FROM facts WHERE item_id = ?", (row,)).fetchone()
        expires_at = None if kept is None else kept[0]
    tags = connection.execute("SELECT DISTINCT tag FROM item_tags WHERE item_id = ? ORDER BY tag", (row,))
    return {
        "metadata": metadata_of(public_id, metadata),
        "confidence": confidence,
        "expires_at": expires_at,
        "tags": [tag for (tag,) in tags],
    }


METADATA_ROOM = 32_768
"""Bytes to which metadata of several savers adds up: twice what one save may have, which is kept whole. Each change of
a note writes all of it to the journal, so that without an end a few hundred saves of one text would fill a disk."""

TAG_ROOM = 256
"""Tags to which those of several savers add up: eight times what one save may have."""


def joined(known: Mapping[str, Any], more: Mapping[str, Any]) -> dict[str, Any]:
    """`known` with what it lacks of `more`, as far as a note has room for it."""
    found = dict(known)
    room = METADATA_ROOM - len(canonical(found).encode())
    for key in sorted(more.keys() - known.keys()):
        size = len(canonical({key: more[key]}).encode())
        if size <= room:
            found[key] = more[key]
            room -= size
    return found


def add_tags(connection: sqlite3.Connection, row: int, n: int, tags: Sequence[str]) -> None:
    """Make tags that a saver gives the item's, as far as it has room for them."""
    known = {tag for (tag,) in connection.execute("SELECT DISTINCT tag FROM item_tags WHERE item_id = ?", (row,))}
    fresh = [tag for tag in tags if tag not in known]
    fits = {*known, *fresh[: max(0, TAG_ROOM - len(known))]}
    connection.executemany(
        "INSERT INTO item_tags VALUES (?, ?, ?) ON CONFLICT DO NOTHING", ((row, tag, n) for tag in tags if tag in fits)
    )


def later(one: int | None, other: int | None) -> int | None:
    """Of two expiries the later, and none is later than any: neither saver may lose what it was promised."""
    return None if one is None or other is None else max(one, other)


def set_metadata(connection: sqlite3.Connection, row: int, metadata: Mapping[str, Any]) -> None:
    """Make `metadata` an item's, with the digests that filters ask for."""
    connection.execute("UPDATE texts SET metadata = ? WHERE item_id = ?", (canonical(metadata), row))
    connection.execute("DELETE FROM item_metadata WHERE item_id = ?", (row,))
    connection.executemany(
        "INSERT INTO item_metadata VALUES (?, ?, ?)", ((row, key, digest(value)) for key, value in metadata.items())
    )


def set_fields(
    connection: sqlite3.Connection,
    row: int,
    metadata: Mapping[str, Any],
    confidence: float | None,
    expires_at: int | None,
) -> None:
    """Give an item these fields; what each saver gave stays that saver's."""
    set_metadata(connection, row, metadata)
    connection.execute("UPDATE items SET confidence = ? WHERE id = ?", (confidence, row))
    set_expiry(connection, row, expires_at)


def set_expiry(connection: sqlite3.Connection, row: int, expires_at: int | None) -> None:
    """Say until when an item is kept; whoever says it of a fact settles it then."""
    if not connection.execute("UPDATE facts SET expires_at = ? WHERE item_id = ?", (expires_at, row)).rowcount:
        connection.execute("UPDATE items SET expires_at = ? WHERE id = ?", (expires_at, row))


def lower_tags(connection: sqlite3.Connection, row: int) -> None:
    """Take the tags of savers below the item's level from the item, and keep them as theirs."""
    highest = level(connection, row)
    for n, origin in connection.execute("SELECT n, origin FROM savers WHERE item_id = ?", (row,)).fetchall():
        if highest is not None and rank(origin) > highest:
            found = connection.execute("SELECT tag FROM item_tags WHERE item_id = ? AND saver = ?", (row, n)).fetchall()
            if found:
                connection.execute("DELETE FROM item_tags WHERE item_id = ? AND saver = ?", (row, n))
                keep_tags(connection, row, n, (tag for (tag,) in found))


def raise_tags(connection: sqlite3.Connection, row: int) -> None:
    """Make tags that were those of savers alone the item's, where no saver is above these any more."""
    highest = level(connection, row)
    for n, origin, given in connection.execute(
        "SELECT n, origin, given FROM savers WHERE item_id = ?", (row,)
    ).fetchall():
        known = json.loads(given)
        if rank(origin) == highest and (tags := known.pop("tags", ())):
            connection.execute("UPDATE savers SET given = ? WHERE item_id = ? AND n = ?", (canonical(known), row, n))
            connection.executemany(
                "INSERT INTO item_tags VALUES (?, ?, ?) ON CONFLICT DO NOTHING", ((row, tag, n) for tag in tags)
            )


def keep_tags(connection: sqlite3.Connection, row: int, n: int, tags: Iterable[str]) -> None:
    """Add tags to what a saver gave, without making them the item's; writes nothing if they are there."""
    [given] = connection.execute("SELECT given FROM savers WHERE item_id = ? AND n = ?", (row, n)).fetchone()
    known = json.loads(given)
    fresh = [tag for tag in tags if tag not in known.get("tags", ())]
    every = sorted({*known.get("tags", ()), *fresh[: max(0, TAG_ROOM - len(known.get("tags", ())))]})
    if every != known.get("tags", []):
        connection.execute(
            "UPDATE savers SET given = ? WHERE item_id = ? AND n = ?", (canonical({**known, "tags": every}), row, n)
        )
