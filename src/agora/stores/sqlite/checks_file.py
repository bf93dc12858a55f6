"""The file and its schema: what SQLite itself finds, objects that are missing, rows without parents, next numbers."""

from __future__ import annotations

import re
import sqlite3
from collections import Counter
from collections.abc import Iterator

from agora.stores.sqlite.migrations import Object, expected, version_of
from agora.stores.sqlite.rules import Problem, cases, problem

DERIVED = frozenset(
    {
        *("item_metadata", "passages", "encoders", "vectors", "namespace_seq", "fulltext", "term_stats"),
        *("namespace_stats", "fulltext_spare", "term_stats_spare", "namespace_stats_spare", "reads", "read_marks"),
        *("generations", "segments", "kept_results", "tool_vectors"),
    }
)
"""Tables that can be made anew from the others, or whose loss loses no note."""

NUMBERED = {
    "items": ("items.id", "texts.item_id", "savers.item_id", "journal.item_id"),
    "passages": ("passages.id",),
    "encoders": ("encoders.id",),
    "vectors": ("vectors.id",),
    "journal": ("journal.sequence", "journal_payload.sequence"),
    "segments": ("segments.id",),
    "fact_slots": ("fact_slots.id", "facts.slot_id"),
    "calls": ("calls.sequence",),
}
"""Tables whose numbers never come back, and where else their numbers are kept that nothing was derived from."""

_MESSAGES = 100
_INDEX = re.compile(
    r"(?:row \d+ missing from index|wrong # of entries in index|non-unique entry in index"
    r"|row(?:id)? not at end-of-record for row \d+ of index) (\w+)"
)
_FULLTEXT = re.compile(r"(?:malformed|unable to validate the) inverted index for FTS5 table")


def damage(connection: sqlite3.Connection) -> Iterator[Problem]:
    """What `integrity_check` says, apart by what can be done about it."""
    try:
        told = [row[0] for row in connection.execute(f"PRAGMA integrity_check({_MESSAGES})")]
    except sqlite3.DatabaseError as error:
        told = [str(error)]
    # SQLite 3.44 and later look into full-text tables too.
    told = [each for each in told if each != "ok" and not _FULLTEXT.match(each)]
    if told and all(map(_INDEX.match, told)):
        yield cases("sql_index_damaged", sorted({_INDEX.sub(r"\1", each) for each in told}))
    elif told:
        shown = "; ".join(" ".join(each.split()) for each in told[:3])
        yield problem("file_damaged", f"SQLite finds the file damaged: {shown}")


def objects(connection: sqlite3.Connection) -> Iterator[Problem]:
    """The schema against the one that its version has."""
    wanted = expected(version_of(connection))
    found = found_objects(connection)
    wrong = [name for name, each in wanted.items() if found.get(name) != each]
    made_anew = [name for name in wrong if can_be_made(wanted[name], found)]
    if lost := sorted(set(wrong) - set(made_anew)):
        yield cases("schema_damaged", lost)
    if made_anew:
        yield cases("schema_incomplete", made_anew)
    if foreign := sorted(set(found) - set(wanted)):
        yield cases("schema_foreign", foreign)


def found_objects(connection: sqlite3.Connection) -> dict[str, Object]:
    """The objects of the schema as they are, those of SQLite itself left out."""
    rows = connection.execute("SELECT name, type, tbl_name, sql FROM main.sqlite_master").fetchall()
    return {name: Object.of(kind, table, sql) for name, kind, table, sql in rows if not name.startswith("sqlite_")}


def can_be_made(wanted: Object, found: dict[str, Object]) -> bool:
    """Whether a missing or changed object is an index on a table that is there, or a derived table."""
    if wanted.kind == "index":
        return wanted.table in found or wanted.table in DERIVED
    return wanted.table in DERIVED or wanted.table.startswith("fulltext_")


def orphans(connection: sqlite3.Connection) -> Iterator[Problem]:
    """Rows whose parents are gone, canonical and derived apart."""
    canonical: Counter[str] = Counter()
    derived: Counter[str] = Counter()
    for table, _, parent, _ in connection.execute("PRAGMA foreign_key_check"):
        (derived if table in DERIVED else canonical)[f"{table} without {parent}"] += 1
    for code, found in (("orphan_rows", canonical), ("orphan_derived", derived)):
        if found:
            listed = ", ".join(f"{number} {what}" for what, number in sorted(found.items()))
            yield problem(code, f"rows that belong to nothing: {listed}")


def used_numbers(connection: sqlite3.Connection) -> Iterator[Problem]:
    """Tables that would give a number a second time."""
    wrong = [table for table, last, next_ in numbers(connection) if next_ < last]
    if wrong:
        yield cases("number_used", wrong)


def numbers(connection: sqlite3.Connection) -> Iterator[tuple[str, int, int]]:
    """Each numbered table with the highest number that is known and the last that SQLite remembers to have given."""
    known = dict(connection.execute("SELECT name, seq FROM sqlite_sequence").fetchall())
    there = set(found_objects(connection))
    for table, places in NUMBERED.items():
        columns = [place.split(".") for place in places if place.split(".")[0] in there]
        asked = (f"SELECT ifnull(max({column}), 0) FROM {name}" for name, column in columns)
        highest = max((connection.execute(each).fetchone()[0] for each in asked), default=0)
        yield table, highest, known.get(table, 0)
