"""Chroma's folder against the rows, without Chroma: what `agora doctor` asks. Nothing is changed."""

from __future__ import annotations

import contextlib
import sqlite3
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from agora.ports.vector_index import Source
from agora.stores.chroma.client import COLLECTION
from agora.stores.chroma.folder import DATABASE, Folder
from agora.stores.chroma.mark import Mark

BEHIND = 1000
"""Changed rows beyond which it is worth a word that they are still to be applied: several seconds of Chroma's time."""

_EXAMPLES = 3

_COLLECTION = "SELECT id FROM collections WHERE name = ?"
_WAITING = (
    # What was put in and is not among the entries yet: Chroma takes it in when it is asked next.
    "SELECT count(*) FROM embeddings_queue q WHERE q.topic LIKE '%' || :id AND q.seq_id > ifnull((SELECT m.seq_id"
    " FROM max_seq_id m JOIN segments s ON s.id = m.segment_id WHERE s.collection = :id AND s.scope = 'METADATA'), 0)"
)
_ENTRIES = (
    "SELECT e.embedding_id, max(CASE m.key WHEN 'namespace' THEN m.int_value END),"
    " max(CASE m.key WHEN 'expires' THEN m.int_value END) FROM embeddings e"
    " JOIN segments s ON s.id = e.segment_id LEFT JOIN embedding_metadata m ON m.id = e.id"
    " WHERE s.collection = :id AND s.scope = 'METADATA' GROUP BY e.id"
)


class Finding(NamedTuple):
    """What there is to say of the index; `code` is that of a kind of damage, or None for good news."""

    code: str | None
    message: str


def examine(path: Path, *, owned: bool, source: Source | None) -> Finding:
    """What is wrong with the index in the folder `path`, or that nothing is; `owned` as `Folder` has it.

    `source` is a transaction under way; None for a store that has nothing to be indexed. Codes: `index_missing`,
    `index_behind`, `index_damaged`, `index_stale`, `index_differs`. While a process uses the folder its files change,
    and only what it says it has applied is compared. The graph of vectors is held against its checksums, not against
    the rows.

    Raises: ConfigError for a folder with a database that Agora did not make.
    """
    folder = Folder(path.expanduser().resolve(), owned=owned)
    with folder.lock.glance() as free, contextlib.suppress(OSError):
        return _examined(folder, folder.read(), source, free=free)
    return Finding("index_damaged", f"the files of Chroma in {folder.path} cannot be read")


def _examined(folder: Folder, mark: Mark | None, source: Source | None, *, free: bool) -> Finding:
    where = f"the Chroma collection {COLLECTION} in {folder.path}"
    if mark is None:
        return _unmarked(where, folder, source)
    if source is None:
        return Finding(None, f"{where}: there is nothing to compare it with")
    if mark.store != source.store or source.hash_at(mark.sequence) != mark.hashed:
        return Finding("index_stale", f"{where} is of another store, another model or another past of this store")
    used = "" if free else f", in use by process {folder.lock.holder() or 'of unknown number'}"
    if free and (wrong := _wrong(folder, mark, source)) is not None:
        return Finding(wrong.code, f"{where}: {wrong.message}")
    behind = len(source.changed(mark.sequence).rows)
    late = f"is {behind:,} changed note{'s' * (behind != 1)} behind the store" if behind else "is as the store is"
    if mark.after is not None:
        late = "is only half built"
    return Finding("index_behind" if behind >= BEHIND or mark.after is not None else None, f"{where} {late}{used}")


def _unmarked(where: str, folder: Folder, source: Source | None) -> Finding:
    if folder.holds_anything():
        return Finding("index_damaged", f"{where} has no readable mark of what it holds")
    if source is None or not source.count():
        return Finding(None, f"{where}: none yet")
    return Finding("index_missing", f"{where} is not there yet")


def _wrong(folder: Folder, mark: Mark, source: Source) -> Finding | None:
    """What the files hold otherwise than they should; the folder is nobody's for the moment."""
    if (found := folder.unlike(mark, every_byte=True)) is not None:
        return Finding("index_damaged", found)
    try:
        with _reading(folder.path / DATABASE) as connection:
            # The bytes of what was not closed are held against nothing.
            told = "ok" if mark.state == "closed" else connection.execute("PRAGMA quick_check(1)").fetchone()[0]
            return _unlike_rows(connection, mark, source) if told == "ok" else Finding("index_damaged", str(told))
    except sqlite3.DatabaseError as error:
        if (folder.path / f"{DATABASE}-journal").exists():
            # Of a process that was killed: whoever opens the file next takes the half of its last change back.
            return None
        return Finding("index_damaged", f"{DATABASE} cannot be read: {error}")


def _unlike_rows(connection: sqlite3.Connection, mark: Mark, source: Source) -> Finding | None:
    ids = [str(each) for (each,) in connection.execute(_COLLECTION, (COLLECTION,))]
    if ids != [mark.collection]:
        return Finding("index_damaged", "it is missing in the database" if not ids else "it is another collection")
    named = {"id": mark.collection}
    if connection.execute(_WAITING, named).fetchone()[0]:
        return None
    return _differing({entry: rest for entry, *rest in connection.execute(_ENTRIES, named)}, mark, source)


@contextlib.contextmanager
def _reading(path: Path) -> Iterator[sqlite3.Connection]:
    with contextlib.closing(sqlite3.connect(f"{path.as_uri()}?mode=ro", uri=True)) as connection:
        yield connection


def _differing(held: dict[str, list[int]], mark: Mark, source: Source) -> Finding | None:
    """Entries that are not those of the rows, but for rows that changed since or are still to be put in."""
    changed = set(source.changed(mark.sequence).rows.tolist())

    def settled(row: int) -> bool:
        return row not in changed and (mark.after is None or row <= mark.after)

    wrong = []
    for block in source.everything():
        columns = (block.rows, block.numbers, block.namespaces, block.expires)
        for row, number, *rest in zip(*(each.tolist() for each in columns), strict=True):
            found = held.pop(f"{row}:{number}", None)
            if found != rest and settled(row):
                wrong.append(f"{row}:{number}")
    surplus = [each for each in held if settled(int(each.partition(":")[0]))]
    if not wrong and not surplus:
        return None
    shown = ", ".join((wrong + surplus)[:_EXAMPLES])
    return Finding("index_differs", f"{len(wrong)} entries are missing or wrong, {len(surplus)} are too many: {shown}")
