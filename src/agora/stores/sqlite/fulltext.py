"""The derived full-text table: what goes in, what comes out, and the statistics that scores are made from."""

from __future__ import annotations

import sqlite3
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from agora.model.profile import Span
from agora.text.analysis import analyse


@dataclass(frozen=True, slots=True)
class Prepared:
    """One passage, analysed before the write lock is taken. Terms are separated by single blanks."""

    title: str
    body: str
    words: int

    def terms(self) -> list[str]:
        """Each term once, sorted, so that every process touches the statistics in the same order."""
        return sorted({*self.title.split(), *self.body.split()})


def prepare(title: str | None, content: str, spans: Sequence[Span]) -> tuple[Prepared, ...]:
    """The index terms of each passage of a text; every passage carries the title's."""
    head = analyse(title or "")
    prepared = []
    for span in spans:
        body = analyse(content[span.start : span.stop])
        prepared.append(Prepared(" ".join(head.terms), " ".join(body.terms), head.length + body.length))
    return tuple(prepared)


def add(connection: sqlite3.Connection, row: int, namespace_id: int, type_: str, passages: Sequence[Prepared]) -> None:
    """Make an item findable, and count its passages in the statistics of its namespace."""
    ids = _passages(connection, row)
    connection.executemany(
        "INSERT INTO fulltext (rowid, scope, title, body, words) VALUES (?, ?, ?, ?, ?)",
        (
            (passage_id, f"n{namespace_id}", passage.title, passage.body, passage.words)
            for passage_id, passage in zip(ids, passages, strict=True)
        ),
    )
    connection.executemany(
        "INSERT INTO term_stats VALUES (?, ?, ?, ?)"
        " ON CONFLICT (namespace_id, type, term) DO UPDATE SET passages = passages + excluded.passages",
        ((namespace_id, type_, term, number) for term, number in _counted(passages)),
    )
    connection.execute(
        "INSERT INTO namespace_stats VALUES (?, ?, ?, ?) ON CONFLICT (namespace_id, type)"
        " DO UPDATE SET passages = passages + excluded.passages, words = words + excluded.words",
        (namespace_id, type_, len(passages), sum(passage.words for passage in passages)),
    )


def remove(connection: sqlite3.Connection, row: int, namespace_id: int, type_: str) -> None:
    """Take an item out of the index and of the statistics; one that is not there is no error."""
    gone: list[Prepared] = []
    for passage_id in _passages(connection, row):
        found = connection.execute("SELECT title, body, words FROM fulltext WHERE rowid = ?", (passage_id,)).fetchone()
        if found is not None:
            connection.execute("DELETE FROM fulltext WHERE rowid = ?", (passage_id,))
            gone.append(Prepared(*found))
    keys = [(number, namespace_id, type_, term) for term, number in _counted(gone)]
    where = "WHERE namespace_id = ? AND type = ? AND term = ?"
    connection.executemany(f"UPDATE term_stats SET passages = passages - ? {where}", keys)
    # A term that no row holds any more is content: it must not outlive the last row.
    connection.executemany(f"DELETE FROM term_stats {where} AND passages <= 0", (key[1:] for key in keys))
    connection.execute(
        "UPDATE namespace_stats SET passages = passages - ?, words = words - ? WHERE namespace_id = ? AND type = ?",
        (len(gone), sum(passage.words for passage in gone), namespace_id, type_),
    )


def _counted(passages: Sequence[Prepared]) -> list[tuple[str, int]]:
    """Each term with the number of passages that hold it, sorted as `Prepared.terms` is."""
    return sorted(Counter(term for passage in passages for term in passage.terms()).items())


def spans(connection: sqlite3.Connection, row: int) -> tuple[Span, ...]:
    """The passages of an item in the active layout, in order."""
    found = connection.execute(
        "SELECT start, stop FROM passages WHERE item_id = ?"
        " AND layout = (SELECT layout FROM encoders WHERE state = 'active' LIMIT 1) ORDER BY n",
        (row,),
    )
    return tuple(Span(*pair) for pair in found)


def _passages(connection: sqlite3.Connection, row: int) -> list[int]:
    return [
        found[0]
        for found in connection.execute(
            "SELECT id FROM passages WHERE item_id = ?"
            " AND layout = (SELECT layout FROM encoders WHERE state = 'active' LIMIT 1) ORDER BY n",
            (row,),
        )
    ]
