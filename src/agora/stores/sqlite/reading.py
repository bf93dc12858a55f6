from __future__ import annotations

import hashlib
import sqlite3
from collections.abc import Sequence
from datetime import datetime
from typing import Any

import numpy as np

from agora.model.allowance import Allowances
from agora.model.browse import Listing, Named, Page
from agora.model.caller import Caller, Origin
from agora.model.crossref import Changes, Topic
from agora.model.instants import from_micros, maybe, maybe_micros, to_micros
from agora.model.note import Draft, Note
from agora.model.profile import Span
from agora.model.query import Filter
from agora.model.selection import Forgotten, Selection
from agora.ports.records import State
from agora.ports.vector_index import Among, VectorView
from agora.stores.sqlite import forgetting, heads, listing, reads, rows
from agora.stores.sqlite.allowance import foresee, size_of
from agora.stores.sqlite.counting import count
from agora.stores.sqlite.matching import FullTextView


class SqliteReading:
    """One open read transaction; implements `agora.ports.records.Reading`."""

    def __init__(
        self,
        connection: sqlite3.Connection,
        sequence: int,
        vectors: VectorView,
        now: datetime,
        allowances: Allowances | None = None,
    ) -> None:
        self._connection = connection
        self._now = to_micros(now)
        self._allowances = allowances
        self.sequence = sequence
        self.vectors = vectors
        self.text = FullTextView(connection)

    def state(self, namespaces: Sequence[str]) -> State:
        """As `Reading.state`: two look-ups, the second by the index on expiry."""
        marks = rows.places(namespaces)
        pairs = self._connection.execute(
            "SELECT n.id, n.name, s.sequence, j.hash FROM namespaces n JOIN namespace_seq s ON s.namespace_id = n.id"
            f" LEFT JOIN journal j ON j.sequence = s.sequence WHERE n.name IN ({marks}) ORDER BY n.name",
            tuple(namespaces),
        ).fetchall()
        # One look-up a namespace: only so is each answered by the first entry of the index.
        ends = [
            self._connection.execute(
                "SELECT min(expires_at) FROM items WHERE namespace_id = ? AND expires_at > ?", (pair[0], self._now)
            ).fetchone()[0]
            for pair in pairs
        ]
        store, repaired, encoder = self._connection.execute(
            "SELECT (SELECT value FROM meta WHERE key = 'store'), (SELECT value FROM meta WHERE key = 'repaired'),"
            " (SELECT id FROM encoders WHERE state = 'active')"
        ).fetchone()
        soonest = min((end for end in ends if end is not None), default=None)
        # The chain tells two pasts of one store apart: a backup that was put back reaches the same numbers again.
        past = hashlib.sha256(b"".join(pair[3] or b"" for pair in pairs)).hexdigest()[:16]
        return State(
            f"{store}/{encoder}/{repaired}:{past}",
            tuple((pair[1], pair[2]) for pair in pairs),
            from_micros(self._now),
            maybe(soonest),
        )

    def among(self, where: Filter) -> Among:
        """As `Reading.among`. Namespaces that do not exist yet select nothing."""
        namespaces = rows.namespace_ids(self._connection, where.namespaces)
        if not where.narrows():
            return Among(namespaces, self._now)
        sql, values = _conditions(where, namespaces)
        (found,) = rows.numbers(self._connection.execute(sql, values))
        return Among(namespaces, self._now, np.sort(found))

    def same_text(self, draft: Draft, origin: Origin = "agent") -> bool:
        """As `Reading.same_text`."""
        found = rows.namespace_ids(self._connection, (draft.namespace,))
        if not found:
            return False
        return heads.place(self._connection, found[0], draft, origin, self._now).joins is not None

    def require_room(self, draft: Draft, caller: Caller) -> None:
        """As `Reading.require_room`."""
        if self._allowances is not None:
            foresee(self._connection, self._allowances, caller, draft.namespace, size_of(draft), self._now)

    def by_row(self, wanted: Sequence[int]) -> dict[int, Note]:
        """As `Reading.by_row`."""
        return rows.notes_by_row(self._connection, wanted, self._now)

    def span(self, row: int, passage: int) -> Span:
        """As `Reading.span`."""
        found = self._connection.execute(
            "SELECT start, stop FROM passages WHERE item_id = ? AND n = ?"
            " AND layout = (SELECT layout FROM encoders WHERE state = 'active' LIMIT 1)",
            (row, passage),
        ).fetchone()
        return Span(*found) if found else Span(0, 0)

    def by_id(self, ids: Sequence[str], namespaces: Sequence[str]) -> dict[str, tuple[int, Note]]:
        """As `Reading.by_id`."""
        found = rows.notes_by_id(self._connection, list(dict.fromkeys(ids)), namespaces, self._now)
        return {note.id: (row, note) for row, note in found.items()}

    def purged(self, ids: Sequence[str], namespaces: Sequence[str]) -> frozenset[str]:
        """As `Reading.purged`."""
        return rows.purged_ids(self._connection, ids, namespaces)

    def history(self, note: Note) -> tuple[Note, ...]:
        """As `Reading.history`."""
        if note.key is None:
            return (note,)
        found = self._connection.execute(
            "SELECT i.id FROM items i JOIN namespaces n ON n.id = i.namespace_id"
            " WHERE n.name = ? AND i.type = ? AND i.key = ? AND i.purged_at IS NULL ORDER BY i.version",
            (note.namespace, note.type, note.key),
        ).fetchall()
        notes = rows.notes_by_row(self._connection, [row[0] for row in found], self._now)
        return tuple(notes[row[0]] for row in found)

    def preview(self, selection: Selection, origin: Origin, now: datetime) -> Forgotten:
        """What forgetting `selection` by a caller of this origin would do at `now`."""
        return forgetting.preview(self._connection, selection, origin, to_micros(now))

    def changes(self, topic: Topic, caller: Caller, most: int) -> Changes:
        """As `Reading.changes`."""
        since = maybe_micros(topic.since)
        return reads.changes(
            self._connection,
            topic.namespaces,
            caller,
            topic.agents,
            since,
            self._now,
            most=most,
            unread=topic.unread,
        )

    def page(self, wanted: Listing) -> Page:
        """As `Reading.page`."""
        return listing.page(self._connection, wanted, self._now, self.sequence)

    def names(self, kind: Named, beginning: str, namespaces: Sequence[str], most: int) -> tuple[tuple[str, ...], int]:
        """As `Reading.names`."""
        return listing.names(self._connection, kind, beginning, namespaces, self._now, most)

    def counts(self, namespaces: Sequence[str]) -> dict[str, Any]:
        """As `Reading.counts`."""
        return count(self._connection, rows.namespace_ids(self._connection, namespaces), self._now)


