"""What a move to another encoder writes beside what is there: passages, vectors, and the full text of a new layout."""

from __future__ import annotations

import sqlite3
from collections import defaultdict
from collections.abc import Mapping, Sequence

from agora.model.profile import Span
from agora.ports.reembedding import Cut, Text
from agora.stores.sqlite import fulltext
from agora.stores.sqlite.fulltext import CURRENT, SPARE, Prepared
from agora.stores.sqlite.ledger import Target
from agora.stores.sqlite.migrations import definition
from agora.stores.sqlite.rows import FOUND, blocks, places
from agora.text.analysis import VERSION

ANALYSIS = "analysis_spare"
"""Row of `meta` with the version of the analysis that the spare full text is built by, while it is built."""

CHARACTERS = 1 << 20
"""Of texts that are in memory at the same time, unless one of them has more."""


def texts(
    connection: sqlite3.Connection, target: Target, rows: Sequence[int], characters: int
) -> dict[int, Text | None]:
    """The texts of these rows; those that are gone are left out, None stands for one that is still to be read."""
    found: dict[int, Text | None] = {}
    held = 0
    for block in blocks(rows):
        here = places(block)
        current = _spans(connection, fulltext.LAYOUT, block)
        made: dict[int, tuple[Span, ...]] = {}
        if target.own:
            # From before it had a layout of its own; then what that has, where only the words are missing.
            made = _made(connection, target, fulltext.LAYOUT, current)
            made |= _made(connection, target, str(target.layout), _spans(connection, str(target.layout), block))
        asked = connection.execute(
            "SELECT i.id, i.public_id, t.title, t.content, i.superseded_by IS NULL AND i.forgotten_at IS NULL"
            f" AND {FOUND} FROM items i JOIN texts t ON t.item_id = i.id"
            f" WHERE i.id IN ({here}) AND i.purged_at IS NULL",
            tuple(block),
        )
        for row, public_id, title, content, findable in asked:
            held += len(content)
            shared = None if target.own else current.get(row, ())
            found[row] = Text(row, public_id, title, content, bool(findable), shared, made.get(row, ()))
            if held >= characters:
                asked.close()
                return {each: found.get(each) for each in rows}
    return {row: found[row] for row in rows if row in found}


def _spans(connection: sqlite3.Connection, layout: str, rows: Sequence[int]) -> dict[int, tuple[Span, ...]]:
    """The passages of these rows in a layout, which is given as SQL."""
    found: dict[int, list[Span]] = defaultdict(list)
    for row, start, stop in connection.execute(
        f"SELECT item_id, start, stop FROM passages WHERE layout = {layout} AND item_id IN ({places(rows)})"
        " ORDER BY item_id, n",
        tuple(rows),
    ):
        found[row].append(Span(start, stop))
    return {row: tuple(spans) for row, spans in found.items()}


def _made(
    connection: sqlite3.Connection, target: Target, layout: str, spans: Mapping[int, tuple[Span, ...]]
) -> dict[int, tuple[Span, ...]]:
    """Those of `spans`, by row, all of which have a vector of the new encoder."""
    counts = connection.execute(
        "SELECT p.item_id, count(*) FROM passages p JOIN vectors v ON v.passage_id = p.id AND v.encoder_id = ?"
        f" WHERE p.layout = {layout} AND p.item_id IN ({places(list(spans))}) GROUP BY p.item_id",
        (target.encoder_id, *spans),
    )
    return {row: spans[row] for row, count in counts if len(spans[row]) == count}


def store(connection: sqlite3.Connection, target: Target, cut: Cut, ready: Sequence[Prepared] | None) -> bool:
    """Write passages and vectors of one text and, for a layout of its own, its words; whether nothing is left to do.

    Nothing is written of a text that is gone, or whose passages are no longer those that it was given with.
    """
    row, spans = cut.text.row, cut.spans
    found = connection.execute(
        f"SELECT namespace_id, type, superseded_by IS NULL AND forgotten_at IS NULL AND {FOUND} FROM items i"
        # A file that was put back may have given the number to another item.
        " WHERE id = ? AND public_id = ? AND purged_at IS NULL",
        (row, cut.text.id),
    ).fetchone()
    if found is None:
        return True
    namespace_id, type_, findable = found
    ids, fresh = _passages(connection, target, row, spans, namespace_id, type_)
    if ids is None:
        return False
    if cut.vectors is None:
        connection.executemany(
            "UPDATE OR IGNORE vectors SET passage_id = ? WHERE encoder_id = ? AND passage_id ="
            f" (SELECT id FROM passages WHERE item_id = ? AND layout = {fulltext.LAYOUT} AND n = ?)",
            ((passage, target.encoder_id, row, n) for n, passage in enumerate(ids)),
        )
        there = "SELECT 1 FROM vectors WHERE passage_id = ? AND encoder_id = ?"
        if not all(connection.execute(there, (passage, target.encoder_id)).fetchone() for passage in ids):
            return False
    else:
        connection.executemany(
            "INSERT INTO vectors (passage_id, encoder_id, vector) VALUES (?, ?, ?)"
            " ON CONFLICT (passage_id, encoder_id) DO UPDATE SET vector = excluded.vector",
            (
                (passage, target.encoder_id, vector.astype("<f4").tobytes())
                for passage, vector in zip(ids, cut.vectors, strict=True)
            ),
        )
    if target.own:
        # Of a text that was done in part before, nothing may be found twice.
        connection.execute(
            "DELETE FROM vectors WHERE encoder_id = ? AND passage_id IN"
            " (SELECT id FROM passages WHERE item_id = ? AND layout <> ?)",
            (target.encoder_id, row, target.layout),
        )
    if target.own and findable:
        if not fresh:
            # Some of its words may be there.
            fulltext.take_out(connection, SPARE, ids, namespace_id, type_)
        if ready is None:
            ready = fulltext.prepare(cut.text.title, cut.text.content, spans)
        fulltext.add(connection, row, namespace_id, type_, ready, SPARE, layout=target.layout)
    return True


