"""Notes by who saved them and when, names by their beginnings, and the tail of the journal."""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence

from agora.model.browse import Event, Listing, Named, Page
from agora.model.instants import from_micros
from agora.stores.sqlite import rows

_LIVE = (
    "i.superseded_by IS NULL AND i.forgotten_at IS NULL AND (i.expires_at IS NULL OR i.expires_at > ?)"
    f" AND {rows.FOUND}"
)


def page(connection: sqlite3.Connection, wanted: Listing, now: int, sequence: int) -> Page:
    """One page of live notes, newest first."""
    namespaces = rows.namespace_ids(connection, wanted.namespaces)
    where = [f"i.namespace_id IN ({rows.places(namespaces)})", _LIVE, "i.type = 'note'"]
    values: list[object] = [*namespaces, now]
    if wanted.agent is not None:
        where.append(
            "EXISTS (SELECT 1 FROM savers s JOIN agents a ON a.id = s.agent_id WHERE s.item_id = i.id AND a.name = ?)"
        )
        values.append(wanted.agent)
    if wanted.session is not None:
        where.append("i.id IN (SELECT item_id FROM savers WHERE session = ?)")
        values.append(wanted.session)
    total = connection.execute(f"SELECT count(*) FROM items i WHERE {' AND '.join(where)}", values).fetchone()[0]
    if wanted.before is not None:
        # One that lies elsewhere, or is none, has nothing before it.
        where.append(
            f"i.id < (SELECT c.id FROM items c WHERE c.public_id = ? AND c.namespace_id IN ({rows.places(namespaces)}))"
        )
        values += (wanted.before, *namespaces)
    found = [
        row[0]
        for row in connection.execute(
            f"SELECT i.id FROM items i WHERE {' AND '.join(where)} ORDER BY i.id DESC LIMIT ?",
            (*values, wanted.limit + 1),
        )
    ]
    shown = found[: wanted.limit]
    notes = rows.notes_by_row(connection, shown)
    more = len(found) > len(shown)
    return Page(tuple(notes[row] for row in shown), notes[shown[-1]].id if more else None, total, sequence)


_NAMES = {
    "agents": (
        "SELECT DISTINCT a.name AS name FROM agents a WHERE a.name LIKE ? ESCAPE '\\' AND EXISTS (SELECT 1 FROM"
        " savers s JOIN items i ON i.id = s.item_id WHERE s.agent_id = a.id AND {inside} AND {live})"
    ),
    "sessions": (
        "SELECT DISTINCT s.session AS name FROM savers s JOIN items i ON i.id = s.item_id"
        " WHERE s.session LIKE ? ESCAPE '\\' AND {inside} AND {live}"
    ),
    "namespaces": (
        "SELECT n.name AS name FROM namespaces n WHERE n.name LIKE ? ESCAPE '\\' AND n.id IN ({ids})"
        " AND EXISTS (SELECT 1 FROM items i WHERE i.namespace_id = n.id AND {inside} AND {live})"
    ),
    "notes": "SELECT i.public_id AS name FROM items i WHERE i.public_id LIKE ? ESCAPE '\\' AND {inside} AND {live}",
}


def names(
    connection: sqlite3.Connection, kind: Named, beginning: str, namespaces: Sequence[str], now: int, most: int
) -> tuple[tuple[str, ...], int]:
    """The first `most` names of live notes that begin so, sorted, and how many there are."""
    ids = rows.namespace_ids(connection, namespaces)
    marks = rows.places(ids)
    sql = _NAMES[kind].format(inside=f"i.namespace_id IN ({marks})", live=_LIVE, ids=marks)
    escaped = beginning.replace("\\", "\\\\").replace("%", "\\%").replace("_", "\\_")
    values = (escaped + "%", *(ids if kind == "namespaces" else ()), *ids, now)
    total = connection.execute(f"SELECT count(*) FROM ({sql})", values).fetchone()[0]
    # The newest notes are the likeliest to be meant; other names come in their order.
    order = "DESC" if kind == "notes" else "ASC"
    found = connection.execute(f"SELECT name FROM ({sql}) ORDER BY name {order} LIMIT ?", (*values, most))
    return tuple(name for (name,) in found), total


def events(connection: sqlite3.Connection, since: int, most: int) -> tuple[Event, ...]:
    """The first `most` changes after the sequence `since`, in order."""
    found = connection.execute(
        "SELECT j.sequence, j.at, j.operation, j.subject, n.name, a.name, j.session FROM journal j"
        " LEFT JOIN namespaces n ON n.id = j.namespace_id JOIN agents a ON a.id = j.agent_id"
        " WHERE j.sequence > ? ORDER BY j.sequence LIMIT ?",
        (since, most),
    )
    return tuple(Event(row[0], from_micros(row[1]), *row[2:]) for row in found)
