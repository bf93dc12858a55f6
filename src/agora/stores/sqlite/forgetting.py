from __future__ import annotations

import sqlite3
from collections.abc import Sequence
from typing import Any

from agora.model.caller import Caller
from agora.model.selection import Forgotten, Restored, Selection
from agora.stores.sqlite import fulltext, heads, journal, rows
from agora.stores.sqlite.actors import ensure_actor
from agora.stores.sqlite.instants import to_micros
from agora.stores.sqlite.journal import Actor, Change

_SHOWN = 20
_LIVE = "i.forgotten_at IS NULL AND i.superseded_by IS NULL AND (i.expires_at IS NULL OR i.expires_at > ?)"


def preview(connection: sqlite3.Connection, selection: Selection, now: int) -> Forgotten:
    """What `forget` would do now, without doing it."""
    chosen, unknown, already, shared = _choose(connection, selection, now)
    return _outcome(connection, chosen, unknown, already, shared, dry_run=True)


def forget(connection: sqlite3.Connection, selection: Selection, caller: Caller, now: int) -> Forgotten:
    """Hide the selected rows inside the caller's transaction: all of them or, if it raises, none."""
    chosen, unknown, already, shared = _choose(connection, selection, now)
    actor = ensure_actor(connection, caller, now)
    for row in chosen:
        connection.execute(
            "UPDATE items SET forgotten_at = ?, forget_reason = ? WHERE id = ?", (now, selection.reason, row)
        )
        namespace_id = connection.execute("SELECT namespace_id FROM items WHERE id = ?", (row,)).fetchone()[0]
        fulltext.remove(connection, row, namespace_id, "note")
        _record(connection, row, "forget", actor, now, {"reason": selection.reason})
    return _outcome(connection, chosen, unknown, already, shared, dry_run=False)


def restore(
    connection: sqlite3.Connection,
    ids: Sequence[str],
    namespaces: Sequence[str],
    caller: Caller,
    now: int,
) -> Restored:
    """Bring forgotten rows back inside the caller's transaction."""
    actor = ensure_actor(connection, caller, now)
    restored: list[str] = []
    superseded: list[str] = []
    unknown: list[str] = []
    live: list[str] = []
    expired: list[str] = []
    purged: list[str] = []
    duplicates: dict[str, str] = {}
    visible = rows.namespace_ids(connection, namespaces)
    gone = rows.purged_ids(connection, ids, namespaces)
    for public_id in dict.fromkeys(ids):
        if public_id in gone:
            purged.append(public_id)
            continue
        found = connection.execute(
            "SELECT i.id, n.id, n.name, t.title, t.content, i.forgotten_at, i.superseded_by, i.key,"
            " i.expires_at IS NOT NULL AND i.expires_at <= ? FROM items i"
            " JOIN namespaces n ON n.id = i.namespace_id"
            f" JOIN texts t ON t.item_id = i.id WHERE i.public_id = ? AND i.namespace_id IN ({rows.places(visible)})",
            (now, public_id, *visible),
        ).fetchone()
        if found is None:
            unknown.append(public_id)
            continue
        row, namespace_id, namespace, title, content, forgotten_at, superseded_by, key, ended = found
        if ended:
            expired.append(public_id)
            continue
        if forgotten_at is None:
            live.append(public_id)
            continue
        twin = heads.of_text(connection, namespace_id, content, now)
        if superseded_by is None and twin is not None and (key is None or twin.key is None):
            duplicates[public_id] = twin.public_id
            continue
        if superseded_by is None:
            heads.retire_expired(connection, namespace_id, namespace, content, now, actor)
        connection.execute("UPDATE items SET forgotten_at = NULL, forget_reason = NULL WHERE id = ?", (row,))
        if superseded_by is None:
            fulltext.put_back(connection, row, namespace_id, "note", title, content)
            restored.append(public_id)
        else:
            superseded.append(public_id)
        _record(connection, row, "restore", actor, now, {})
    return Restored(
        restored=tuple(restored),
        superseded=tuple(superseded),
        unknown=tuple(unknown),
        live=tuple(live),
        expired=tuple(expired),
        purged=tuple(purged),
        duplicates=duplicates,
        sequence=journal.head(connection),
    )


