"""The derived full-text table: what goes in, what comes out, and the statistics that scores are made from."""

from __future__ import annotations

import sqlite3
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from agora.errors import StoreVersion
from agora.model.profile import Span
from agora.stores.sqlite.migrations import definition, version_of
from agora.stores.sqlite.rows import FOUND
from agora.text.analysis import VERSION, analyse

LAYOUT = "(SELECT layout FROM encoders WHERE state = 'active' LIMIT 1)"
"""The one layout whose passages the full text holds."""

FINDABLE = (
    "SELECT i.id, t.title, t.content, i.namespace_id, i.type FROM items i JOIN texts t ON t.item_id = i.id"
    f" WHERE i.superseded_by IS NULL AND i.forgotten_at IS NULL AND {FOUND} ORDER BY i.id"
)
"""Every item that belongs into the full text; what the clock has ended stays in it."""

_OURS = str(VERSION)
_SAID_SINCE = 3
"""The first schema that says which version of the analysis built the full text; before it there was only the first."""


def counted_as(type_: str) -> str:
    """The type under which the words of an item are counted: facts are found among notes, with the same scores."""
    return "note" if type_ == "fact" else type_


class Tables(NamedTuple):
    """A full text and the statistics that belong to it, by the names of their tables."""

    fulltext: str
    terms: str
    sizes: str


CURRENT = Tables("fulltext", "term_stats", "namespace_stats")
"""Of the active layout: what queries read."""

SPARE = Tables("fulltext_spare", "term_stats_spare", "namespace_stats_spare")
"""Of the one other layout that texts are cut in, while the store moves from one to another; empty otherwise."""


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


def add(  # noqa: PLR0913 - which item, and where to
    connection: sqlite3.Connection,
    row: int,
    namespace_id: int,
    type_: str,
    passages: Sequence[Prepared],
    tables: Tables = CURRENT,
    *,
    layout: int | None = None,
) -> None:
    """Make an item findable, and count its passages in the statistics of its namespace.

    `layout`: the one that `tables` are for; None for the active one.
    """
    _insert(connection, row, namespace_id, passages, tables, layout)
    type_ = counted_as(type_)
    connection.executemany(
        f"INSERT INTO {tables.terms} VALUES (?, ?, ?, ?)"
        " ON CONFLICT (namespace_id, type, term) DO UPDATE SET passages = passages + excluded.passages",
        ((namespace_id, type_, term, number) for term, number in _counted(passages)),
    )
    connection.execute(
        f"INSERT INTO {tables.sizes} VALUES (?, ?, ?, ?) ON CONFLICT (namespace_id, type)"
        " DO UPDATE SET passages = passages + excluded.passages, words = words + excluded.words",
        (namespace_id, type_, len(passages), sum(passage.words for passage in passages)),
    )


def put_back(
    connection: sqlite3.Connection, row: int, namespace_id: int, type_: str, title: str | None, content: str
) -> None:
    """Make an item findable again, by the passages that it has; those of a layout to come too."""
    add(connection, row, namespace_id, type_, prepare(title, content, spans(connection, row)))
    coming = connection.execute(f"SELECT layout FROM encoders WHERE state = 'building' AND layout <> {LAYOUT}")
    for (layout,) in coming.fetchall():
        # None for an item whose text was not cut yet: it is made findable when it is.
        if found := spans(connection, row, layout):
            add(connection, row, namespace_id, type_, prepare(title, content, found), SPARE, layout=layout)


def remove(connection: sqlite3.Connection, row: int, namespace_id: int, type_: str) -> None:
    """Take an item out of the index and of the statistics, of every layout; one that is not there is no error."""
    take_out(connection, CURRENT, _passages(connection, row), namespace_id, type_)
    others = connection.execute(f"SELECT id FROM passages WHERE item_id = ? AND layout <> {LAYOUT}", (row,)).fetchall()
    if others:
        take_out(connection, SPARE, [passage for (passage,) in others], namespace_id, type_)


def take_out(
    connection: sqlite3.Connection, tables: Tables, passages: Sequence[int], namespace_id: int, type_: str
) -> None:
    """Take passages of one item out of one full text and its statistics; those that are not in it are no error."""
    gone: list[Prepared] = []
    type_ = counted_as(type_)
    for passage_id in passages:
        found = connection.execute(
            f"SELECT title, body, words FROM {tables.fulltext} WHERE rowid = ?", (passage_id,)
        ).fetchone()
        if found is not None:
            connection.execute(f"DELETE FROM {tables.fulltext} WHERE rowid = ?", (passage_id,))
            gone.append(Prepared(*found))
    keys = [(number, namespace_id, type_, term) for term, number in _counted(gone)]
    where = "WHERE namespace_id = ? AND type = ? AND term = ?"
    connection.executemany(f"UPDATE {tables.terms} SET passages = passages - ? {where}", keys)
    # A term that no row holds any more is content: it must not outlive the last row.
    connection.executemany(f"DELETE FROM {tables.terms} {where} AND passages <= 0", (key[1:] for key in keys))
    connection.execute(
        f"UPDATE {tables.sizes} SET passages = passages - ?, words = words - ? WHERE namespace_id = ? AND type = ?",
        (len(gone), sum(passage.words for passage in gone), namespace_id, type_),
    )


