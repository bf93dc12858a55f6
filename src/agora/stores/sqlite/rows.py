from __future__ import annotations

import hashlib
import json
import math
import sqlite3
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from agora.errors import StoreCorrupt
from agora.model.caller import rank
from agora.model.instants import from_micros, maybe
from agora.model.note import Note, Said, Saver

_COLUMNS = (
    "SELECT i.id, i.public_id, n.name, t.content, t.title, i.kind, i.key, i.version, t.metadata, i.confidence,"
    " i.created_at, i.updated_at, i.occurred_at, i.expires_at, i.forgotten_at, i.forget_reason,"
    " before.public_id, after.public_id, i.type, i.contests, stands.public_id, p.pinned_at"
    " FROM items i JOIN namespaces n ON n.id = i.namespace_id"
    " JOIN texts t ON t.item_id = i.id LEFT JOIN items before ON before.id = i.supersedes"
    " LEFT JOIN items after ON after.id = i.superseded_by LEFT JOIN items stands ON stands.id = i.contests"
    " LEFT JOIN pins p ON p.item_id = i.id"
)
FOUND = "i.type NOT IN ('message', 'summary')"
"""Of an item `i`: whether it belongs into indexes, lists and counts of notes. Conversations are in none of them."""

BLOCK = 400
"""Parameters per statement, well under the 999 of an SQLite built with its old default."""


def canonical(value: object) -> str:
    """The one JSON text of a value, so that equal values have equal texts (1 and 1.0 are equal)."""
    return json.dumps(_plain(value), ensure_ascii=False, sort_keys=True, separators=(",", ":"), allow_nan=False)


def digest(value: object) -> bytes:
    """SHA-256 of the canonical JSON text: equal for equal values, and as short for long ones."""
    return hashlib.sha256(canonical(value).encode()).digest()


def blocks(values: Sequence[Any], most: int = BLOCK) -> Iterable[Sequence[Any]]:
    """`values` in pieces of at most `most` that fit one statement."""
    step = min(most, BLOCK)
    return (values[start : start + step] for start in range(0, len(values), step))


def places(values: Sequence[object]) -> str:
    """As many question marks as there are values."""
    return ",".join("?" * len(values))


def numbers(cursor: sqlite3.Cursor) -> list[NDArray[np.int64]]:
    """The columns of a statement's only row, each the `group_concat(…, ' ')` of numbers, in any order.

    One long string is read several times as fast as a row for each number.
    """
    return [np.fromstring(column or "", dtype=np.int64, sep=" ") for column in cursor.fetchone()]


def namespace_ids(connection: sqlite3.Connection, names: Sequence[str]) -> tuple[int, ...]:
    """Row numbers of the namespaces that exist, ascending."""
    found = connection.execute(
        f"SELECT id FROM namespaces WHERE name IN ({places(names)}) ORDER BY id",
        tuple(names),
    )
    return tuple(row[0] for row in found)


def notes_by_row(connection: sqlite3.Connection, rows: Sequence[int], now: int | None = None) -> dict[int, Note]:
    """The notes of these rows with tags and savers, whatever their state.

    What contests them is told of unless it has expired by `now`.
    """
    return _assemble(connection, "i.id IN ({})", rows, now)


def notes_by_id(
    connection: sqlite3.Connection, ids: Sequence[str], names: Sequence[str], now: int | None = None
) -> dict[int, Note]:
    """As `notes_by_row`, looked up by public id in the namespaces `names`, keyed by row.

    Nothing of a note that lies elsewhere is read: its size does not tell that there is one, nor does damage in it.
    """
    inside = ",".join(map(str, namespace_ids(connection, names)))
    return _assemble(connection, f"i.public_id IN ({{}}) AND i.namespace_id IN ({inside})", ids, now)


def purged_ids(connection: sqlite3.Connection, ids: Sequence[str], names: Sequence[str]) -> frozenset[str]:
    """Those of `ids` that lie in the namespaces `names` and of which a purge left nothing but a skeleton."""
    inside = namespace_ids(connection, names)
    return frozenset(
        row[0]
        for block in blocks(list(ids))
        for row in connection.execute(
            f"SELECT public_id FROM items WHERE public_id IN ({places(block)}) AND purged_at IS NOT NULL"
            f" AND namespace_id IN ({places(inside)})",
            (*block, *inside),
        )
    )


def _assemble(connection: sqlite3.Connection, where: str, values: Sequence[Any], now: int | None) -> dict[int, Note]:
    found: dict[int, Note] = {}
    for block in blocks(list(values)):
        items = connection.execute(f"{_COLUMNS} WHERE {where.format(places(block))}", tuple(block)).fetchall()
        rows = [item[0] for item in items]
        tags, savers = _tags(connection, rows), savers_of(connection, rows)
        contesting = _contesting(connection, rows, now)
        said = _said(connection, [item[0] for item in items if item[18] == "fact"])
        for item in items:
            row = item[0]
            found[row] = _note(item, tags[row], savers.get(row, ()), contesting.get(row, ()), said.get(row))
    return found


