from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from datetime import datetime

from agora.model.allowance import Allowances
from agora.model.caller import Caller
from agora.model.deadline import Deadline
from agora.model.fact import Fact, FactDraft, Remembered
from agora.model.instants import maybe_micros, to_micros
from agora.ports.clock import Clock
from agora.ports.records import Embedded
from agora.stores.sqlite import fulltext, journal
from agora.stores.sqlite.connection import Database
from agora.stores.sqlite.facts import rows, slots
from agora.stores.sqlite.facts.remembering import Remember, place
from agora.stores.sqlite.migrations import check_version
from agora.stores.sqlite.rows import namespace_ids
from agora.stores.sqlite.rows import places as marks
from agora.text.facts import rendered
from agora.text.ids import new_id


class SqliteFacts:
    """Implements `agora.ports.facts.Facts`."""

    def __init__(
        self,
        database: Database,
        clock: Clock,
        require_profile: Callable[[sqlite3.Connection], None],
        flush: Callable[[], None],
        allowances: Allowances | None,
    ) -> None:
        """`require_profile` raises if the store is another encoder's; `flush` writes what sessions have read."""
        self._database = database
        self._clock = clock
        self._require_profile = require_profile
        self._flush = flush
        self._allowances = allowances

    @contextmanager
    def read(self, deadline: Deadline) -> Iterator[SqliteFactReading]:
        """As `Facts.read`."""
        with self._database.read(deadline) as connection:
            connection.execute("BEGIN")
            check_version(connection)
            yield SqliteFactReading(connection, to_micros(self._clock.now()))

    def remember(
        self, draft: FactDraft, caller: Caller, embedded: Embedded | None, now: datetime, deadline: Deadline
    ) -> Remembered:
        """As `Facts.remember`."""
        micros, content = to_micros(now), rendered(draft)
        job = Remember(
            draft=draft,
            caller=caller,
            public_id=new_id("f", micros // 1000),
            now=micros,
            content=content,
            text=fulltext.prepare(None, content, embedded.spans) if embedded else (),
            embedded=embedded,
            allowances=self._allowances,
        )

        def run(connection: sqlite3.Connection) -> Remembered:
            self._require_profile(connection)
            return job(connection)

        self._flush()
        return self._database.write(run, deadline)


class SqliteFactReading:
    """Implements `agora.ports.facts.FactReading`."""

    def __init__(self, connection: sqlite3.Connection, now: int) -> None:
        """A transaction that has begun."""
        self._connection = connection
        self._now = now
        self.sequence = journal.head(connection)

    def of(
        self,
        namespaces: Sequence[str],
        subject: str | None,
        key: str | None,
        most: int,
        since: datetime | None = None,
    ) -> tuple[tuple[Fact, ...], int]:
        """As `FactReading.of`."""
        inside = namespace_ids(self._connection, namespaces)
        at = maybe_micros(since)
        wanted, left = slots.matching(self._connection, inside, subject, key, most, at)
        return rows.of_slots(self._connection, wanted, slots.ALWAYS if at is None else at), left

    def repeats(self, draft: FactDraft, caller: Caller) -> bool:
        """As `FactReading.repeats`."""
        inside = namespace_ids(self._connection, (draft.namespace,))
        found = place(self._connection, inside[0] if inside else None, draft, caller, self._now)
        return found.joins is not None

    def subjects(self, namespaces: Sequence[str], beginning: str, most: int) -> tuple[tuple[str, int], ...]:
        """As `FactReading.subjects`."""
        inside = namespace_ids(self._connection, namespaces)
        escaped = beginning.replace("\\", "\\\\").replace("%", "\\%").replace("_", "\\_")
        found = self._connection.execute(
            "SELECT l.shown_subject, count(DISTINCT l.id) FROM fact_slots l JOIN facts f ON f.slot_id = l.id"
            " AND f.valid_from <= ? AND f.replaced_at > ?"
            " JOIN items i ON i.id = f.item_id AND i.superseded_by IS NULL AND i.forgotten_at IS NULL"
            " AND (i.expires_at IS NULL OR i.expires_at > ?)"
            f" WHERE l.namespace_id IN ({marks(inside)}) AND l.shown_subject LIKE ? ESCAPE '\\'"
            " GROUP BY l.subject ORDER BY l.subject LIMIT ?",
            (self._now, self._now, self._now, *inside, escaped + "%", most),
        )
        return tuple((name, count) for name, count in found)