def _conditions(where: Filter, namespaces: Sequence[int]) -> tuple[str, list[Any]]:
    sql = [
        f"SELECT group_concat(i.id, ' ') FROM items i WHERE i.namespace_id IN ({rows.places(namespaces)})",
        f"i.superseded_by IS NULL AND i.forgotten_at IS NULL AND {rows.FOUND}",
    ]
    values: list[Any] = list(namespaces)
    for tag in where.tags:
        # What few rows have is listed once; what all may have, such as an agent, is looked up row by row.
        sql.append("i.id IN (SELECT item_id FROM item_tags WHERE tag = ?)")
        values.append(tag)
    if where.agents:
        sql.append(
            "EXISTS (SELECT 1 FROM savers s JOIN agents a ON a.id = s.agent_id WHERE s.item_id = i.id"
            f" AND a.name IN ({rows.places(where.agents)}))"
        )
        values += where.agents
    if where.kinds:
        sql.append(f"i.kind IN ({rows.places(where.kinds)})")
        values += where.kinds
    for key, value in sorted(where.metadata.items()):
        sql.append("i.id IN (SELECT item_id FROM item_metadata WHERE key = ? AND value = ?)")
        values += (key, rows.digest(value))
    if where.since is not None:
        sql.append("i.effective_at >= ?")
        values.append(to_micros(where.since))
    if where.until is not None:
        sql.append("i.effective_at < ?")
        values.append(to_micros(where.until))
    return " AND ".join(sql), values
