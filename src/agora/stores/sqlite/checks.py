"""Every invariant of the store, checked: file, tables against each other, hashes, full text, statistics, journal."""

from __future__ import annotations

import json
import sqlite3
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from typing import NamedTuple

from agora.stores.sqlite import journal
from agora.stores.sqlite.fulltext import Prepared
from agora.stores.sqlite.rows import digest
from agora.text.identity import content_hash, normal_hash

_EXAMPLES = 3
_RESTORE = "Stop every process that uses the store and put a backup of agora.db back."
_DERIVED = f"The notes themselves are whole, but queries may miss some. {_RESTORE}"
_TRUST = "Something other than Agora wrote to the store: compare it with a backup before you trust it."


@dataclass(frozen=True, slots=True)
class Problem:
    """One kind of damage: a stable `code`, a `message` with the number of cases and examples, what to do."""

    code: str
    message: str
    hint: str


class _Rule(NamedTuple):
    code: str
    what: str
    hint: str
    broken: str
    """A query for everything that breaks the rule."""


_LAYOUT = "(SELECT layout FROM encoders WHERE state = 'active' LIMIT 1)"
_RULES = (
    _Rule(
        "no_profile",
        "store without an active encoder",
        _DERIVED,
        "SELECT 'profile' WHERE NOT EXISTS (SELECT 1 FROM encoders WHERE state = 'active')",
    ),
    _Rule(
        "item_without_text",
        "notes without their text",
        _RESTORE,
        "SELECT public_id FROM items WHERE purged_at IS NULL AND id NOT IN (SELECT item_id FROM texts)",
    ),
    _Rule(
        "item_without_saver",
        "notes without provenance",
        _RESTORE,
        "SELECT public_id FROM items WHERE purged_at IS NULL AND id NOT IN (SELECT item_id FROM savers WHERE n = 0)",
    ),
    _Rule(
        "item_without_passage",
        "notes without a passage",
        _DERIVED,
        "SELECT public_id FROM items WHERE purged_at IS NULL"
        f" AND id NOT IN (SELECT item_id FROM passages WHERE layout = {_LAYOUT} AND n = 0)",
    ),
    _Rule(
        "item_without_journal",
        "notes of whose saving the journal does not tell",
        _TRUST,
        "SELECT public_id FROM items WHERE id NOT IN"
        " (SELECT item_id FROM journal WHERE operation = 'save' AND item_id IS NOT NULL)",
    ),
    _Rule(
        "broken_succession",
        "notes whose place among their versions is wrong",
        _RESTORE,
        "SELECT i.public_id FROM items i LEFT JOIN items after ON after.id = i.superseded_by"
        " LEFT JOIN items before ON before.id = i.supersedes"
        " WHERE (i.superseded_by IS NOT NULL AND (after.id IS NULL OR after.id <= i.id"
        "  OR after.namespace_id <> i.namespace_id OR i.superseded_at IS NULL))"
        " OR (i.supersedes IS NOT NULL AND before.superseded_by IS NOT i.id)",
    ),
    _Rule(
        "orphan_tag",
        "tags that no saver gave",
        _RESTORE,
        "SELECT tag FROM item_tags t"
        " WHERE NOT EXISTS (SELECT 1 FROM savers s WHERE s.item_id = t.item_id AND s.n = t.saver)",
    ),
    _Rule(
        "passage_without_vector",
        "passages without a vector",
        _DERIVED,
        "SELECT p.id FROM passages p JOIN encoders e ON e.state = 'active' AND e.layout = p.layout"
        " WHERE NOT EXISTS (SELECT 1 FROM vectors v WHERE v.passage_id = p.id AND v.encoder_id = e.id)",
    ),
    _Rule(
        "wrong_vector",
        "vectors of the wrong length",
        _DERIVED,
        "SELECT v.id FROM vectors v JOIN encoders e ON e.id = v.encoder_id WHERE length(v.vector) <> 4 * e.dimension",
    ),
    _Rule(
        "missing_fulltext",
        "passages that the full text lacks",
        _DERIVED,
        "SELECT p.id FROM passages p JOIN items i ON i.id = p.item_id"
        f" WHERE i.superseded_by IS NULL AND i.forgotten_at IS NULL AND p.layout = {_LAYOUT}"
        " AND p.id NOT IN (SELECT id FROM fulltext_content)",
    ),
    _Rule(
        "stray_fulltext",
        "passages that the full text should not have, or has in another namespace",
        _DERIVED,
        "SELECT f.id FROM fulltext_content f LEFT JOIN passages p ON p.id = f.id"
        " LEFT JOIN items i ON i.id = p.item_id WHERE i.id IS NULL OR i.superseded_by IS NOT NULL"
        " OR i.forgotten_at IS NOT NULL OR f.c0 <> 'n' || i.namespace_id",
    ),
    _Rule(
        "namespace_sequence",
        "namespaces whose last change is not the journal's",
        _DERIVED,
        "SELECT n.name FROM namespaces n LEFT JOIN namespace_seq s ON s.namespace_id = n.id"
        " WHERE s.sequence IS NOT (SELECT max(sequence) FROM journal j WHERE j.namespace_id = n.id)",
    ),
    _Rule(
        "orphan_payload",
        "payloads of changes that the journal does not hold",
        _TRUST,
        "SELECT sequence FROM journal_payload WHERE sequence NOT IN (SELECT sequence FROM journal)",
    ),
)


