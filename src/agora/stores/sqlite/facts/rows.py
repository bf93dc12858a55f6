from __future__ import annotations

import json
import sqlite3
from collections.abc import Sequence
from typing import Any

from agora.errors import StoreCorrupt
from agora.model.fact import Fact
from agora.model.instants import from_micros, maybe
from agora.stores.sqlite.rows import blocks, places, savers_of

_FACT = (
    "SELECT i.id, i.public_id, n.name, l.shown_subject, l.shown_key, f.value, f.multi, f.valid_from, f.valid_to,"
    " f.expires_at, i.created_at, i.forgotten_at, CASE f.quoted WHEN 1 THEN t.content END, f.same, p.pinned_at,"
    " i.forget_reason, f.reverted, i.purged_at, f.rank"
    " FROM facts f JOIN items i ON i.id = f.item_id JOIN fact_slots l ON l.id = f.slot_id"
    " JOIN namespaces n ON n.id = i.namespace_id LEFT JOIN texts t ON t.item_id = i.id"
    " LEFT JOIN pins p ON p.item_id = i.id"
)


def by_row(connection: sqlite3.Connection, wanted: Sequence[int]) -> dict[int, Fact]:
    """The facts of these rows, whatever their state; purged ones are left out."""
    found = _assemble(connection, "f.item_id IN ({})", wanted)
    return {row: fact for row, fact in found.items() if fact.purged_rank is None}


def of_slots(connection: sqlite3.Connection, wanted: Sequence[int], since: int) -> tuple[Fact, ...]:
    """The statements of these slots by subject, key and time, without what had been replaced at `since`.

    Of purged ones there is nothing but the place that they hold.
    """
    found = _assemble(connection, "f.slot_id IN ({}) AND f.replaced_at > ?", wanted, since).values()
    return tuple(sorted(found, key=lambda f: (f.namespace, f.subject, f.key, f.valid_from, f.recorded_at, f.row)))


def _assemble(connection: sqlite3.Connection, where: str, wanted: Sequence[int], *values: int) -> dict[int, Fact]:
    found: dict[int, Fact] = {}
    for block in blocks(list(wanted)):
        rows = connection.execute(f"{_FACT} WHERE {where.format(places(block))}", (*block, *values)).fetchall()
        savers = {}
        for each in blocks([row[0] for row in rows]):
            savers.update(savers_of(connection, each))
        for row in rows:
            if row[17] is None and row[0] not in savers:
                raise StoreCorrupt(f"the fact {row[1]} has no provenance: the store is damaged")
            found[row[0]] = _fact(row, savers.get(row[0], ()))
    return found


def _fact(row: Sequence[Any], savers: Sequence[Any]) -> Fact:
    purged = row[17] is not None
    return Fact(
        id=row[1],
        row=row[0],
        namespace=row[2],
        subject=row[3],
        key=row[4],
        value="" if purged else json.loads(row[5]),
        multi=bool(row[6]),
        valid_from=from_micros(row[7]),
        valid_to=maybe(row[8]),
        expires_at=maybe(row[9]),
        recorded_at=from_micros(row[10]),
        retracted_at=maybe(row[11]),
        quote=row[12],
        savers=tuple(savers),
        same=b"" if purged else row[13],
        pinned_at=maybe(row[14]),
        reason=row[15],
        reverted=bool(row[16]),
        purged_rank=(row[18] or 0) if purged else None,
    )