def built_by(connection: sqlite3.Connection) -> int | None:
    """The version of the analysis that built the full text; None where the store does not say."""
    said = _said(connection)
    if said is None and version_of(connection) < _SAID_SINCE:
        return 1
    # What no release wrote is no version.
    return int(said) if said is not None and said.isdecimal() else None


def _said(connection: sqlite3.Connection) -> str | None:
    found = connection.execute("SELECT value FROM meta WHERE key = 'analysis'").fetchone()
    return None if found is None else str(found[0])


def check_analysis(built: str | None) -> None:
    """Return unless the full text is of a later analysis than this process has, which would miss what it holds.

    Raises: StoreVersion.
    """
    if built is not None and built != _OURS and built.isdecimal() and int(built) > VERSION:
        raise StoreVersion(
            f"the full text was built by a newer release (version {built} of the analysis, this one has {VERSION})",
            hint="Restart this process with that release, or run `agora doctor --repair` with this one.",
        )


def set_built(connection: sqlite3.Connection) -> None:
    """Remember that this release's analysis built the full text."""
    connection.execute("INSERT OR REPLACE INTO meta VALUES ('analysis', ?)", (str(VERSION),))


def coming(connection: sqlite3.Connection) -> int | None:
    """The layout that the spare tables are for, while the store moves to another encoder; None if they are not used."""
    found = connection.execute(
        f"SELECT layout FROM encoders WHERE state = 'building' AND layout <> {LAYOUT}"
    ).fetchone()
    return None if found is None else int(found[0])


def rebuild(connection: sqlite3.Connection) -> int:
    """Build the full text and its statistics anew from the texts, in the caller's transaction; how many passages.

    Scores of a query afterwards are those of a store into which the same notes were saved one by one. What a move to
    another encoder has made so far is built anew too.
    """
    for tables in (SPARE, CURRENT):
        connection.execute(f"DROP TABLE IF EXISTS {tables.fulltext}")
        connection.execute(definition(tables.fulltext))
    layout = coming(connection)
    _build(connection, SPARE, () if layout is None else connection.execute(FINDABLE), layout)
    built = _build(connection, CURRENT, connection.execute(FINDABLE), None)
    set_built(connection)
    return built


def _build(
    connection: sqlite3.Connection,
    tables: Tables,
    findable: Iterable[tuple[int, str | None, str, int, str]],
    layout: int | None,
) -> int:
    """Fill an empty full text, and its statistics whatever they are; how many passages."""
    words: Counter[tuple[int, str]] = Counter()
    counts: Counter[tuple[int, str]] = Counter()
    terms: Counter[tuple[int, str, str]] = Counter()
    for row, title, content, namespace_id, own_type in findable:
        type_ = counted_as(own_type)
        prepared = prepare(title, content, spans(connection, row, layout))
        _insert(connection, row, namespace_id, prepared, tables, layout)
        counts[namespace_id, type_] += len(prepared)
        words[namespace_id, type_] += sum(passage.words for passage in prepared)
        for term, number in _counted(prepared):
            terms[namespace_id, type_, term] += number
    connection.execute(f"DELETE FROM {tables.terms}")
    connection.executemany(
        f"INSERT INTO {tables.terms} VALUES (?, ?, ?, ?)", ((*key, number) for key, number in sorted(terms.items()))
    )
    connection.execute(f"DELETE FROM {tables.sizes}")
    connection.executemany(
        f"INSERT INTO {tables.sizes} VALUES (?, ?, ?, ?)", ((*key, counts[key], words[key]) for key in sorted(counts))
    )
    return sum(counts.values())


def _insert(
    connection: sqlite3.Connection,
    row: int,
    namespace_id: int,
    passages: Sequence[Prepared],
    tables: Tables = CURRENT,
    layout: int | None = None,
) -> None:
    connection.executemany(
        f"INSERT INTO {tables.fulltext} (rowid, scope, title, body, words) VALUES (?, ?, ?, ?, ?)",
        (
            (passage_id, f"n{namespace_id}", passage.title, passage.body, passage.words)
            for passage_id, passage in zip(_passages(connection, row, layout), passages, strict=True)
        ),
    )


def _counted(passages: Sequence[Prepared]) -> list[tuple[str, int]]:
    """Each term with the number of passages that hold it, sorted as `Prepared.terms` is."""
    return sorted(Counter(term for passage in passages for term in passage.terms()).items())


def spans(connection: sqlite3.Connection, row: int, layout: int | None = None) -> tuple[Span, ...]:
    """The passages of an item in a layout, by default the active one, in order."""
    found = connection.execute(
        f"SELECT start, stop FROM passages WHERE item_id = ? AND layout = ifnull(?, {LAYOUT}) ORDER BY n",
        (row, layout),
    )
    return tuple(Span(*pair) for pair in found)


def _passages(connection: sqlite3.Connection, row: int, layout: int | None = None) -> list[int]:
    found = connection.execute(
        f"SELECT id FROM passages WHERE item_id = ? AND layout = ifnull(?, {LAYOUT}) ORDER BY n", (row, layout)
    )
    return [passage for (passage,) in found]
