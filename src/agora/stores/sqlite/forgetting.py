from __future__ import annotations

import sqlite3
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any

from agora.model.caller import Caller, Origin, rank
from agora.model.instants import to_micros
from agora.model.selection import Forgotten, Restored, Selection
from agora.stores.sqlite import fulltext, heads, journal, rows
from agora.stores.sqlite.actors import ensure_actor
from agora.stores.sqlite.authority import is_above, level, outranking
from agora.stores.sqlite.conversations.quoting import QUOTED, quoting, tells_of_forgotten
from agora.stores.sqlite.facts import settling
from agora.stores.sqlite.journal import Actor

REVERTED = "reverted"
"""In the payload of a `forget`: a revert made it. A reason that reads alike may be anybody's."""

_SHOWN = 20
_LISTED = 100
"""Protected notes that an answer names: as many as a call can name by id."""
_LIVE = "i.forgotten_at IS NULL AND i.superseded_by IS NULL AND (i.expires_at IS NULL OR i.expires_at > ?)"


@dataclass(slots=True)
class _Choice:
    """Rows to forget, and what is left as it is: ids that are unknown or forgotten, rows of others, rows above.

    `again`: rows that a lower authority has forgotten. They are among the forgotten; whose word it is rises.
    """

    rows: list[int]
    again: list[int] = field(default_factory=list)
    unknown: list[str] = field(default_factory=list)
    already: list[str] = field(default_factory=list)
    shared: int = 0
    above: list[int] = field(default_factory=list)


def preview(connection: sqlite3.Connection, selection: Selection, origin: Origin, now: int) -> Forgotten:
    """What `forget` by a caller of this origin would do now, without doing it."""
    return _outcome(connection, _choose(connection, selection, origin, now), dry_run=True)


def forget(connection: sqlite3.Connection, selection: Selection, caller: Caller, now: int) -> Forgotten:
    """Hide the selected rows inside the caller's transaction: all of them or, if it raises, none.

    Rows of higher authority than the caller's stay.
    """
    choice = _choose(connection, selection, caller.origin, now)
    actor = ensure_actor(connection, caller, now)
    for row in choice.rows:
        hide(connection, row, selection.reason, actor, now)
    for row in choice.again:
        # Else whoever forgot it first could bring back what the caller wants gone.
        journal.append_of(connection, row, "forget", actor, now, after={"reason": selection.reason})
        settling.settle_of(connection, row, actor, now)
    return _outcome(connection, choice, dry_run=False)


def hide(
    connection: sqlite3.Connection,
    row: int,
    reason: str | None,
    actor: Actor,
    now: int,
    marks: Mapping[str, Any] = MappingProxyType({}),
) -> None:
    """Forget one row, whoever it belongs to; `marks` go into the journal with the reason.

    One that is forgotten already is so for this reason from then on.
    """
    connection.execute(
        "UPDATE items SET forgotten_at = ifnull(forgotten_at, ?), forget_reason = ? WHERE id = ?", (now, reason, row)
    )
    namespace_id = connection.execute("SELECT namespace_id FROM items WHERE id = ?", (row,)).fetchone()[0]
    fulltext.remove(connection, row, namespace_id, "note")
    journal.append_of(connection, row, "forget", actor, now, after={"reason": reason, **marks})
    if REVERTED in marks:
        connection.execute("UPDATE facts SET reverted = 1 WHERE item_id = ?", (row,))
    settling.settle_of(connection, row, actor, now)
    for summary in quoting(connection, row):
        connection.execute("UPDATE items SET forgotten_at = ?, forget_reason = ? WHERE id = ?", (now, QUOTED, summary))
        journal.append_of(connection, summary, "forget", actor, now, after={"reason": QUOTED})


