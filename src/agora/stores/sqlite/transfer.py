from __future__ import annotations

import contextlib
import sqlite3
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import datetime
from typing import Any

from agora.errors import EmbeddingMismatch
from agora.model.caller import Caller
from agora.model.deadline import Deadline
from agora.model.instants import to_micros
from agora.model.profile import Fingerprint
from agora.ports.transfer import Arrival, Extract, Outcome
from agora.stores.sqlite import fulltext
from agora.stores.sqlite.arriving import Arriving
from agora.stores.sqlite.connection import Database
from agora.stores.sqlite.migrations import check_version, migrate
from agora.stores.sqlite.outgoing import SqliteOutgoing
from agora.stores.sqlite.placing import decide
from agora.stores.sqlite.rows import namespace_ids
from agora.stores.sqlite.standing import by_id
from agora.text.identity import content_hash


class SqliteTransfer:
    """The rows of one store as they are, out and in; implements `agora.ports.transfer.Transfer`."""

    def __init__(self, database: Database, fingerprint: Fingerprint, mismatch: Callable[[], EmbeddingMismatch]) -> None:
        """`mismatch` makes the error for a store that another model than `fingerprint` built."""
        self._database = database
        self._fingerprint = fingerprint
        self._mismatch = mismatch

    def namespaces(self, deadline: Deadline) -> tuple[str, ...]:
        """As `Transfer.namespaces`."""
        with self._reading(deadline) as connection:
            return tuple(name for (name,) in connection.execute("SELECT name FROM namespaces ORDER BY name"))

    @contextlib.contextmanager
    def outgoing(self, extract: Extract, now: datetime, deadline: Deadline) -> Iterator[SqliteOutgoing]:
        """As `Transfer.outgoing`."""
        with self._reading(deadline) as connection:
            yield SqliteOutgoing(connection, extract, to_micros(now))

    def settled(self, batch: Sequence[Arrival], now: datetime, deadline: Deadline) -> frozenset[str]:
        """As `Incoming.settled`."""
        with self._reading(deadline) as connection:
            return frozenset(each.version.id for each in batch if _settled(connection, each, to_micros(now)))

    def add(
        self, batch: Sequence[Arrival], caller: Caller, source: Mapping[str, Any], now: datetime, deadline: Deadline
    ) -> tuple[Outcome, ...]:
        """As `Incoming.add`."""
        if any(each.embedded and each.embedded.fingerprint != self._fingerprint for each in batch):
            raise self._mismatch()
        # Of two texts that a file has under one id, only the transaction knows which one comes in.
        times = Counter(each.version.id for each in batch)
        prepared = {
            each.version.id: terms for each in batch if times[each.version.id] == 1 and (terms := _prepared(each))
        }

        def run(connection: sqlite3.Connection) -> tuple[Outcome, ...]:
            # Asked of the file and not remembered: it may have been replaced since.
            if not connection.execute(
                "SELECT 1 FROM encoders WHERE state = 'active' AND digest = ?", (self._fingerprint.digest(),)
            ).fetchone():
                raise self._mismatch()
            arriving = Arriving(connection, caller, source, to_micros(now), prepared)
            outcomes = tuple(map(arriving.add, batch))
            arriving.finish()
            return outcomes

        return self._database.write(run, deadline)

    @contextlib.contextmanager
    def rehearsal(self, deadline: Deadline) -> Iterator[_Rehearsal]:
        """As `Transfer.rehearsal`."""
        with contextlib.closing(sqlite3.connect(":memory:", isolation_level=None, check_same_thread=False)) as copy:
            migrate(copy)
            with self._reading(deadline) as connection:
                for table in ("namespaces", "items", "aliases", "fact_slots", "facts", "conversations"):
                    _copy(connection, copy, table)
                # Origins decide whose word counts: one saver of each is enough.
                copy.executemany(
                    "INSERT INTO savers VALUES (?, ?, 0, 0, '', ?, 0, 0, 1, '{}')",
                    connection.execute("SELECT item_id, min(n), origin FROM savers GROUP BY item_id, origin"),
                )
                # Titles tell two texts of one id apart; the texts themselves are known by their hashes.
                copy.executemany(
                    "INSERT INTO texts VALUES (?, ?, '', '{}')", connection.execute("SELECT item_id, title FROM texts")
                )
            yield _Rehearsal(copy)

    @contextlib.contextmanager
    def _reading(self, deadline: Deadline) -> Iterator[sqlite3.Connection]:
        with self._database.read(deadline) as connection:
            connection.execute("BEGIN")
            check_version(connection)
            yield connection


class _Rehearsal:
    """A copy in memory of all that decides what becomes of a version; implements `Incoming`."""

    def __init__(self, connection: sqlite3.Connection) -> None:
        self._connection = connection

    def settled(self, batch: Sequence[Arrival], now: datetime, deadline: Deadline) -> frozenset[str]:
        """All of them: nothing here needs vectors."""
        del now, deadline
        return frozenset(each.version.id for each in batch)

    def add(
        self, batch: Sequence[Arrival], caller: Caller, source: Mapping[str, Any], now: datetime, deadline: Deadline
    ) -> tuple[Outcome, ...]:
        """As `Incoming.add`."""
        deadline.check()
        arriving = Arriving(self._connection, caller, source, to_micros(now), rehearsal=True)
        return tuple(map(arriving.add, batch))


def _copy(source: sqlite3.Connection, target: sqlite3.Connection, table: str) -> None:
    columns = [column[1] for column in source.execute(f"PRAGMA table_info({table})")]
    named, marks = ", ".join(columns), ", ".join("?" * len(columns))
    target.executemany(
        f"INSERT INTO {table} ({named}) VALUES ({marks})", source.execute(f"SELECT {named} FROM {table}")
    )


def _settled(connection: sqlite3.Connection, arrival: Arrival, now: int) -> bool:
    version = arrival.version
    if version.content is None or version.type == "summary":
        return True
    found = namespace_ids(connection, (version.namespace,))
    if not found:
        return by_id(connection, version.id) is not None
    return decide(connection, found[0], arrival, content_hash(version.content), now).what != "add"


def _prepared(arrival: Arrival) -> tuple[fulltext.Prepared, ...]:
    version, embedded = arrival.version, arrival.embedded
    past = version.superseded_by or version.superseded_at or version.forgotten_at
    if past or embedded is None or version.content is None or version.type == "message":
        return ()
    return fulltext.prepare(version.title, version.content, embedded.spans)