def _choose(
    connection: sqlite3.Connection, selection: Selection, now: int
) -> tuple[list[int], list[str], list[str], int]:
    """Rows to forget; ids that are unknown, ids that are forgotten already; rows kept for other savers."""
    visible = rows.namespace_ids(connection, selection.namespaces)
    conditions = [f"i.namespace_id IN ({rows.places(visible)})"]
    values: list[Any] = list(visible)
    if selection.before is not None:
        conditions.append("i.effective_at < ?")
        values.append(to_micros(selection.before))
    for tag in selection.tags:
        conditions.append("EXISTS (SELECT 1 FROM item_tags t WHERE t.item_id = i.id AND t.tag = ?)")
        values.append(tag)
    saved_by = (
        "EXISTS (SELECT 1 FROM savers s JOIN agents a ON a.id = s.agent_id WHERE s.item_id = i.id AND a.name {} ?)"
    )
    if selection.agent is not None:
        conditions.append(saved_by.format("="))
        values.append(selection.agent)
    unknown: list[str] = []
    already: list[str] = []
    if selection.ids:
        candidates = _named(connection, selection, conditions, values, unknown, already, now)
    else:
        candidates = [
            row[0]
            for row in connection.execute(
                f"SELECT i.id FROM items i WHERE {' AND '.join(conditions)} AND {_LIVE} ORDER BY i.id",
                (*values, now),
            )
        ]
    spared: list[tuple[str, tuple[object, ...]]] = []
    if selection.agent is not None:
        spared.append((f"SELECT 1 FROM items i WHERE i.id = ? AND {saved_by.format('<>')}", (selection.agent,)))
    if selection.own_only:
        own = rows.namespace_ids(connection, selection.own_only)
        spared.append((_OF_OTHERS.format(rows.places(own)), (*own, selection.own_token)))
    alone = [
        row for row in candidates if not any(connection.execute(sql, (row, *bound)).fetchone() for sql, bound in spared)
    ]
    return alone, unknown, already, len(candidates) - len(alone)


_OF_OTHERS = (
    # A token that is None is nobody's own.
    "SELECT 1 FROM items i WHERE i.id = ? AND i.namespace_id IN ({}) AND EXISTS (SELECT 1 FROM savers s"
    " JOIN clients c ON c.id = s.client_id WHERE s.item_id = i.id AND c.token IS NOT ?)"
)
"""Finds a row that came with another token too."""


def _named(  # noqa: PLR0913, PLR0917 - fills the two lists that the answer reports
    connection: sqlite3.Connection,
    selection: Selection,
    conditions: list[str],
    values: list[Any],
    unknown: list[str],
    already: list[str],
    now: int,
) -> list[int]:
    candidates = []
    for public_id in dict.fromkeys(selection.ids):
        found = connection.execute(
            "SELECT i.id, i.forgotten_at IS NOT NULL, i.expires_at IS NOT NULL AND i.expires_at <= ?"
            f" FROM items i WHERE i.public_id = ? AND {' AND '.join(conditions)}",
            (now, public_id, *values),
        ).fetchone()
        # A superseded version may be forgotten by id; an expired row is gone already.
        if found is None or found[2]:
            unknown.append(public_id)
        elif found[1]:
            already.append(public_id)
        else:
            candidates.append(int(found[0]))
    return candidates


def _outcome(
    connection: sqlite3.Connection,
    chosen: list[int],
    unknown: list[str],
    already: list[str],
    shared: int,
    *,
    dry_run: bool,
) -> Forgotten:
    notes = rows.notes_by_row(connection, chosen[:_SHOWN])
    return Forgotten(
        count=len(chosen),
        notes=tuple(notes[row] for row in chosen[:_SHOWN]),
        unknown=tuple(unknown),
        already=tuple(already),
        shared=shared,
        sequence=journal.head(connection),
        dry_run=dry_run,
    )


def _record(
    connection: sqlite3.Connection,
    row: int,
    operation: journal.Operation,
    actor: Actor,
    now: int,
    after: dict[str, Any],
) -> None:
    namespace_id, namespace, public_id, content_hash = connection.execute(
        "SELECT i.namespace_id, n.name, i.public_id, i.content_hash FROM items i"
        " JOIN namespaces n ON n.id = i.namespace_id WHERE i.id = ?",
        (row,),
    ).fetchone()
    journal.append(
        connection,
        Change(now, namespace_id, namespace, operation, row, public_id, content_hash, None, after or None),
        actor,
    )
