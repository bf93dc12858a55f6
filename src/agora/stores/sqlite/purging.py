"""A purge of one store: rows into skeletons, then the places where bytes of deleted rows stay.

SQLite's `secure_delete` is not enough: a page that is split keeps copies of what moved, and full-text segments keep
deleted words until they are merged (ADR 15 has the measurements). Only a file written anew holds nothing but its rows.
"""

from __future__ import annotations

import contextlib
import random
import re
import secrets
import sqlite3
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager
from datetime import datetime
from functools import partial
from typing import Any

import numpy as np

from agora.errors import StoreUnavailable
from agora.model.caller import Caller
from agora.model.deadline import Deadline
from agora.model.instants import to_micros
from agora.model.purge import Condemned, Sample, Unwanted
from agora.ports import places
from agora.ports.vector_index import Source, VectorIndex
from agora.stores.sqlite.condemning import condemn
from agora.stores.sqlite.conditions import MARK
from agora.stores.sqlite.connection import LOCK_FILE, Database
from agora.stores.sqlite.erasing import LAST, Deed, batches, forget_calls, loosen, sweep
from agora.stores.sqlite.facts import skeletons
from agora.stores.sqlite.fulltext import CURRENT, SPARE
from agora.stores.sqlite.migrations import check_version
from agora.stores.sqlite.ticket import queue_of

_TRUNCATE = "PRAGMA wal_checkpoint(TRUNCATE)"
_CACHE = 64 * 1024
"""Kilobytes of memory for writing the file anew; what is larger goes through a temporary file, of live rows alone."""

_WAITS = 100
"""Milliseconds that SQLite waits for a lock at a time."""

_PIECE, _VECTOR = 48, 32
"""Bytes of a sample: of a text at the most, of a vector exactly."""

_SHORTEST = 16
"""Bytes of a text below which it cannot be told from chance."""

_ESCAPED = re.compile(r'["\\\x00-\x1f\x7f]')
"""What JSON writes in another way, in a cache or a log."""

_OWN = "SELECT count(*) FROM {0} x JOIN items i ON i.id = x.item_id WHERE i.purged_at IS NOT NULL"
_REMAINS = {
    places.ROWS.name: "SELECT count(*) FROM items WHERE purged_at IS NOT NULL AND (forgotten_at IS NULL"
    " OR coalesce(content_hash, normal_hash, confidence, session, seq, speaker, occurred_at, expires_at, forget_reason)"
    " IS NOT NULL)",
    places.TEXTS.name: _OWN.format("texts"),
    places.SAVERS.name: _OWN.format("savers"),
    places.TAGS.name: _OWN.format("item_tags"),
    places.METADATA.name: _OWN.format("item_metadata"),
    places.PASSAGES.name: _OWN.format("passages"),
    places.VECTORS.name: "SELECT count(*) FROM vectors WHERE passage_id NOT IN (SELECT id FROM passages)",
    places.FULL_TEXT.name: "SELECT (SELECT count(*) FROM fulltext_content WHERE id NOT IN (SELECT id FROM passages))"
    " + (SELECT count(*) FROM fulltext_spare_content WHERE id NOT IN (SELECT id FROM passages))",
    places.STATISTICS.name: "SELECT (SELECT count(*) FROM term_stats WHERE passages <= 0)"
    " + (SELECT count(*) FROM term_stats_spare WHERE passages <= 0)",
    places.READS.name: _OWN.format("reads"),
    places.FACTS.name: skeletons.LEFT_FACTS,
    places.SLOTS.name: skeletons.LEFT_SLOTS,
    places.CONVERSATIONS.name: "SELECT count(*) FROM conversations c WHERE NOT EXISTS (SELECT 1 FROM items i"
    " WHERE i.type = 'message' AND i.namespace_id = c.namespace_id AND i.session = c.session)",
    places.SUMMARIES.name: _OWN.format("summaries"),
    places.JOURNAL.name: "SELECT count(*) FROM journal_payload p JOIN journal x ON x.sequence = p.sequence"
    " JOIN items i ON i.id = x.item_id WHERE i.purged_at IS NOT NULL"
    " AND length(p.content) > 0",
    places.KEPT.name: f"SELECT count(*) FROM kept_results WHERE created_at <= {LAST}",
    places.CALLS.name: f"SELECT count(*) FROM calls WHERE nonce IS NOT NULL AND at <= {LAST}",
}


