"""A store on a real file whose vectors are ours to choose, and a search by hand over the same snapshot."""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence
from contextlib import closing
from datetime import timedelta
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from tests.blank import lay

from agora.model.caller import Caller, Scope
from agora.model.deadline import Deadline
from agora.model.instants import NEVER, to_micros
from agora.model.note import Draft
from agora.model.profile import Span
from agora.model.selection import Selection
from agora.ports.records import Embedded
from agora.ports.vector_index import Among, Candidates
from agora.stores.sqlite.index.compacting import Writing
from agora.stores.sqlite.index.following import SegmentedIndex
from agora.stores.sqlite.reading import SqliteReading
from agora.stores.sqlite.store import SqliteStore
from agora.testing import FakeEncoder, ManualClock

DIMENSION = 40
"""No multiple of 64: the codes have bits to spare."""

Matrix = NDArray[np.float32]
Rows = NDArray[np.int64]


def soon() -> Deadline:
    return Deadline(60)


def units(count: int, seed: int, dimension: int = DIMENSION) -> Matrix:
    """Normalised vectors in no order."""
    numbers = np.random.default_rng(seed).standard_normal((count, dimension))
    found: Matrix = (numbers / np.linalg.norm(numbers, axis=1)[:, None]).astype(np.float32)
    return found


