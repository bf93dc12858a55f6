"""A store with its cache, as one process holds it, and what must be true of it whatever happened."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Sequence
from contextlib import closing
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import Any, Literal

import numpy as np

from agora.cache.disk import Disk
from agora.cache.embeddings import CachedEncoder
from agora.cache.results import TwoLevelCache
from agora.memory.notes import Notes
from agora.model.caller import Caller, Scope
from agora.model.deadline import Deadline
from agora.model.note import Draft, Saved
from agora.model.query import Filter, Mode, Query
from agora.model.selection import Forgotten, Restored, Selection
from agora.ports.vector_index import VectorIndex
from agora.stores.sqlite.checks import find_problems
from agora.stores.sqlite.index.compacting import Writing
from agora.stores.sqlite.index.following import SegmentedIndex
from agora.stores.sqlite.index.view import EXACT_BELOW
from agora.stores.sqlite.store import INDEX_FOLDER, SqliteStore
from agora.testing import FakeEncoder, InMemoryIndex, ManualClock, SilentLog

PATIENCE = 90.0
NAMESPACES = ("p", "q")
QUERIES = (
    Query("alpha", Filter(("p",)), 50, "semantic", None, 100_000),
    Query("alpha words", Filter(("p", "q")), 50, "lexical", None, 100_000),
    Query("number beta words", Filter(("p", "q")), 50, "hybrid", None, 100_000),
    Query("alpha beta", Filter(("p", "q"), tags=("red",)), 3),
)
"""What is asked of the cache and anew, to be compared."""


class Station:
    """One process's store, cache and services on a data folder; several may stand on the same one."""

    def __init__(
        self,
        folder: Path,
        clock: ManualClock | None = None,
        *,
        encoder: FakeEncoder | None = None,
        index: Literal["own", "memory"] = "own",
        exact_below: int = EXACT_BELOW,
        agent: str = "ann",
        synchronous: Literal["normal", "full"] = "normal",
    ) -> None:
        self.path = folder / "agora.db"
        self.clock = clock or ManualClock()
        self.start = self.clock.now()
        self.agent = agent
        self.encoder = encoder or FakeEncoder(16, piece=40)
        self.store = SqliteStore(
            self.path,
            self.encoder.fingerprint,
            self.clock,
            synchronous=synchronous,
            index=InMemoryIndex() if index == "memory" else self._own(folder, exact_below),
            busy_timeout=20,
        )
        self.disk = Disk(folder / "cache.db", SilentLog(), entries=50, sweep=5)
        self.cache = TwoLevelCache(self.clock, self.disk, entries=20, seconds=300, disk_seconds=86_400)
        questions = CachedEncoder(self.encoder, self.clock, self.disk, entries=20, disk_seconds=86_400)
        self.notes = Notes(
            self.store,
            self.encoder,
            self.clock,
            SilentLog(),
            model_seconds=PATIENCE,
            cache=self.cache,
            questions=questions,
        )
        self.anew = Notes(self.store, self.encoder, self.clock, SilentLog(), model_seconds=PATIENCE)

    def _own(self, folder: Path, exact_below: int) -> VectorIndex | None:
        """The store's own index; None lets the store make it, as a user's does."""
        if exact_below == EXACT_BELOW:
            return None

        def write(job: Callable[[sqlite3.Connection], bool], deadline: Deadline) -> bool:
            # There is no store yet when its index is made.
            return self.store._database.write(job, deadline)

        dimension = self.encoder.fingerprint.dimension
        return SegmentedIndex(folder / INDEX_FOLDER, dimension, Writing(write, self.clock), exact_below=exact_below)

    def caller(self, agent: str | None = None, namespace: str = "p") -> Caller:
        """Somebody who sees every namespace and works in one."""
        return Caller(Scope(namespace, "test", frozenset(NAMESPACES)), agent or self.agent, "s", "c")

    def save(
        self,
        content: str,
        namespace: str = "p",
        *,
        agent: str | None = None,
        key: str | None = None,
        tags: Sequence[str] = (),
        lives: float | None = None,
    ) -> Saved:
        """Save through the service; `lives` is seconds until it expires."""
        expires = None if lives is None else self.clock.now() + timedelta(seconds=lives)
        draft = Draft(content, namespace, tags=tuple(tags), key=key, expires_at=expires)
        return self.notes.save(draft, self.caller(agent, namespace), Deadline(PATIENCE))

    def forget(self, *ids: str, agent: str | None = None, dry_run: bool = False) -> Forgotten:
        """Forget by ids, wherever they are, or all that one agent alone has saved."""
        selection = Selection(NAMESPACES, ids, agent=agent)
        return self.notes.forget(selection, self.caller(), Deadline(PATIENCE), dry_run=dry_run)

    def restore(self, *ids: str) -> Restored:
        """Bring back what was forgotten."""
        return self.notes.restore(ids, self.caller(), Deadline(PATIENCE))

    def found(self, text: str, mode: Mode, *, top_k: int = 50, anew: bool = True) -> list[str]:
        """Ids of what a query over all namespaces finds, best first."""
        asked = Query(text, Filter(NAMESPACES), top_k, mode, None, 1_000_000)
        notes = self.anew if anew else self.notes
        return [hit.note.id for hit in notes.query(asked, self.caller(), Deadline(PATIENCE)).hits]

    def ids_of(self, content: str) -> list[str]:
        """The current notes with exactly this text."""
        rows = self.sql(
            "SELECT i.public_id FROM items i JOIN texts t ON t.item_id = i.id WHERE t.content = ?"
            " AND i.superseded_by IS NULL AND i.forgotten_at IS NULL ORDER BY i.id",
            content,
        )
        return [row[0] for row in rows]

    def sql(self, statement: str, *values: object) -> list[tuple[Any, ...]]:
        """Rows of a statement on a connection of its own."""
        with closing(sqlite3.connect(self.path, isolation_level=None, timeout=PATIENCE)) as connection:
            return connection.execute(statement, values).fetchall()

    def settle(self) -> None:
        """Wait until what is written behind the answers is written."""
        self.store.settle_reads(Deadline(PATIENCE))
        self.disk.flush()

    def close(self) -> None:
        """Let the files go."""
        self.store.close()
        self.cache.close()


