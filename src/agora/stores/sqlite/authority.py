"""Whose word counts for a row: its level, which is the highest origin of its savers as a number, less is higher."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable

from agora.model.caller import RANKS, Origin, rank

_CASES = " ".join(f"WHEN '{origin}' THEN {place}" for place, origin in enumerate(RANKS))


def level_sql(item: str) -> str:
    """The level of the item whose number is the SQL expression `item`; null for one without savers."""
    return f"(SELECT min(CASE s.origin {_CASES} END) FROM savers s WHERE s.item_id = {item})"


_LEVEL = f"SELECT {level_sql('?')}"


def level(connection: sqlite3.Connection, row: int) -> int | None:
    """The level of a row; None for a skeleton, whose savers are gone."""
    found: int | None = connection.execute(_LEVEL, (row,)).fetchone()[0]
    return found


def is_above(connection: sqlite3.Connection, row: int, origin: Origin) -> bool:
    """Whether a row is of higher authority than `origin`, which may then change nothing of it."""
    found = level(connection, row)
    return found is not None and found < rank(origin)


def outranking(connection: sqlite3.Connection, rows: Iterable[int], origin: Origin) -> frozenset[int]:
    """Those of `rows` that are of higher authority than `origin`."""
    if origin == RANKS[0]:
        return frozenset()
    return frozenset(row for row in rows if is_above(connection, row, origin))


def is_pinned(connection: sqlite3.Connection, row: int) -> bool:
    """Whether the user has pinned a row."""
    return connection.execute("SELECT 1 FROM pins WHERE item_id = ?", (row,)).fetchone() is not None
