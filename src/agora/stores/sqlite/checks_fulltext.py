"""The full text against the texts, its statistics against it, its inverted index against its passages.

Each check looks at the full text that queries read and, while the store moves to another encoder, at the one to come.
"""

from __future__ import annotations

import sqlite3
from collections import Counter
from collections.abc import Iterator

from agora.model.profile import Span
from agora.stores.sqlite import fulltext
from agora.stores.sqlite.fulltext import CURRENT, SPARE, Prepared, Tables
from agora.stores.sqlite.rows import FOUND
from agora.stores.sqlite.rules import KINDS, Problem, cases, problem
from agora.text.analysis import VERSION


def outdated(connection: sqlite3.Connection) -> Iterator[Problem]:
    """Which version of the analysis built the full text."""
    built = fulltext.built_by(connection)
    if built != VERSION:
        found, ours = "an unknown version" if built is None else f"version {built}", f"this release has {VERSION}"
        yield problem("fulltext_outdated", f"{KINDS['fulltext_outdated'].what}: {found} of the analysis, {ours}")


def passages(connection: sqlite3.Connection) -> Iterator[Problem]:
    """Passages of findable items that the full text lacks, and others that it has."""
    for tables, layout in _each(connection):
        missing = connection.execute(
            "SELECT p.id FROM passages p JOIN items i ON i.id = p.item_id"
            f" WHERE i.superseded_by IS NULL AND i.forgotten_at IS NULL AND {FOUND} AND p.layout = ?"
            f" AND p.id NOT IN (SELECT id FROM {tables.fulltext}_content)",
            (layout,),
        ).fetchall()
        stray = connection.execute(
            f"SELECT f.id FROM {tables.fulltext}_content f LEFT JOIN passages p ON p.id = f.id"
            " LEFT JOIN items i ON i.id = p.item_id WHERE i.id IS NULL OR i.superseded_by IS NOT NULL"
            f" OR i.forgotten_at IS NOT NULL OR NOT ({FOUND}) OR f.c0 <> 'n' || i.namespace_id OR p.layout <> ?",
            (layout,),
        ).fetchall()
        if missing:
            yield cases("missing_fulltext", [row[0] for row in missing])
        if stray:
            yield cases("stray_fulltext", [row[0] for row in stray])


def unlike_texts(connection: sqlite3.Connection) -> Iterator[Problem]:
    """What the full text holds of each passage against what the analysis makes of it now."""
    if fulltext.built_by(connection) != VERSION:
        # Of course they differ.
        return
    wrong = []
    for tables, layout in _each(connection):
        for row, title, content, *_ in connection.execute(fulltext.FINDABLE):
            spans, stored = [], []
            for start, stop, *held in connection.execute(
                f"SELECT p.start, p.stop, f.c1, f.c2, f.c3, f.id FROM passages p LEFT JOIN {tables.fulltext}_content f"
                " ON f.id = p.id WHERE p.item_id = ? AND p.layout = ? ORDER BY p.n",
                (row, layout),
            ):
                spans.append(Span(start, stop))
                stored.append(held)
            for made, held in zip(fulltext.prepare(title, content, spans), stored, strict=True):
                # A passage that is not there is told elsewhere.
                if held[3] is not None and (made.title, made.body, made.words) != tuple(held[:3]):
                    wrong.append(held[3])
    if wrong:
        yield cases("fulltext_unlike_text", wrong)


def statistics(connection: sqlite3.Connection) -> Iterator[Problem]:
    """The statistics that scores are made from, against the full text."""
    for tables, _ in _each(connection):
        sizes: Counter[tuple[int, str]] = Counter()
        words: Counter[tuple[int, str]] = Counter()
        terms: Counter[tuple[int, str, str]] = Counter()
        for namespace, own_type, title, body, length in connection.execute(
            f"SELECT i.namespace_id, i.type, f.c1, f.c2, f.c3 FROM {tables.fulltext}_content f"
            " JOIN passages p ON p.id = f.id JOIN items i ON i.id = p.item_id"
        ):
            type_ = fulltext.counted_as(own_type)
            sizes[namespace, type_] += 1
            words[namespace, type_] += length
            terms.update((namespace, type_, term) for term in Prepared(title, body, length).terms())
        totals = {key: (number, words[key]) for key, number in sizes.items()}
        stored = {
            (namespace, type_): tuple(counts)
            for namespace, type_, *counts in connection.execute(f"SELECT * FROM {tables.sizes} WHERE passages <> 0")
        }
        if stored != totals:
            yield problem("namespace_statistics")
        found = {tuple(key): number for *key, number in connection.execute(f"SELECT * FROM {tables.terms}")}
        if found != dict(terms):
            wrong = sorted(key[2] for key in {*found, *terms} if found.get(key) != terms.get(key))
            yield cases("term_statistics", wrong)


def occurrences(connection: sqlite3.Connection) -> Iterator[Problem]:
    """The inverted index against the passages it was made from: occurrence by occurrence, then as queries ask it.

    SQLite's own 'integrity-check' does the same, but has to write.
    """
    for tables, _ in _each(connection):
        made, holders = 0, Counter[str]()
        for passage, *texts in connection.execute(f"SELECT id, c0, c1, c2 FROM {tables.fulltext}_content"):
            for column, text in zip(("scope", "title", "body"), texts, strict=True):
                made += sum(hash((term, passage, column, place)) for place, term in enumerate(text.split()))
            holders.update({term for text in texts for term in text.split()})
        try:
            # A table of the connection's own: it works on a file that is open for reading only.
            connection.execute(
                f"CREATE VIRTUAL TABLE IF NOT EXISTS temp.occurrences_{tables.fulltext}"
                f" USING fts5vocab('main', '{tables.fulltext}', 'instance')"
            )
            terms = connection.execute(f"SELECT term, doc, col, offset FROM temp.occurrences_{tables.fulltext}")
            same = sum(map(hash, terms)) == made and all(
                _found(connection, tables.fulltext, term) == number for term, number in holders.items()
            )
        except (sqlite3.DatabaseError, MemoryError) as error:
            # Damaged lengths make SQLite ask for more memory than there is.
            yield problem("fulltext_damaged", f"the full-text index cannot be read: {error}")
        else:
            if not same:
                yield problem("fulltext_damaged")


def _found(connection: sqlite3.Connection, table: str, term: str) -> int:
    """How many passages a query for one term finds."""
    quoted = '"' + term.replace('"', '""') + '"'
    return int(connection.execute(f"SELECT count(*) FROM {table} WHERE {table} MATCH ?", (quoted,)).fetchone()[0])


def _each(connection: sqlite3.Connection) -> Iterator[tuple[Tables, int | None]]:
    """Each full text that is in use, with the layout whose passages it holds."""
    yield CURRENT, connection.execute(f"SELECT {fulltext.LAYOUT}").fetchone()[0]
    layout = fulltext.coming(connection)
    if layout is not None:
        yield SPARE, layout