class Library:
    """One process's view of a data folder; several may stand on the same one."""

    def __init__(
        self, folder: Path, *, dimension: int = DIMENSION, clock: ManualClock | None = None, **options: Any
    ) -> None:
        self.folder = folder
        self.files = folder / "index"
        self.path = folder / "agora.db"
        self.dimension = dimension
        self.clock = clock or ManualClock()
        self.encoder = FakeEncoder(dimension)
        lay(self.path, self.encoder.fingerprint, self.clock)
        self.store = SqliteStore(self.path, self.encoder.fingerprint, self.clock)
        # The store's own, but for what a test wants otherwise.
        self.index = SegmentedIndex(self.files, dimension, Writing(self.store._database.write, self.clock), **options)
        self.store.index = self.index
        self._number = 0

    def close(self) -> None:
        self.store.close()

    def caller(self, namespace: str) -> Caller:
        return Caller(Scope(namespace, "test"), "ann", "s", "c")

    def add(self, vectors: Matrix, namespace: str = "p", *, lives: float | None = None) -> int:
        """The row of a note with these passages."""
        self._number += 1
        ends = None if lives is None else self.clock.now() + timedelta(seconds=lives)
        spans = tuple(Span(number, number + 1) for number in range(len(vectors)))
        draft = Draft(f"note {self._number} of {id(self)} {len(vectors)}", namespace, expires_at=ends)
        embedded = Embedded(self.encoder.fingerprint, spans, tuple(vectors))
        saved = self.store.save(draft, self.caller(namespace), embedded, self.clock.now(), soon())
        return int(self.sql("SELECT id FROM items WHERE public_id = ?", saved.id)[0][0])

    def fill(self, vectors: Matrix, namespaces: int = 1) -> Rows:
        """Rows of one passage each, in as many namespaces in turn, put in at once behind the back of the store."""
        with closing(sqlite3.connect(self.path, isolation_level=None, timeout=30)) as connection:
            connection.execute("BEGIN IMMEDIATE")
            connection.executemany(
                "INSERT INTO namespaces (name, created_at) VALUES (?, 0) ON CONFLICT DO NOTHING",
                [("pqrstuvwxyz"[place],) for place in range(namespaces)],
            )
            names = {name: number for number, name in connection.execute("SELECT id, name FROM namespaces")}
            connection.execute("INSERT INTO agents VALUES (99, 'filler', 0) ON CONFLICT DO NOTHING")
            connection.execute("INSERT INTO clients VALUES (99, 'filler', '', '') ON CONFLICT DO NOTHING")
            first = (connection.execute("SELECT max(id) FROM items").fetchone()[0] or 0) + 1
            encoder, layout = connection.execute("SELECT id, layout FROM encoders WHERE state = 'active'").fetchone()
            rows = range(first, first + len(vectors))
            connection.executemany(
                "INSERT INTO items (id, public_id, type, namespace_id, kind, created_at, updated_at, effective_at)"
                " VALUES (?, ?, 'note', ?, 'k', 0, 0, 0)",
                [(row, f"n_{row}", names["pqrstuvwxyz"[(row - first) % namespaces]]) for row in rows],
            )
            passage = (connection.execute("SELECT max(id) FROM passages").fetchone()[0] or 0) + 1
            connection.executemany(
                "INSERT INTO passages (id, item_id, layout, n, start, stop) VALUES (?, ?, ?, 0, 0, 1)",
                [(passage + place, row, layout) for place, row in enumerate(rows)],
            )
            connection.executemany(
                "INSERT INTO vectors (passage_id, encoder_id, vector) VALUES (?, ?, ?)",
                [(passage + place, encoder, vector.tobytes()) for place, vector in enumerate(vectors)],
            )
            self._journal(connection, rows)
            connection.execute("COMMIT")
        return np.array(rows, dtype=np.int64)

    def mark(self, rows: Sequence[int], *, forgotten: bool) -> None:
        """Forget rows, or take it back, behind the back of the store."""
        with closing(sqlite3.connect(self.path, isolation_level=None, timeout=30)) as connection:
            connection.execute("BEGIN IMMEDIATE")
            at = 1 if forgotten else None
            connection.executemany("UPDATE items SET forgotten_at = ? WHERE id = ?", [(at, int(row)) for row in rows])
            connection.execute("INSERT INTO agents VALUES (99, 'filler', 0) ON CONFLICT DO NOTHING")
            connection.execute("INSERT INTO clients VALUES (99, 'filler', '', '') ON CONFLICT DO NOTHING")
            self._journal(connection, rows)
            connection.execute("COMMIT")

    def _journal(self, connection: sqlite3.Connection, rows: Sequence[int]) -> None:
        connection.executemany(
            "INSERT INTO journal (format, at, operation, item_id, agent_id, client_id, session, origin, commitment,"
            " previous_hash, hash) VALUES (1, 0, 'save', ?, 99, 99, '', 'agent', x'00', x'00', randomblob(32))",
            [(int(row),) for row in rows],
        )

    def forget(self, *rows: int) -> None:
        """Forget rows as a user would."""
        for row in rows:
            public_id, namespace = self._known(row)
            selection = Selection((namespace,), (public_id,))
            self.store.forget(selection, self.caller(namespace), self.clock.now(), soon(), dry_run=False)

    def restore(self, *rows: int) -> None:
        """Bring rows back as a user would."""
        for row in rows:
            public_id, namespace = self._known(row)
            assert self.store.restore((public_id,), self.caller(namespace), self.clock.now(), soon()).restored

    def _known(self, row: int) -> tuple[str, str]:
        ((public_id, namespace),) = self.sql(
            "SELECT i.public_id, n.name FROM items i JOIN namespaces n ON n.id = i.namespace_id WHERE i.id = ?", row
        )
        return public_id, namespace

    def sql(self, statement: str, *values: object) -> list[tuple[Any, ...]]:
        with closing(sqlite3.connect(self.path, isolation_level=None, timeout=30)) as connection:
            return connection.execute(statement, values).fetchall()

    def compact(self, *, force: bool = True) -> dict[str, Any] | None:
        return self.store.compact(force=force)

    def segments(self) -> list[Path]:
        """The segment files that SQLite names, oldest first."""
        return [self.files / name for (name,) in self.sql("SELECT file FROM segments ORDER BY id")]

    def left(self) -> set[str]:
        """Names of the index files in the folder that SQLite does not name."""
        named = {name for (name,) in self.sql("SELECT file FROM segments UNION ALL SELECT state FROM generations")}
        return {path.name for path in self.files.iterdir() if path.suffix in {".seg", ".state"}} - named

    def problem(self) -> str | None:
        found: str | None = self.index.details()["problem"]
        return found

    def is_right(self, seed: int = 0, limits: Sequence[int] = (1, 7, 5000)) -> None:
        """Searches of every kind find what a search by hand finds, in one snapshot."""
        with self.store.read(soon()) as reading:
            self.agrees(reading, seed, limits)

    def agrees(self, reading: SqliteReading, seed: int = 0, limits: Sequence[int] = (1, 7, 5000)) -> None:
        now = to_micros(self.clock.now())
        everything = by_hand(reading._connection, self.dimension)
        asked = units(1, seed, self.dimension)[0]
        spaces = tuple(sorted({int(each) for each in everything.namespaces}))
        some = np.unique(everything.rows)[::3]
        for among in (Among(spaces, now), Among(spaces[:1], now), Among((*spaces, 77), now, some), Among((), now)):
            for limit in limits:
                same(reading.vectors.nearest(asked, among, limit), everything.nearest(asked, among, limit))
        assert reading.vectors.size() == len(everything.rows)
        rows = np.append(np.unique(everything.rows)[::-1][:50], 10**9)
        found, expected = reading.vectors.cosines(asked, rows), everything.cosines(asked, rows)
        assert found.rows.tolist() == expected.rows.tolist()
        np.testing.assert_allclose(found.scores, expected.scores, atol=2e-7)
        assert found.passages.tolist() == expected.passages.tolist()


