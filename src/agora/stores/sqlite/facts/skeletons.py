"""What a purge leaves of statements, which others go with one, and when what they are of goes too."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable

from agora.model.instants import NEVER
from agora.model.timeline import outcome
from agora.stores.sqlite.authority import level_sql
from agora.stores.sqlite.facts import settling, slots
from agora.stores.sqlite.journal import Actor

_STRIP = "UPDATE facts SET value = NULL, same = NULL, quoted = 0, valid_to = NULL, expires_at = NULL"

_SPOKEN_OF = (
    "EXISTS (SELECT 1 FROM facts f JOIN items i ON i.id = f.item_id WHERE f.slot_id = l.id AND i.purged_at IS NULL)"
)
"""Of a slot `l`: whether there is a statement of it that was not purged."""

LEFT_FACTS = (
    "SELECT count(*) FROM facts f JOIN items i ON i.id = f.item_id WHERE i.purged_at IS NOT NULL"
    " AND (f.value IS NOT NULL OR f.same IS NOT NULL OR f.reverted OR f.slot_id NOT IN (SELECT id FROM fact_slots))"
)
LEFT_SLOTS = f"SELECT count(*) FROM fact_slots l WHERE NOT {_SPOKEN_OF}"
"""What a purge must not leave: content of a skeleton, skeletons that nobody needs, names of what nothing is said of."""


def equal_to(connection: sqlite3.Connection, row: int, now: int) -> list[int]:
    """Statements that go with a fact, since they say what it says: those that it stands for, and its end.

    It stands for equal ones that made way for it: without its value nothing would hold them back.
    """
    slot = slots.of_item(connection, row)
    known = [] if slot is None else slots.statements(connection, slot)
    by_row = {each.row: each for each in known}
    if slot is None or by_row[row].same is None:
        return []
    after = outcome(known, NEVER, now).replaced
    equal = [each for each in known if each.same == by_row[row].same and each.row != row]
    going = {row}
    while more := [
        each.row
        for each in equal
        if each.row not in going
        and (after.get(each.row) in going or (each.start == each.stop and each.row in {after.get(r) for r in going}))
    ]:
        going.update(more)
    return sorted(going - {row})


def ranks(connection: sqlite3.Connection, rows: Iterable[int]) -> dict[int, int]:
    """Whose word the statements of the slots of these rows are, as a number."""
    found: dict[int, int] = {}
    for slot in {slot for row in rows if (slot := slots.of_item(connection, row)) is not None}:
        known = slots.statements(connection, slot)
        found |= {each.row: each.rank(NEVER) for each in known}
    return found


def leave(connection: sqlite3.Connection, row: int, rank: int | None) -> int | None:
    """Take from a statement what it says, and all of it if it was taken back; its slot, None if it is none."""
    slot = slots.of_item(connection, row)
    connection.execute("DELETE FROM facts WHERE item_id = ? AND reverted", (row,))
    connection.execute(f"{_STRIP}, rank = ? WHERE item_id = ?", (rank, row))
    return slot


def clear(connection: sqlite3.Connection, touched: Iterable[int], actor: Actor, now: int) -> None:
    """Let go of those of these slots that nothing is said of any more, and bring the others up to date."""
    for slot in touched:
        _clear(connection, "AND l.id = ?", (slot,))
        settling.settle(connection, slot, actor, now)


def clear_unused(connection: sqlite3.Connection) -> None:
    """Let go of every slot that nothing is said of any more."""
    _clear(connection, "", ())


def sweep(connection: sqlite3.Connection, skeletons: str) -> None:
    """As `leave` and `clear`, of all that somebody left or made since; `skeletons` is a query for purged items.

    While their savers are there, whose word they were is.
    """
    of_them = f"item_id IN ({skeletons})"
    connection.execute(f"DELETE FROM facts WHERE reverted AND {of_them}")
    connection.execute(f"{_STRIP}, rank = ifnull(rank, {level_sql('facts.item_id')}) WHERE {of_them}")
    clear_unused(connection)
    connection.execute(f"DELETE FROM facts WHERE {of_them} AND slot_id NOT IN (SELECT id FROM fact_slots)")


def _clear(connection: sqlite3.Connection, which: str, values: tuple[int, ...]) -> None:
    for (slot,) in connection.execute(f"SELECT id FROM fact_slots l WHERE NOT {_SPOKEN_OF} {which}", values).fetchall():
        # Nobody can come back to a name that is gone: its skeletons hold nothing back.
        connection.execute("DELETE FROM facts WHERE slot_id = ?", (slot,))
        connection.execute("DELETE FROM fact_slots WHERE id = ?", (slot,))
