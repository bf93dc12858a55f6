from __future__ import annotations

import sqlite3
from collections import deque
from collections.abc import Collection
from dataclasses import dataclass, field
from itertools import islice

from agora.errors import StoreUnavailable
from agora.stores.sqlite.rows import FOUND


@dataclass(frozen=True, slots=True)
class Target:
    """The encoder that a store moves to, and the layout that its vectors are for."""

    encoder_id: int
    layout: int
    own: bool
    """Whether that layout is another one than that of the active encoder."""

    @classmethod
    def of(cls, connection: sqlite3.Connection, digest: str) -> Target:
        """The building encoder with this fingerprint.

        Raises: StoreUnavailable if there is none any more: another file was put in the store's place.
        """
        found = connection.execute(
            "SELECT id, layout, layout <> (SELECT layout FROM encoders WHERE state = 'active') FROM encoders"
            " WHERE digest = ? AND state = 'building'",
            (digest,),
        ).fetchone()
        if found is None:
            raise StoreUnavailable(
                "the store was replaced, or moved by somebody else, while it was re-embedded",
                hint="Look whether it is the store that you mean, and run `agora reembed` again.",
            )
        return cls(found[0], found[1], own=bool(found[2]))


_UNFINISHED = (
    "SELECT i.id FROM items i WHERE i.purged_at IS NULL AND {rows}"
    " AND EXISTS (SELECT 1 FROM texts WHERE item_id = i.id)"
    # A message may have been kept without vectors, and a summary has none.
    f" AND ({FOUND} OR EXISTS (SELECT 1 FROM passages p WHERE p.item_id = i.id))"
    " AND (NOT EXISTS (SELECT 1 FROM passages p WHERE p.item_id = i.id AND p.layout = :layout AND p.n = 0)"
    " OR EXISTS (SELECT 1 FROM passages p WHERE p.item_id = i.id AND p.layout = :layout AND NOT EXISTS"
    " (SELECT 1 FROM vectors v WHERE v.passage_id = p.id AND v.encoder_id = :encoder)){unfindable})"
    " ORDER BY i.id LIMIT :most"
)
_UNFINDABLE = (
    f" OR i.superseded_by IS NULL AND i.forgotten_at IS NULL AND {FOUND}"
    " AND EXISTS (SELECT 1 FROM passages p WHERE p.item_id = i.id"
    " AND p.layout = :layout AND NOT EXISTS (SELECT 1 FROM fulltext_spare_content f WHERE f.id = p.id))"
)
_AFTER = "i.id > :after"
_CHANGED = "i.id IN (SELECT item_id FROM journal WHERE sequence > :since)"

_WALK = 5_000
"""Rows that a look brings at most while the store is walked over for the first time."""


@dataclass(slots=True)
class Ledger:
    """Rows whose passages, vectors or words to come are not all there, a few thousand of them in memory at a time.

    The store is walked over once, by row; then the journal tells what changed since the walk began. A row once complete
    stays so: items do not change, and whoever forgets or restores one sees to the full text of both layouts.
    """

    digest: str
    rows: deque[int] = field(default_factory=deque)
    """Waiting rows, in the order in which they are to be done."""
    _listed: set[int] = field(default_factory=set)
    target: Target | None = None
    """What the rows wait for; None before the first look."""
    verified: bool = False
    """Whether a second walk has gone over the store."""
    _after: int | None = 0
    """The row that the walk has come to; None once it is over."""
    _unseen: int = 0
    _since: tuple[int, bytes | None] = (0, None)

    @property
    def left(self) -> int:
        """How many rows wait; during the walk as many as there were when it began, without those done."""
        return len(self.rows) + max(0, self._unseen)

    def read_on(self, connection: sqlite3.Connection) -> Target:
        """Take in more of what waits, in the transaction of `connection`: everything, once the walk is over.

        Raises: StoreUnavailable.
        """
        target = Target.of(connection, self.digest)
        if target != self.target or _hash_at(connection, self._since[0]) != self._since[1]:
            self._start(connection, target)
        if self._after is not None and not self.rows:
            found = self._unfinished(connection, _AFTER, _WALK)
            self._take(found)
            self._unseen -= len(found)
            self._after = found[-1] if len(found) == _WALK else None
        if self._after is None:
            self._take(self._unfinished(connection, _CHANGED, -1))
            self._unseen, self._since = 0, _head(connection)
        return target

    def walk_again(self, connection: sqlite3.Connection) -> None:
        """Walk over the store once more, in the transaction of `connection`: `verified` unless very much was missed.

        Raises: StoreUnavailable.
        """
        self._start(connection, Target.of(connection, self.digest))
        self.read_on(connection)
        self.verified = self._after is None

    def first(self, most: int) -> list[int]:
        """The rows to be done next."""
        return [row for row in islice(self.rows, most) if row in self._listed]

    def drop(self, rows: Collection[int]) -> None:
        """Cross off rows that are done, or gone."""
        self._listed.difference_update(rows)
        # They are the first ones, as they were given out.
        while self.rows and self.rows[0] not in self._listed:
            self.rows.popleft()

    def _start(self, connection: sqlite3.Connection, target: Target) -> None:
        self.rows.clear()
        self._listed.clear()
        self.verified = False
        self.target, self._after, self._since = target, 0, _head(connection)
        self._unseen = connection.execute(f"SELECT count(*) FROM ({self._sql(_AFTER)})", self._values(-1)).fetchone()[0]

    def _take(self, found: list[int]) -> None:
        fresh = [row for row in found if row not in self._listed]
        self.rows.extend(fresh)
        self._listed.update(fresh)

    def _unfinished(self, connection: sqlite3.Connection, rows: str, most: int) -> list[int]:
        return [row for (row,) in connection.execute(self._sql(rows), self._values(most))]

    def _sql(self, rows: str) -> str:
        own = self.target is not None and self.target.own
        return _UNFINISHED.format(rows=rows, unfindable=_UNFINDABLE if own else "")

    def _values(self, most: int) -> dict[str, int | None]:
        assert self.target is not None
        return {
            "layout": self.target.layout,
            "encoder": self.target.encoder_id,
            "after": self._after,
            "since": self._since[0],
            "most": most,
        }


def _head(connection: sqlite3.Connection) -> tuple[int, bytes | None]:
    """The last change of the journal: its sequence, and the hash that tells two pasts of a store apart."""
    found = connection.execute("SELECT sequence, hash FROM journal ORDER BY sequence DESC LIMIT 1").fetchone()
    return (0, None) if found is None else (found[0], found[1])


def _hash_at(connection: sqlite3.Connection, sequence: int) -> bytes | None:
    found = connection.execute("SELECT hash FROM journal WHERE sequence = ?", (sequence,)).fetchone()
    return None if found is None else bytes(found[0])