def restore(
    connection: sqlite3.Connection,
    ids: Sequence[str],
    namespaces: Sequence[str],
    caller: Caller,
    now: int,
) -> Restored:
    """Bring forgotten rows back inside the caller's transaction, but for those that a higher authority forgot."""
    actor = ensure_actor(connection, caller, now)
    restored: list[str] = []
    superseded: list[str] = []
    unknown: list[str] = []
    live: list[str] = []
    expired: list[str] = []
    purged: list[str] = []
    protected: list[str] = []
    duplicates: dict[str, str] = {}
    visible = rows.namespace_ids(connection, namespaces)
    gone = rows.purged_ids(connection, ids, namespaces)
    for public_id in dict.fromkeys(ids):
        if public_id in gone:
            purged.append(public_id)
            continue
        found = connection.execute(
            "SELECT i.id, n.id, n.name, t.title, t.content, i.forgotten_at, i.superseded_by, i.key,"
            f" i.contests, i.type <> 'fact' AND i.expires_at IS NOT NULL AND i.expires_at <= ?, {rows.FOUND}, i.type"
            " FROM items i"
            " JOIN namespaces n ON n.id = i.namespace_id"
            f" JOIN texts t ON t.item_id = i.id WHERE i.public_id = ? AND i.namespace_id IN ({rows.places(visible)})",
            (now, public_id, *visible),
        ).fetchone()
        if found is None:
            unknown.append(public_id)
            continue
        row, namespace_id, namespace, title, content, forgotten_at, superseded_by, key, contests, *rest = found
        ended, noted, type_ = rest
        if ended:
            expired.append(public_id)
            continue
        if forgotten_at is None:
            live.append(public_id)
            continue
        if rank(caller.origin) > forgotten_by(connection, row) or tells_of_forgotten(connection, row):
            protected.append(public_id)
            continue
        # What is contested stands beside the rows of its text, and so does what is no note.
        current = superseded_by is None and contests is None and type_ == "note"
        twin = heads.of_text(connection, namespace_id, content, now) if current else None
        if twin is not None and (key is None or twin.key is None):
            duplicates[public_id] = twin.public_id
            continue
        if current:
            heads.retire_expired(connection, namespace_id, namespace, content, now, actor)
        connection.execute("UPDATE items SET forgotten_at = NULL, forget_reason = NULL WHERE id = ?", (row,))
        if superseded_by is None and noted:
            fulltext.put_back(connection, row, namespace_id, "note", title, content)
        journal.append_of(connection, row, "restore", actor, now)
        connection.execute("UPDATE facts SET reverted = 0 WHERE item_id = ?", (row,))
        settling.settle_of(connection, row, actor, now)
        after = connection.execute("SELECT superseded_by FROM items WHERE id = ?", (row,)).fetchone()[0]
        (restored if after is None else superseded).append(public_id)
    return Restored(
        restored=tuple(restored),
        superseded=tuple(superseded),
        unknown=tuple(unknown),
        live=tuple(live),
        expired=tuple(expired),
        purged=tuple(purged),
        protected=tuple(protected),
        duplicates=duplicates,
        sequence=journal.head(connection),
    )


def forgotten_by(connection: sqlite3.Connection, row: int) -> int:
    """The authority that a restore of a row needs: that of who forgot it; of the row itself where nobody here did."""
    found = connection.execute(
        "SELECT origin FROM journal WHERE item_id = ? AND operation = 'forget' ORDER BY sequence DESC LIMIT 1", (row,)
    ).fetchone()
    return rank(found[0]) if found is not None else (level(connection, row) or 0)


def _choose(connection: sqlite3.Connection, selection: Selection, origin: Origin, now: int) -> _Choice:
    """What `selection` is about, and what of it a caller of this origin may forget."""
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
    choice = _Choice([])
    if selection.ids:
        candidates = _named(connection, selection, conditions, values, choice, now)
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

    def is_spared(row: int) -> bool:
        return any(connection.execute(sql, (row, *bound)).fetchone() is not None for sql, bound in spared)

    alone = [row for row in candidates if not is_spared(row)]
    choice.again = [
        row
        for row in choice.again
        if forgotten_by(connection, row) > rank(origin) and not is_spared(row) and not is_above(connection, row, origin)
    ]
    above = outranking(connection, alone, origin)
    choice.rows = [row for row in alone if row not in above]
    choice.above = [row for row in alone if row in above]
    choice.shared = len(candidates) - len(alone)
    return choice


_OF_OTHERS = (
    # A token that is None is nobody's own.
    "SELECT 1 FROM items i WHERE i.id = ? AND i.namespace_id IN ({}) AND EXISTS (SELECT 1 FROM savers s"
    " JOIN clients c ON c.id = s.client_id WHERE s.item_id = i.id AND c.token IS NOT ?)"
)
"""Finds a row that came with another token too."""


def _named(
    connection: sqlite3.Connection,
    selection: Selection,
    conditions: list[str],
    values: list[Any],
    choice: _Choice,
    now: int,
) -> list[int]:
    candidates = []
    for public_id in dict.fromkeys(selection.ids):
        found = connection.execute(
            "SELECT i.id, i.forgotten_at IS NOT NULL, i.type <> 'fact' AND ifnull(i.expires_at <= ?, 0)"
            f" FROM items i WHERE i.public_id = ? AND {' AND '.join(conditions)}",
            (now, public_id, *values),
        ).fetchone()
        # A superseded version may be forgotten by id, and so may a fact that has ended: it is history. An expired note
        # is gone already.
        if found is None or found[2]:
            choice.unknown.append(public_id)
        elif found[1]:
            choice.already.append(public_id)
            choice.again.append(int(found[0]))
        else:
            candidates.append(int(found[0]))
    return candidates


def _outcome(connection: sqlite3.Connection, choice: _Choice, *, dry_run: bool) -> Forgotten:
    chosen, above = choice.rows, choice.above[:_LISTED]
    notes = rows.notes_by_row(connection, chosen[:_SHOWN])
    listed = dict(
        connection.execute(f"SELECT id, public_id FROM items WHERE id IN ({rows.places(above)})", above).fetchall()
    )
    return Forgotten(
        count=len(chosen),
        notes=tuple(notes[row] for row in chosen[:_SHOWN]),
        unknown=tuple(choice.unknown),
        already=tuple(choice.already),
        shared=choice.shared,
        protected=tuple(listed[row] for row in above),
        sequence=journal.head(connection),
        dry_run=dry_run,
    )
