"""Every invariant of the store, checked: file, tables against each other, hashes, full text, statistics, journal."""

from __future__ import annotations

import json
import sqlite3
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import partial

from agora.stores.sqlite import journal
from agora.stores.sqlite.fulltext import Prepared
from agora.stores.sqlite.rows import digest
from agora.stores.sqlite.rules import DERIVED, RESTORE, RULES, TRUST, Rule
from agora.text.identity import content_hash, normal_hash

_EXAMPLES = 3
_Check = Callable[[sqlite3.Connection], Iterable["Problem"]]


@dataclass(frozen=True, slots=True)
class Problem:
    """One kind of damage: a stable `code`, a `message` with the number of cases and examples, what to do."""

    code: str
    message: str
    hint: str


def find_problems(connection: sqlite3.Connection) -> list[Problem]:
    """Everything that is wrong with the store, worst first; nothing is changed, and a read-only connection will do.

    For a whole answer the caller holds a read transaction, and the schema is the one this release knows. Takes time
    in proportion to the store: a second for about ten thousand notes.
    """
    problems: list[Problem] = []
    rules = [(rule.what, partial(_rule, rule)) for rule in RULES]
    checks: list[tuple[str, _Check]] = [("the file", _file), *rules, *_CHECKS]
    for what, check in checks:
        try:
            problems += check(connection)
        except sqlite3.DatabaseError as error:
            # In a damaged file any check may fail; the others still tell something.
            problems.append(Problem("unreadable", f"{what} could not be checked: {error}", RESTORE))
    return problems


def _rule(rule: Rule, connection: sqlite3.Connection) -> Iterator[Problem]:
    broken = [row[0] for row in connection.execute(rule.broken)]
    if broken:
        yield Problem(rule.code, _told(rule.what, broken), rule.hint)


def _file(connection: sqlite3.Connection) -> Iterator[Problem]:
    try:
        damage = [row[0] for row in connection.execute(f"PRAGMA integrity_check({_EXAMPLES})")]
    except sqlite3.DatabaseError as error:
        damage = [str(error)]
    if damage != ["ok"]:
        yield Problem("file_damaged", f"SQLite finds the file damaged: {'; '.join(damage)}", RESTORE)
    orphans = Counter(
        f"{table} without {parent}" for table, _, parent, _ in connection.execute("PRAGMA foreign_key_check")
    )
    if orphans:
        listed = ", ".join(f"{number} {what}" for what, number in sorted(orphans.items()))
        yield Problem("orphan_rows", f"rows that belong to nothing: {listed}", RESTORE)


def _hashes(connection: sqlite3.Connection) -> Iterator[Problem]:
    """Texts against the hashes that decide duplicates, metadata against the digests that filters ask for."""
    texts, metadata = [], []
    for row, public_id, exact, normal, content, values in connection.execute(
        "SELECT i.id, i.public_id, i.content_hash, i.normal_hash, t.content, t.metadata"
        " FROM items i JOIN texts t ON t.item_id = i.id WHERE i.purged_at IS NULL"
    ):
        if (exact, normal) != (content_hash(content), normal_hash(content)):
            texts.append(public_id)
        stored = dict(connection.execute("SELECT key, value FROM item_metadata WHERE item_id = ?", (row,)).fetchall())
        if stored != _digests(values):
            metadata.append(public_id)
    if texts:
        yield Problem("content_hash", _told("notes whose text is not the one that was saved", texts), TRUST)
    if metadata:
        yield Problem("metadata_index", _told("notes whose metadata and its index differ", metadata), DERIVED)


def _digests(metadata: str) -> dict[str, bytes] | None:
    try:
        return {key: digest(value) for key, value in json.loads(metadata).items()}
    except (ValueError, AttributeError):
        return None


def _journal(connection: sqlite3.Connection) -> Iterator[Problem]:
    broken = journal.broken_at(connection)
    if broken is not None:
        yield Problem("journal_broken", f"the journal is whole only before change {broken}", TRUST)


def _statistics(connection: sqlite3.Connection) -> Iterator[Problem]:
    """The statistics that scores are made from, against the full text."""
    passages: Counter[tuple[int, str]] = Counter()
    words: Counter[tuple[int, str]] = Counter()
    terms: Counter[tuple[int, str, str]] = Counter()
    for namespace, type_, title, body, length in connection.execute(
        "SELECT i.namespace_id, i.type, f.c1, f.c2, f.c3 FROM fulltext_content f"
        " JOIN passages p ON p.id = f.id JOIN items i ON i.id = p.item_id"
    ):
        passages[namespace, type_] += 1
        words[namespace, type_] += length
        terms.update((namespace, type_, term) for term in Prepared(title, body, length).terms())
    totals = {key: (number, words[key]) for key, number in passages.items()}
    stored = {
        (namespace, type_): counts
        for namespace, type_, *counts in connection.execute("SELECT * FROM namespace_stats WHERE passages <> 0")
    }
    if {key: tuple(counts) for key, counts in stored.items()} != totals:
        yield Problem("namespace_statistics", "the sizes of the namespaces are not those of the full text", DERIVED)
    found = {tuple(key): number for *key, number in connection.execute("SELECT * FROM term_stats")}
    if found != dict(terms):
        wrong = sorted(key[2] for key in {*found, *terms} if found.get(key) != terms.get(key))
        yield Problem("term_statistics", _told("terms that are counted wrong", wrong), DERIVED)


def _terms(connection: sqlite3.Connection) -> Iterator[Problem]:
    """The inverted index against the passages it was made from, occurrence by occurrence.

    SQLite's own 'integrity-check' does the same, but has to write.
    """
    made = sum(
        hash((term, passage, column, place))
        for passage, *texts in connection.execute("SELECT id, c0, c1, c2 FROM fulltext_content")
        for column, text in zip(("scope", "title", "body"), texts, strict=True)
        for place, term in enumerate(text.split())
    )
    # A table of the connection's own: it works on a file that is open for reading only.
    connection.execute(
        "CREATE VIRTUAL TABLE IF NOT EXISTS temp.occurrences USING fts5vocab('main', 'fulltext', 'instance')"
    )
    try:
        found = sum(map(hash, connection.execute("SELECT term, doc, col, offset FROM temp.occurrences")))
    except sqlite3.DatabaseError as error:
        yield Problem("fulltext_damaged", f"the full-text index cannot be read: {error}", DERIVED)
    else:
        if found != made:
            yield Problem("fulltext_damaged", "the full-text index is not that of its passages", DERIVED)


_CHECKS: tuple[tuple[str, _Check], ...] = (
    ("hashes", _hashes),
    ("the journal", _journal),
    ("statistics", _statistics),
    ("the full text", _terms),
)


def _told(what: str, cases: list[object] | list[str]) -> str:
    shown = ", ".join(map(str, cases[:_EXAMPLES]))
    return f"{len(cases)} {what}: {shown}{', …' if len(cases) > _EXAMPLES else ''}"