def whole(station: Station) -> None:
    """Every invariant: the file's, the tables', the journal's, the index's and the cache's."""
    tables_agree(station.path)
    index_agrees(station)
    cache_agrees(station)


def tables_agree(path: Path) -> None:
    """Nothing for the doctor to find; the tables have each other's rows; the journal has no gap and no spare number."""
    with closing(sqlite3.connect(path, isolation_level=None, timeout=PATIENCE)) as connection:
        connection.execute("BEGIN")
        assert find_problems(connection) == []
        (kept, texts, passages, vectors, live, searched, last, entries, given), *_ = connection.execute(
            f"""SELECT (SELECT count(*) FROM items WHERE purged_at IS NULL),
             (SELECT count(*) FROM texts),
             (SELECT count(*) FROM passages WHERE layout = {_LAYOUT}),
             (SELECT count(*) FROM vectors v JOIN encoders e ON e.id = v.encoder_id WHERE e.state = 'active'),
             (SELECT count(*) FROM passages p JOIN items i ON i.id = p.item_id WHERE {_CURRENT}
               AND p.layout = {_LAYOUT}),
             (SELECT count(*) FROM fulltext),
             (SELECT ifnull(max(sequence), 0) FROM journal),
             (SELECT count(*) FROM journal),
             (SELECT ifnull(max(seq), 0) FROM sqlite_sequence WHERE name = 'journal')"""  # noqa: S608 - constants
        )
    assert kept == texts
    assert passages == vectors >= kept
    assert live == searched
    assert last == entries == given


_LAYOUT = "(SELECT layout FROM encoders WHERE state = 'active' LIMIT 1)"
_CURRENT = "i.superseded_by IS NULL AND i.forgotten_at IS NULL"


def index_agrees(station: Station) -> None:
    """The index holds the vectors of the current rows, those alone, each in its place."""
    probe = station.encoder.encode("alpha number beta", Deadline(PATIENCE))
    with station.store.read(Deadline(PATIENCE)) as reading:
        among = reading.among(Filter(NAMESPACES))
        held: dict[int, float] = {}
        expected: dict[int, float] = {}
        passages = 0
        for row, ends, vector in reading._connection.execute(
            "SELECT i.id, i.expires_at, v.vector FROM items i JOIN passages p ON p.item_id = i.id JOIN vectors v"
            " ON v.passage_id = p.id JOIN encoders e ON e.id = v.encoder_id AND e.state = 'active'"
            " AND e.layout = p.layout WHERE i.superseded_by IS NULL AND i.forgotten_at IS NULL"
        ):
            passages += 1
            score = float(np.vecdot(np.frombuffer(vector, "<f4").astype(np.float64), probe.astype(np.float64)))
            held[row] = max(held.get(row, -1.0), score)
            if ends is None or ends > among.now:
                expected[row] = held[row]
        assert reading.vectors.size() == passages
        rows = np.array(sorted(held), dtype=np.int64)
        assert np.allclose(reading.vectors.cosines(probe, rows).scores, [held[row] for row in rows.tolist()], atol=1e-6)
        everything = reading.vectors.nearest(probe, among, 1_000_000)
        assert sorted(everything.rows.tolist()) == sorted(expected)
        best = sorted(expected.values(), reverse=True)
        assert np.allclose(everything.scores, best, atol=1e-6)
        # Where bits choose who is compared, a row may be missed, but never the nearest by far, and no score is wrong.
        nearest = reading.vectors.nearest(probe, among, 3)
        assert np.allclose(nearest.scores, [expected[row] for row in nearest.rows.tolist()], atol=1e-6)
        assert np.allclose(nearest.scores[:1], best[:1], atol=1e-6)
        assert len(nearest.rows) == min(3, len(best))


def cache_agrees(station: Station) -> None:
    """What the cache answers is what would be answered without it."""
    for query in QUERIES:
        kept = station.notes.query(query, station.caller(), Deadline(PATIENCE))
        assert replace(kept, cached=None) == station.anew.query(query, station.caller(), Deadline(PATIENCE)), query
