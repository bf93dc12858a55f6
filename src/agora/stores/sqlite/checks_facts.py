"""Statements against what is drawn from them, and what they are of against them."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterator

from agora.stores.sqlite.facts import settling
from agora.stores.sqlite.migrations import version_of
from agora.stores.sqlite.rules import FACTS_SINCE, Problem, cases
from agora.text.sameness import same

_VALUES = (
    "SELECT f.item_id, i.public_id, f.value, f.same FROM facts f JOIN items i ON i.id = f.item_id"
    " WHERE i.purged_at IS NULL ORDER BY f.item_id"
)
_LAST_CHANGED = (
    "SELECT f.slot_id, j.at FROM journal j JOIN facts f ON f.item_id = j.item_id"
    " WHERE f.slot_id IN (SELECT id FROM fact_slots) ORDER BY j.sequence"
)


def wrong_facts(connection: sqlite3.Connection) -> Iterator[Problem]:
    """Values that cannot be read, sameness that is another's, ends that do not follow from the statements."""
    if version_of(connection) < FACTS_SINCE:
        return
    broken, unlike = [], []
    for _, public_id, value, known in connection.execute(_VALUES):
        wanted = sameness(value)
        if wanted is None:
            broken.append(public_id)
        elif wanted != known:
            unlike.append(public_id)
    if broken:
        yield cases("fact_damaged", broken)
    if unlike:
        yield cases("fact_sameness", unlike)
    if wrong := [row for slot, at in last_changed(connection).items() for row in settling.astray(connection, slot, at)]:
        known = (connection.execute("SELECT public_id FROM items WHERE id = ?", (row,)).fetchone()[0] for row in wrong)
        yield cases("fact_ends", list(known))


def last_changed(connection: sqlite3.Connection) -> dict[int, int]:
    """When each slot was last changed, and so brought up to date."""
    return dict(connection.execute(_LAST_CHANGED).fetchall())


def unlike(connection: sqlite3.Connection) -> list[tuple[bytes, int]]:
    """The sameness of each value that has another one, with the row of its statement."""
    found = connection.execute(_VALUES).fetchall()
    wanted = ((sameness(value), row, known) for row, _, value, known in found)
    return [(each, row) for each, row, known in wanted if each is not None and each != known]


def sameness(value: str | None) -> bytes | None:
    """What a value is compared by; None if it cannot be read."""
    try:
        return None if value is None else same(json.loads(value))
    except (ValueError, TypeError, RecursionError):
        return None