def _passages(
    connection: sqlite3.Connection, target: Target, row: int, spans: Sequence[Span], namespace_id: int, type_: str
) -> tuple[list[int] | None, bool]:
    """The passages of an item that the vectors are for, and whether they were made just now; None if they cannot be."""
    stored = connection.execute(
        "SELECT id, start, stop FROM passages WHERE item_id = ? AND layout = ? ORDER BY n", (row, target.layout)
    ).fetchall()
    ids = [each[0] for each in stored]
    if [Span(*each[1:]) for each in stored] == list(spans):
        return ids, False
    if not target.own:
        # Queries use them. Whoever changed them since the text was read has not changed them back.
        return None, False
    # Cut by another release, before the move was stopped.
    fulltext.take_out(connection, SPARE, ids, namespace_id, type_)
    for passage in ids:
        connection.execute("DELETE FROM vectors WHERE passage_id = ?", (passage,))
        connection.execute("DELETE FROM passages WHERE id = ?", (passage,))
    made = []
    for n, span in enumerate(spans):
        passage = connection.execute(
            "INSERT INTO passages (item_id, layout, n, start, stop) VALUES (?, ?, ?, ?, ?)",
            (row, target.layout, n, span.start, span.stop),
        ).lastrowid
        assert passage is not None
        made.append(passage)
    return made, True


def exchange(connection: sqlite3.Connection) -> None:
    """The spare full text and its statistics for the current ones: names change, no page is copied."""
    connection.execute(f"UPDATE OR REPLACE meta SET key = 'analysis' WHERE key = '{ANALYSIS}'")
    for current, spare in zip(CURRENT, SPARE, strict=True):
        connection.execute(f"ALTER TABLE {current} RENAME TO {current}_new")
        connection.execute(f"ALTER TABLE {spare} RENAME TO {current}")
        connection.execute(f"ALTER TABLE {current}_new RENAME TO {spare}")


def renew_spare(connection: sqlite3.Connection) -> None:
    """Leave the spare tables empty for a layout to come, whatever they hold."""
    connection.execute("DELETE FROM meta WHERE key = ?", (ANALYSIS,))
    begin_spare(connection)


def begin_spare(connection: sqlite3.Connection) -> None:
    """Leave the spare tables empty for a layout to come, unless they hold what this release's analysis made of it."""
    found = connection.execute("SELECT value FROM meta WHERE key = ?", (ANALYSIS,)).fetchone()
    if found != (str(VERSION),):
        empty_spare(connection)
        connection.execute("INSERT OR REPLACE INTO meta VALUES (?, ?)", (ANALYSIS, str(VERSION)))


def is_whole(connection: sqlite3.Connection, target: Target) -> bool:
    """Whether the spare full text holds passages of its layout that belong there, and its sizes are theirs."""
    stray = connection.execute(
        f"SELECT 1 FROM {SPARE.fulltext}_content f LEFT JOIN passages p ON p.id = f.id AND p.layout = ?"
        f" LEFT JOIN items i ON i.id = p.item_id AND i.superseded_by IS NULL AND i.forgotten_at IS NULL AND {FOUND}"
        " WHERE i.id IS NULL LIMIT 1",
        (target.layout,),
    ).fetchone()
    held = connection.execute(f"SELECT count(*), ifnull(sum(c3), 0) FROM {SPARE.fulltext}_content").fetchone()
    sizes = f"SELECT ifnull(sum(passages), 0), ifnull(sum(words), 0) FROM {SPARE.sizes}"
    return stray is None and held == connection.execute(sizes).fetchone()


def empty_spare(connection: sqlite3.Connection) -> None:
    """Leave the spare tables as a new store has them."""
    connection.execute("DELETE FROM meta WHERE key = ?", (ANALYSIS,))
    # Deleting row by row would write as much as building it did, and leave the words in its segments. The pages are not
    # overwritten one by one, which would take six times as long: they leave the file.
    connection.execute("PRAGMA secure_delete = FAST")
    connection.execute(f"DROP TABLE {SPARE.fulltext}")
    connection.execute(definition(SPARE.fulltext))
    connection.execute(f"DELETE FROM {SPARE.terms}")
    connection.execute(f"DELETE FROM {SPARE.sizes}")