class ByHand:
    """What a snapshot has, as arrays; searched in float64, without any index."""

    def __init__(self, rows: Rows, numbers: Rows, namespaces: Rows, expires: Rows, matrix: Matrix) -> None:
        self.rows, self.numbers, self.namespaces = rows, numbers, namespaces
        self.expires, self.matrix = expires, matrix

    def nearest(self, vector: Matrix, among: Among, limit: int) -> Candidates:
        allowed = np.isin(self.namespaces, among.namespaces) & (self.expires > among.now)
        if among.rows is not None:
            allowed &= np.isin(self.rows, among.rows)
        found = self._best(vector, np.flatnonzero(allowed))
        return Candidates(found.rows[:limit], found.scores[:limit], found.passages[:limit])

    def cosines(self, vector: Matrix, rows: Rows) -> Candidates:
        found = self._best(vector, np.arange(len(self.rows)))
        held = {row: place for place, row in enumerate(found.rows.tolist())}
        places = [held.get(row, -1) for row in rows.tolist()]
        return Candidates(
            rows,
            np.array([found.scores[place] if place >= 0 else -1 for place in places], dtype=np.float32),
            np.array([found.passages[place] if place >= 0 else 0 for place in places], dtype=np.int64),
        )

    def _best(self, vector: Matrix, slots: Rows) -> Candidates:
        scores = (self.matrix[slots].astype(np.float64) * vector.astype(np.float64)).sum(axis=1).astype(np.float32)
        order = np.lexsort((self.numbers[slots], self.rows[slots], -scores))
        _, first = np.unique(self.rows[slots][order], return_index=True)
        keep = order[np.sort(first)]
        return Candidates(self.rows[slots][keep], scores[keep], self.numbers[slots][keep])


def by_hand(connection: sqlite3.Connection, dimension: int) -> ByHand:
    """Everything live in the snapshot of `connection`."""
    found = connection.execute(
        "SELECT i.id, p.n, i.namespace_id, i.expires_at, v.vector FROM items i JOIN passages p ON p.item_id = i.id"
        " JOIN vectors v ON v.passage_id = p.id WHERE i.superseded_by IS NULL AND i.forgotten_at IS NULL"
    ).fetchall()
    numbers = np.array([row[:3] for row in found], dtype=np.int64).reshape(-1, 3)
    ends = np.array([NEVER if row[3] is None else row[3] for row in found], dtype=np.int64)
    matrix = np.frombuffer(b"".join(row[4] for row in found), dtype="<f4").reshape(len(found), dimension)
    return ByHand(numbers[:, 0], numbers[:, 1], numbers[:, 2], ends, matrix)


def same(found: Candidates, expected: Candidates) -> None:
    """The same rows in the same order, with the same scores and passages."""
    assert found.rows.tolist() == expected.rows.tolist()
    np.testing.assert_allclose(found.scores, expected.scores, atol=2e-7)
    assert found.passages.tolist() == expected.passages.tolist()
