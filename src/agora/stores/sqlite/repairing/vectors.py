"""What the model makes: passages and vectors that are missing, an item at a time, in batches."""

from __future__ import annotations

import sqlite3
from typing import NamedTuple

from agora.model.profile import Fingerprint
from agora.ports.records import Embedded
from agora.stores.sqlite import fulltext
from agora.stores.sqlite.rows import FOUND, blocks, places
from agora.stores.sqlite.saving import insert_passages

_ACTIVE = "JOIN encoders e ON e.state = 'active' AND e.layout = p.layout"
_BARE = (
    f"FROM passages p {_ACTIVE}"
    " WHERE NOT EXISTS (SELECT 1 FROM vectors v WHERE v.passage_id = p.id AND v.encoder_id = e.id)"
)


class Lacking(NamedTuple):
    """A note of which a vector is missing."""

    row: int
    title: str | None
    content: str


def encoder(connection: sqlite3.Connection, fingerprint: Fingerprint) -> int | None:
    """The row number of the store's encoder; None if it is not the one with this fingerprint, or not any more."""
    found = connection.execute(
        "SELECT id FROM encoders WHERE digest = ? AND state = 'active'", (fingerprint.digest(),)
    ).fetchone()
    return None if found is None else int(found[0])


def count_lacking(connection: sqlite3.Connection) -> int:
    """How many notes lack a vector."""
    return int(connection.execute(f"SELECT count(DISTINCT p.item_id) {_BARE}").fetchone()[0])


def lacking(connection: sqlite3.Connection, after: int, most: int) -> list[Lacking]:
    """The next notes that lack a vector, by row, at most `most` of those beyond the row `after`."""
    rows = [
        row
        for (row,) in connection.execute(
            f"SELECT DISTINCT p.item_id {_BARE} AND p.item_id > ? ORDER BY p.item_id LIMIT ?", (after, most)
        )
    ]
    found: list[Lacking] = []
    for block in blocks(rows):
        found += map(
            Lacking._make,
            connection.execute(
                f"SELECT item_id, title, content FROM texts WHERE item_id IN ({places(block)}) ORDER BY item_id",
                tuple(block),
            ),
        )
    return found


def fill(connection: sqlite3.Connection, note: Lacking, embedded: Embedded, encoder_id: int) -> int:
    """Put in what a note lacks, in the caller's transaction; how many vectors went in.

    Passages that are where the model would cut stay, with the vectors they have; others are made anew. Nothing is done
    to a note that was purged or filled meanwhile, or whose number is another's since a backup was put back.
    """
    still = connection.execute(f"SELECT 1 {_BARE} AND p.item_id = ?", (note.row,)).fetchone()
    # A passage's vector may be made from the title too.
    text = connection.execute("SELECT title, content FROM texts WHERE item_id = ?", (note.row,)).fetchone()
    if still is None or text != (note.title, note.content):
        return 0
    if fulltext.spans(connection, note.row) != embedded.spans:
        return _replace(connection, note, embedded)
    passages = connection.execute(
        f"SELECT id FROM passages WHERE item_id = ? AND layout = {fulltext.LAYOUT} ORDER BY n", (note.row,)
    ).fetchall()
    return sum(
        connection.execute(
            "INSERT INTO vectors (passage_id, encoder_id, vector) VALUES (?, ?, ?) ON CONFLICT DO NOTHING",
            (passage, encoder_id, vector.astype("<f4").tobytes()),
        ).rowcount
        for (passage,), vector in zip(passages, embedded.vectors, strict=True)
    )


def _replace(connection: sqlite3.Connection, note: Lacking, embedded: Embedded) -> int:
    namespace_id, type_, findable = connection.execute(
        f"SELECT namespace_id, type, superseded_by IS NULL AND forgotten_at IS NULL AND {FOUND}"
        " FROM items i WHERE id = ?",
        (note.row,),
    ).fetchone()
    if findable:
        fulltext.remove(connection, note.row, namespace_id, type_)
    own = f"(SELECT id FROM passages WHERE item_id = ? AND layout = {fulltext.LAYOUT})"
    connection.execute(f"DELETE FROM vectors WHERE passage_id IN {own}", (note.row,))
    connection.execute(f"DELETE FROM passages WHERE id IN {own}", (note.row,))
    insert_passages(connection, note.row, embedded)
    if findable:
        prepared = fulltext.prepare(note.title, note.content, embedded.spans)
        fulltext.add(connection, note.row, namespace_id, type_, prepared)
    return len(embedded.vectors)
