"""Which notes the user has pinned."""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence

from agora.model.caller import RANKS, Caller, rank
from agora.model.selection import Pinned
from agora.stores.sqlite import fields, journal, rows
from agora.stores.sqlite.actors import ensure_actor
from agora.stores.sqlite.authority import is_pinned, level
from agora.stores.sqlite.facts import settling
from agora.stores.sqlite.journal import Change


def pin(connection: sqlite3.Connection, ids: Sequence[str], caller: Caller, now: int, *, pinned: bool) -> Pinned:
    """Pin current notes of the user's inside the caller's transaction, or unpin them; the caller is the user.

    A pinned note has no expiry: what it had is in the journal.
    """
    actor = ensure_actor(connection, caller, now)
    visible = rows.namespace_ids(connection, caller.scope.visible())
    lists: dict[str, list[str]] = {name: [] for name in ("changed", "already", "unknown", "not_current", "not_user")}
    for public_id in dict.fromkeys(ids):
        found = connection.execute(
            "SELECT i.id, i.namespace_id, n.name, i.content_hash, i.superseded_by IS NULL AND i.forgotten_at IS NULL"
            " AND (i.expires_at IS NULL OR i.expires_at > ?) FROM items i JOIN namespaces n ON n.id = i.namespace_id"
            f" WHERE i.public_id = ? AND i.purged_at IS NULL AND i.namespace_id IN ({rows.places(visible)})",
            (now, public_id, *visible),
        ).fetchone()
        if found is None:
            lists["unknown"].append(public_id)
            continue
        row, namespace_id, namespace, exact, current = found
        if is_pinned(connection, row) == pinned:
            lists["already"].append(public_id)
        elif pinned and not current:
            lists["not_current"].append(public_id)
        elif pinned and level(connection, row) != rank(RANKS[0]):
            lists["not_user"].append(public_id)
        else:
            before = fields.mutable(connection, row) | {"pinned": not pinned}
            if pinned:
                connection.execute("INSERT INTO pins VALUES (?, ?)", (row, now))
                fields.set_expiry(connection, row, None)
            else:
                connection.execute("DELETE FROM pins WHERE item_id = ?", (row,))
            after = fields.mutable(connection, row) | {"pinned": pinned}
            operation: journal.Operation = "pin" if pinned else "unpin"
            change = Change(now, namespace_id, namespace, operation, row, public_id, exact, before, after)
            journal.append(connection, change, actor)
            settling.settle_of(connection, row, actor, now)
            lists["changed"].append(public_id)
    kept = {name: tuple(listed) for name, listed in lists.items()}
    return Pinned(pinned=pinned, sequence=journal.head(connection), **kept)