def find_problems(connection: sqlite3.Connection) -> list[Problem]:
    """Everything that is wrong with the store, worst first; nothing is changed, and a read-only connection will do.

    For a whole answer the caller holds a read transaction, and the schema is the one this release knows. Takes time
    in proportion to the store: a second for about ten thousand notes.

    Raises: sqlite3.DatabaseError if the file cannot be read at all.
    """
    problems = list(_file(connection))
    problems += (
        Problem(rule.code, _told(rule.what, [row[0] for row in connection.execute(rule.broken)]), rule.hint)
        for rule in _RULES
        if connection.execute(f"SELECT 1 FROM ({rule.broken}) LIMIT 1").fetchone()
    )
    problems += _hashes(connection)
    problems += _journal(connection)
    problems += _statistics(connection)
    problems += _terms(connection)
    return problems


def _file(connection: sqlite3.Connection) -> Iterator[Problem]:
    damage = [row[0] for row in connection.execute(f"PRAGMA integrity_check({_EXAMPLES})")]
    if damage != ["ok"]:
        yield Problem("file_damaged", f"SQLite finds the file damaged: {'; '.join(damage)}", _RESTORE)
    orphans = Counter(
        f"{table} without {parent}" for table, _, parent, _ in connection.execute("PRAGMA foreign_key_check")
    )
    if orphans:
        listed = ", ".join(f"{number} {what}" for what, number in sorted(orphans.items()))
        yield Problem("orphan_rows", f"rows that belong to nothing: {listed}", _RESTORE)


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
        yield Problem("content_hash", _told("notes whose text is not the one that was saved", texts), _TRUST)
    if metadata:
        yield Problem("metadata_index", _told("notes whose metadata and its index differ", metadata), _DERIVED)


def _digests(metadata: str) -> dict[str, bytes] | None:
    try:
        return {key: digest(value) for key, value in json.loads(metadata).items()}
    except (ValueError, AttributeError):
        return None


def _journal(connection: sqlite3.Connection) -> Iterator[Problem]:
    broken = journal.broken_at(connection)
    if broken is not None:
        yield Problem("journal_broken", f"the journal is whole only before change {broken}", _TRUST)


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
        yield Problem("namespace_statistics", "the sizes of the namespaces are not those of the full text", _DERIVED)
    found = {tuple(key): number for *key, number in connection.execute("SELECT * FROM term_stats")}
    if found != dict(terms):
        wrong = sorted(key[2] for key in {*found, *terms} if found.get(key) != terms.get(key))
        yield Problem("term_statistics", _told("terms that are counted wrong", wrong), _DERIVED)


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
        yield Problem("fulltext_damaged", f"the full-text index cannot be read: {error}", _DERIVED)
    else:
        if found != made:
            yield Problem("fulltext_damaged", "the full-text index is not that of its passages", _DERIVED)


def _told(what: str, cases: list[object] | list[str]) -> str:
    shown = ", ".join(map(str, cases[:_EXAMPLES]))
    return f"{len(cases)} {what}: {shown}{', …' if len(cases) > _EXAMPLES else ''}"