class SqlitePurging:
    """Purges rows of one store; implements `agora.ports.purging.Purging`."""

    def __init__(
        self, database: Database, index: VectorIndex, source: Callable[[], AbstractContextManager[Source]]
    ) -> None:
        """`source` gives a transaction that has not begun, for the index to follow."""
        self._database = database
        self._index = index
        self._source = source

    def condemn(self, wanted: Unwanted, now: datetime, deadline: Deadline) -> Condemned:
        """As `Purging.condemn`."""
        with self._reading(deadline) as connection:
            return condemn(connection, wanted, to_micros(now))

    def samples(self, condemned: Condemned, most: int, deadline: Deadline) -> tuple[Sample, ...]:
        """As `Purging.samples`."""
        rows = [row for group in condemned.groups for row in group]
        step = max(1, -(-len(rows) * 2 // max(1, most)))
        with self._reading(deadline) as connection:
            return tuple(sample for row in rows[::step] for sample in _pieces(connection, row))[:most]

    def erase(self, condemned: Condemned, caller: Caller, now: datetime, deadline: Deadline) -> tuple[int, int]:
        """As `Purging.erase`."""
        mark = _mark(now)
        notes = versions = 0
        for batch in batches(condemned.groups):
            try:
                done = self._database.write(Deed(batch, caller, to_micros(now), mark, condemned.seen), deadline)
            except StoreUnavailable as error:
                if not versions:
                    raise
                hint = "Run `agora purge` again: it goes on where it stopped."
                raise StoreUnavailable(f"{notes} notes were purged, then: {error.message}", hint=hint) from error
            notes, versions = notes + done[0], versions + done[1]
        if versions:
            self._database.write(loosen, deadline)
            self._forget_calls(deadline)
        return notes, versions

    def unfinished(self, deadline: Deadline) -> str | None:
        """As `Purging.unfinished`."""
        with self._reading(deadline) as connection:
            found = connection.execute("SELECT value FROM meta WHERE key = ?", (MARK,)).fetchone()
        return None if found is None else str(found[0])

    def empty(self, place: str, deadline: Deadline) -> None:
        """As `Purging.empty`."""
        empties: dict[str, Callable[[Deadline], object]] = {
            places.FULL_TEXT.name: self._merge_full_text,
            places.FILE.name: self._write_anew,
            places.LOG.name: self._truncate,
            places.INDEX.name: self._purge_index,
        }
        empties[place](deadline)

    def remains(self, deadline: Deadline) -> Mapping[str, int]:
        """As `Purging.remains`."""
        with self._reading(deadline) as connection:
            found = {place: connection.execute(sql).fetchone()[0] for place, sql in _REMAINS.items()}
        return {place: number for place, number in found.items() if number}

    def sweep(self, now: datetime, deadline: Deadline) -> None:
        """As `Purging.sweep`."""
        mark = _mark(now)
        self._database.write(lambda connection: sweep(connection, mark), deadline)
        self._forget_calls(deadline)

    def holds(self, sample: Sample, deadline: Deadline) -> bool:
        """As `Purging.holds`."""
        sql = {
            "text": "SELECT 1 FROM texts WHERE instr(CAST(content AS BLOB), ?) LIMIT 1",
            "vector": f"SELECT 1 FROM vectors WHERE substr(vector, 1, {_VECTOR}) = ? LIMIT 1",
        }
        with self._reading(deadline) as connection:
            return connection.execute(sql[sample.kind], (sample.data,)).fetchone() is not None

    def finished(self, unfinished: str, deadline: Deadline) -> None:
        """As `Purging.finished`."""
        self._database.write(
            lambda connection: connection.execute("DELETE FROM meta WHERE (key, value) = (?, ?)", (MARK, unfinished)),
            deadline,
        )

    def _forget_calls(self, deadline: Deadline) -> None:
        step: int | None = 0
        while step is not None:
            step = self._database.write(partial(forget_calls, after=step), deadline)

    def _merge_full_text(self, deadline: Deadline) -> None:
        # Of several segments the older hold what the newer only mark as deleted.
        for tables in (CURRENT, SPARE):
            sql = f"INSERT INTO {tables.fulltext} ({tables.fulltext}) VALUES ('optimize')"
            self._database.write(partial(_executed, sql), deadline)

    def _write_anew(self, deadline: Deadline) -> None:
        with self._apart() as connection:
            # A small file stays in this much memory; of a large one all of it, as elsewhere, could be too much.
            connection.execute("PRAGMA temp_store = FILE")
            connection.execute(f"PRAGMA cache_size = -{_CACHE}")
            with queue_of(self._database.path.with_name(LOCK_FILE)) as tickets:
                tickets.wait(deadline.remaining)
                try:
                    _patiently(lambda: connection.execute("VACUUM"), deadline)
                finally:
                    tickets.leave()
            _truncate(connection, deadline)

    def _truncate(self, deadline: Deadline) -> None:
        with self._apart() as connection:
            _truncate(connection, deadline)

    def _purge_index(self, deadline: Deadline) -> None:
        with self._reading(deadline) as connection:
            found = connection.execute("SELECT id FROM items WHERE purged_at IS NOT NULL ORDER BY id").fetchall()
        self._index.purge(self._source, np.array([row for (row,) in found], dtype=np.int64))

    @contextlib.contextmanager
    def _apart(self) -> Iterator[sqlite3.Connection]:
        with self._database.apart() as connection:
            # Writers wait behind a checkpoint that waits: often and short, so that they get their turn.
            connection.execute(f"PRAGMA busy_timeout = {_WAITS}")
            yield connection

    @contextlib.contextmanager
    def _reading(self, deadline: Deadline) -> Iterator[sqlite3.Connection]:
        with self._database.read(deadline) as connection:
            connection.execute("BEGIN")
            check_version(connection)
            yield connection


def _mark(now: datetime) -> str:
    return f"{to_micros(now)}:{secrets.token_hex(8)}"


def _pieces(connection: sqlite3.Connection, row: int) -> Iterator[Sample]:
    """A run of the text that no escape breaks in two, and the beginning of its first vector."""
    text = connection.execute("SELECT content FROM texts WHERE item_id = ?", (row,)).fetchone()
    if text is None:
        # Another process has purged it meanwhile.
        return
    longest = max(_ESCAPED.split(text[0]), key=len).encode()
    if len(longest) >= _SHORTEST:
        yield Sample("text", longest[:_PIECE])
    found = connection.execute(
        "SELECT v.vector FROM passages p JOIN vectors v ON v.passage_id = p.id WHERE p.item_id = ?"
        " ORDER BY p.id LIMIT 1",
        (row,),
    ).fetchone()
    if found is not None:
        yield Sample("vector", bytes(found[0][:_VECTOR]))


def _executed(sql: str, connection: sqlite3.Connection) -> None:
    connection.execute(sql)


def _truncate(connection: sqlite3.Connection, deadline: Deadline) -> None:
    """Write the log back into the file and cut it to nothing.

    Raises: StoreUnavailable if somebody reads an older state until the deadline.
    """

    def once() -> Any:  # noqa: ANN401 - sqlite3 is untyped
        busy, *_ = connection.execute(_TRUNCATE).fetchone()
        return not busy

    if not _patiently(once, deadline):
        raise StoreUnavailable(
            "another process reads an older state of the store, which holds what was purged",
            hint="Run `agora purge` again when it is done, or end the process: `agora status` names none, so look for a"
            " long export or backup.",
        )


def _patiently(step: Callable[[], object], deadline: Deadline) -> object:
    """What `step` gives, tried again while the store is locked, or while it gives nothing, until the deadline."""
    while True:
        try:
            if found := step():
                return found
        except sqlite3.OperationalError as error:
            if error.sqlite_errorcode & 0xFF not in {sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED}:
                raise
            if deadline.remaining() == 0.0:
                raise
        if deadline.remaining() == 0.0:
            return None
        time.sleep(random.uniform(0.005, 0.05))  # noqa: S311 - not a secret
