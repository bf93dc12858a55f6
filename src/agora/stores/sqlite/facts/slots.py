"""What facts are of: a subject and a key in a namespace."""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence

from agora.model.caller import RANKS
from agora.model.instants import NEVER
from agora.model.timeline import Statement
from agora.stores.sqlite.rows import places
from agora.text.sameness import name_of

_RANK = "CASE s.origin " + " ".join(f"WHEN '{origin}' THEN {rank}" for rank, origin in enumerate(RANKS)) + " END"

_STATEMENTS = (
    "SELECT f.item_id, f.same, f.multi, f.valid_from, f.valid_to, f.expires_at, i.created_at,"
    " i.forgotten_at IS NOT NULL OR i.purged_at IS NOT NULL, f.reverted, f.rank,"
    f" group_concat({_RANK} || ' ' || s.first_at) FROM facts f"
    " JOIN items i ON i.id = f.item_id LEFT JOIN savers s ON s.item_id = f.item_id"
    " WHERE f.slot_id = ? AND f.replaced_at > ? GROUP BY f.item_id"
)

ALWAYS = -(2**63)
"""Before any instant: leaves out nothing that was replaced since."""


def ensure(connection: sqlite3.Connection, namespace_id: int, subject: str, key: str) -> int:
    """The slot of a subject and a key, made if there is none yet."""
    place = (namespace_id, name_of(subject), name_of(key))
    connection.execute(
        "INSERT INTO fact_slots (namespace_id, subject, key, shown_subject, shown_key) VALUES (?, ?, ?, ?, ?)"
        " ON CONFLICT DO NOTHING",
        (*place, subject, key),
    )
    return find(connection, *place) or 0


def find(connection: sqlite3.Connection, namespace_id: int, subject: str, key: str) -> int | None:
    """The slot of a subject and a key as they are compared; None if there is none."""
    found = connection.execute(
        "SELECT id FROM fact_slots WHERE namespace_id = ? AND subject = ? AND key = ?", (namespace_id, subject, key)
    ).fetchone()
    return None if found is None else int(found[0])


def of_item(connection: sqlite3.Connection, row: int) -> int | None:
    """The slot that an item is a statement of; None if it is no fact."""
    found = connection.execute("SELECT slot_id FROM facts WHERE item_id = ?", (row,)).fetchone()
    return None if found is None else int(found[0])


def statements(connection: sqlite3.Connection, slot: int, since: int = ALWAYS) -> list[Statement]:
    """What was stated of a slot, without what had been replaced at `since`, which is nothing to any later instant."""
    return [_statement(*row) for row in connection.execute(_STATEMENTS, (slot, since))]


def matching(
    connection: sqlite3.Connection,
    namespaces: Sequence[int],
    subject: str | None,
    key: str | None,
    most: int,
    at: int | None,
) -> tuple[list[int], int]:
    """Slots of a subject and a key as they are written by whoever asks, and how many more there are than `most`.

    Then they are those best founded of which something holds at `at`, or was ever said if that is None.
    """
    where, values = [f"l.namespace_id IN ({places(namespaces)})"], list[object](namespaces)
    for column, given in (("subject", subject), ("key", key)):
        if given is not None:
            where.append(f"l.{column} = ?")
            values.append(name_of(given))
    wanted = " AND ".join(where)
    found = connection.execute(f"SELECT l.id FROM fact_slots l WHERE {wanted} LIMIT ?", (*values, most + 1)).fetchall()
    if len(found) > most:
        since, begun, ends = (ALWAYS, NEVER, ALWAYS) if at is None else (at, at, at)
        found = connection.execute(_FOUNDED.format(wanted), (since, begun, ends, *values)).fetchall()
    return [int(row[0]) for row in found[:most]], max(0, len(found) - most)


_FOUNDED = (
    "SELECT f.slot_id FROM fact_slots l CROSS JOIN facts f ON f.slot_id = l.id AND f.replaced_at > ?"
    " AND f.valid_from <= ? CROSS JOIN items i ON i.id = f.item_id AND i.forgotten_at IS NULL"
    " AND (i.expires_at IS NULL OR i.expires_at > ?) LEFT JOIN pins p ON p.item_id = f.item_id WHERE {}"
    " GROUP BY f.slot_id ORDER BY max(p.pinned_at IS NOT NULL) DESC,"
    " max((SELECT count(*) FROM savers s WHERE s.item_id = f.item_id)) DESC, max(f.valid_from) DESC, f.slot_id"
)
"""Pinned first, then those with most sources, then the newest: as the memory orders what holds."""


def _statement(  # noqa: PLR0913, PLR0917 - the columns of one row
    row: int,
    same: bytes | None,
    multi: int,
    start: int,
    stop: int | None,
    expires: int | None,
    recorded: int,
    retracted: int,
    reverted: int,
    rank: int | None,
    voices: str | None,
) -> Statement:
    heard = tuple((int(level), int(since)) for level, since in map(str.split, filter(None, (voices or "").split(","))))
    # Of a purged one the sources are gone, and whose word it was is not.
    heard = heard or ((rank or 0, recorded),)
    return Statement(row, same, bool(multi), start, stop, expires, recorded, bool(retracted), bool(reverted), heard)