def _note(
    item: Sequence[Any], tags: Sequence[str], savers: Sequence[Saver], contesting: Sequence[str], said: Said | None
) -> Note:
    if not savers:
        raise StoreCorrupt(f"the note {item[1]} has no provenance: the store is damaged")
    return Note(
        id=item[1],
        namespace=item[2],
        content=item[3],
        title=item[4],
        kind=item[5],
        key=item[6],
        version=item[7],
        tags=tuple(tags),
        metadata=metadata_of(item[1], item[8]),
        confidence=item[9],
        created_at=from_micros(item[10]),
        updated_at=from_micros(item[11]),
        occurred_at=maybe(item[12]),
        expires_at=maybe(item[13]),
        forgotten_at=maybe(item[14]),
        forget_reason=item[15],
        supersedes=item[16],
        superseded_by=item[17],
        savers=tuple(savers),
        type=item[18],
        contests=None if item[19] is None else item[20] or "unknown",
        contested_by=tuple(contesting),
        pinned_at=maybe(item[21]),
        fact=said,
    )


def _said(connection: sqlite3.Connection, rows: Sequence[int]) -> dict[int, Said]:
    """What the facts among these items say."""
    if not rows:
        return {}
    return {
        row: Said(subject, key, value_of(row, value), from_micros(start), maybe(stop))
        for row, subject, key, value, start, stop in connection.execute(
            "SELECT f.item_id, l.shown_subject, l.shown_key, f.value, f.valid_from, f.valid_to FROM facts f"
            f" JOIN fact_slots l ON l.id = f.slot_id WHERE f.item_id IN ({places(rows)}) AND f.value IS NOT NULL",
            tuple(rows),
        )
    }


def value_of(row: int, stored: str) -> Any:  # noqa: ANN401 - JSON
    """The value of a fact, from the JSON text that is stored.

    Raises: StoreCorrupt if it is no JSON.
    """
    try:
        return json.loads(stored)
    except ValueError:
        raise StoreCorrupt(f"the value of the fact in row {row} is damaged") from None


def metadata_of(public_id: str, stored: str) -> dict[str, Any]:
    """The metadata of a note, from the JSON text that is stored.

    Raises: StoreCorrupt if it is no JSON object.
    """
    try:
        found = json.loads(stored)
    except ValueError:
        found = None
    if not isinstance(found, dict):
        raise StoreCorrupt(f"the metadata of the note {public_id} is damaged")
    return found


def echo_in(given: str) -> str | None:
    """Id of the note that a saver only repeated, from what is kept of the saver."""
    # Hardly any saver has one, and every hit has a saver.
    return json.loads(given).get("echo_of") if '"echo_of"' in given else None


def _own_tags(given: str) -> tuple[str, ...]:
    """Tags that are a saver's alone, from what is kept of the saver."""
    return tuple(json.loads(given).get("tags", ())) if '"tags"' in given else ()


def _contesting(connection: sqlite3.Connection, rows: Sequence[int], now: int | None) -> dict[int, list[str]]:
    found: dict[int, list[str]] = defaultdict(list)
    for row, public_id in connection.execute(
        f"SELECT contests, public_id FROM items WHERE contests IN ({places(rows)}) AND superseded_by IS NULL"
        " AND forgotten_at IS NULL AND purged_at IS NULL AND (expires_at IS NULL OR ? IS NULL OR expires_at > ?)"
        " ORDER BY id",
        (*rows, now, now),
    ):
        found[row].append(public_id)
    return found


def _tags(connection: sqlite3.Connection, rows: Sequence[int]) -> dict[int, list[str]]:
    found: dict[int, list[str]] = defaultdict(list)
    for row, tag in connection.execute(
        f"SELECT DISTINCT item_id, tag FROM item_tags WHERE item_id IN ({places(rows)}) ORDER BY item_id, tag",
        tuple(rows),
    ):
        found[row].append(tag)
    return found


def savers_of(connection: sqlite3.Connection, rows: Sequence[int]) -> dict[int, list[Saver]]:
    """Who saved each of these items, highest origin first."""
    found: dict[int, list[Saver]] = defaultdict(list)
    for row, agent, client, session, origin, at, given in connection.execute(
        "SELECT s.item_id, a.name, c.name, s.session, s.origin, s.first_at, s.given FROM savers s"
        " JOIN agents a ON a.id = s.agent_id JOIN clients c ON c.id = s.client_id"
        f" WHERE s.item_id IN ({places(rows)}) ORDER BY s.item_id, s.n",
        tuple(rows),
    ):
        saver = Saver(agent, client, session, origin, from_micros(at), echo_in(given), _own_tags(given))
        found[row].append(saver)
    # Whose word counts comes first; the sort is stable.
    return {row: sorted(savers, key=lambda saver: rank(saver.origin)) for row, savers in found.items()}


def _plain(value: object) -> object:
    if isinstance(value, Mapping):
        return {str(key): _plain(inner) for key, inner in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(inner) for inner in value]
    # A finite float without a fraction is the same number as the integer.
    if isinstance(value, float) and math.isfinite(value) and value == int(value):
        return int(value)
    return value
