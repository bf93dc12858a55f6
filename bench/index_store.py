"""A store file with vectors and nothing else in it, written by SQL, and Agora's index over it."""

from __future__ import annotations

import contextlib
import sqlite3
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from agora.app.clock import SystemClock
from agora.model.deadline import Deadline
from agora.model.instants import to_micros
from agora.model.profile import Fingerprint
from agora.ports.vector_index import Among, Candidates
from agora.stores.sqlite.index.compacting import Writing
from agora.stores.sqlite.index.following import SegmentedIndex
from agora.stores.sqlite.store import INDEX_FOLDER, SqliteStore
from bench.index_vectors import DIMENSION, Floats

Ids = NDArray[np.int64]

LONG = Deadline(1e6)
FINGERPRINT = Fingerprint("bench", "0" * 64, DIMENSION, "mean", "", normalised=True, max_tokens=256)
_CLOCK = SystemClock()
_NAMESPACE = 1


@dataclass(frozen=True, slots=True)
class Opened:
    """A store with an index of one kernel over the files that stand beside it."""

    store: SqliteStore
    index: SegmentedIndex
    now: int

    def nearest(self, question: Floats, limit: int, among: Ids | None = None) -> Candidates:
        """One search as a query does it: a read transaction, the look at the journal, the nearest."""
        rows = None if among is None else among + 1
        with self.store.source(LONG) as source, self.index.follow(source, LONG) as view:
            return view.nearest(question, Among((_NAMESPACE,), self.now, rows), limit)

    def ids(self, question: Floats, limit: int, among: Ids | None = None) -> Ids:
        """The same as places in the matrix that the store was filled from."""
        return self.nearest(question, limit, among).rows - 1

    def look(self) -> None:
        """A read transaction that looks whether anything changed, and does nothing else."""
        with self.store.source(LONG) as source, self.index.follow(source, LONG):
            pass

    def transaction(self) -> None:
        """A read transaction that looks at nothing."""
        with self.store.source(LONG) as source:
            source.connection.execute("BEGIN")


@contextlib.contextmanager
def opened(path: Path, kernel: str | None = None, folder: Path | None = None) -> Iterator[Opened]:
    """The store at `path` with an index of that kernel over its files, or over those in another `folder`."""
    index = SegmentedIndex(folder or path.parent / INDEX_FOLDER, DIMENSION, Writing(_refused, _CLOCK), kernel=kernel)
    store = SqliteStore(path, FINGERPRINT, _CLOCK, index=index)
    try:
        yield Opened(store, index, to_micros(_CLOCK.now()))
    finally:
        store.close()


def fill(path: Path, vectors: Floats) -> None:
    """A store with one note a vector and the files of its index; row n + 1 has the vector at n."""
    SqliteStore(path, FINGERPRINT, _CLOCK).close()
    _insert(path, vectors)
    store = SqliteStore(path, FINGERPRINT, _CLOCK)
    try:
        store.reindex()
    finally:
        store.close()


def _insert(path: Path, vectors: Floats) -> None:
    count = len(vectors)
    connection = sqlite3.connect(path, isolation_level=None)
    # Nobody else is here, and a store that breaks while it is filled is filled anew.
    for pragma in ("journal_mode = OFF", "synchronous = OFF", "foreign_keys = OFF"):
        connection.execute(f"PRAGMA {pragma}")
    encoder = connection.execute("SELECT id FROM encoders").fetchone()[0]
    connection.execute("BEGIN")
    connection.execute("INSERT INTO namespaces VALUES (?, 'bench', 1)", (_NAMESPACE,))
    connection.execute("INSERT INTO agents VALUES (1, 'bench', 1)")
    connection.execute("INSERT INTO clients (id, name, version) VALUES (1, 'bench', '1')")
    connection.executemany(
        "INSERT INTO items (id, public_id, type, namespace_id, kind, created_at, updated_at, effective_at)"
        " VALUES (?, ?, 'note', 1, 'note', 1, 1, 1)",
        ((row, f"n_{row:026}") for row in range(1, count + 1)),
    )
    connection.executemany(
        "INSERT INTO passages (id, item_id, layout, n, start, stop) VALUES (?, ?, 1, 0, 0, 1)",
        ((row, row) for row in range(1, count + 1)),
    )
    connection.executemany(
        "INSERT INTO vectors (passage_id, encoder_id, vector) VALUES (?, ?, ?)",
        ((place + 1, encoder, vector.astype("<f4").tobytes()) for place, vector in enumerate(vectors)),
    )
    # An index needs the journal's head and its hash, not what led there.
    connection.execute(
        "INSERT INTO journal (sequence, format, at, namespace_id, operation, agent_id, client_id, session, origin,"
        " commitment, previous_hash, hash) VALUES (?, 1, 1, 1, 'save', 1, 1, '', 'agent', ?, ?, ?)",
        (count, b"c", b"p", b"h" * 32),
    )
    connection.execute("COMMIT")
    connection.close()


def _refused(*_: object) -> bool:
    raise AssertionError("a benchmark's index only reads")
