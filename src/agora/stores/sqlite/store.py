from __future__ import annotations

import contextlib
import json
import sqlite3
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict
from datetime import datetime
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from agora.errors import AgoraError, DeadlineExceeded, EmbeddingMismatch, StoreUnavailable
from agora.model.allowance import Allowances
from agora.model.browse import Event
from agora.model.caller import Caller
from agora.model.crossref import Read
from agora.model.deadline import Deadline
from agora.model.instants import to_micros
from agora.model.note import Draft, Saved
from agora.model.profile import Fingerprint
from agora.model.selection import Forgotten, Pinned, Restored, Selection
from agora.ports.clock import Clock
from agora.ports.log import Log
from agora.ports.records import Embedded
from agora.ports.vector_index import Progress, VectorIndex
from agora.stores.sqlite import forgetting, fulltext, journal, listing, pinning
from agora.stores.sqlite.conditions import MARK, conditions
from agora.stores.sqlite.connection import Database
from agora.stores.sqlite.index.compacting import Writing
from agora.stores.sqlite.index.following import SegmentedIndex
from agora.stores.sqlite.migrations import LATEST, check_version, is_current, migrate
from agora.stores.sqlite.profile import difference
from agora.stores.sqlite.reading import SqliteReading
from agora.stores.sqlite.reads import ReadLog
from agora.stores.sqlite.repairing.record import record
from agora.stores.sqlite.saving import Save
from agora.stores.sqlite.source import SqliteSource
from agora.text.analysis import VERSION
from agora.text.ids import new_id

if TYPE_CHECKING:
    # A server that starts has no use for these; each is imported where it is made.
    from agora.stores.sqlite.conversations.keeper import SqliteConversations
    from agora.stores.sqlite.facts.store import SqliteFacts
    from agora.stores.sqlite.gateway.calls import SqliteCallLog
    from agora.stores.sqlite.gateway.kept import SqliteKeptResults
    from agora.stores.sqlite.gateway.pins import SqliteToolPins
    from agora.stores.sqlite.gateway.vectors import SqliteToolVectors
    from agora.stores.sqlite.purging import SqlitePurging
    from agora.stores.sqlite.reembedding import SqliteReembedding
    from agora.stores.sqlite.transfer import SqliteTransfer

INDEX_FOLDER = "index"
"""Name of the folder of the vector index, beside the store's file."""

_ACTIVE = "WHERE state = 'active'"

_LOOK = 10.0
"""Seconds that a look at the profile may wait for a connection."""

_SMALL = 5_000
"""Passages up to which the full text is built anew when the store is opened; that takes a second or two."""

_PATIENCE = 1.0
"""Seconds that opening waits for another writer to do so."""

_MAINTENANCE = 3600.0
"""Seconds that a transaction of the index's own upkeep may wait for a connection."""


class SqliteStore:
    """Notes, journal and indexes in one SQLite file; implements `agora.ports.records.Records`."""

    def __init__(  # noqa: PLR0913 - what a store is made of
        self,
        path: Path,
        fingerprint: Fingerprint,
        clock: Clock,
        *,
        synchronous: Literal["normal", "full"] = "normal",
        busy_timeout: float = 10.0,
        readers: int = 4,
        index: VectorIndex | None = None,
        log: Log | None = None,
        memory_mb: int | None = None,
        compact_dead: float = 0.2,
        allowances: Allowances | None = None,
    ) -> None:
        """Open the store, making or migrating it as needed. `index` stands in for the store's own vector index.

        The store's own lies in a folder beside it; `memory_mb` and `compact_dead` are as `SegmentedIndex` has them.
        `allowances`: what agents and namespaces may save; None for as much as they will.

        Raises: StoreUnavailable, StoreCorrupt, StoreVersion.
        """
        self._clock = clock
        self._allowances = allowances
        self._fingerprint = fingerprint
        self._digest = fingerprint.digest()
        self._database = Database(
            path,
            self._ready,
            self._prepare,
            synchronous=synchronous,
            busy_timeout=busy_timeout,
            readers=readers,
            log=log,
        )
        self._reads = ReadLog(self._database)
        self._bring_words_up_to_date(log)
        self.index: VectorIndex = index or SegmentedIndex(
            path.parent / INDEX_FOLDER,
            fingerprint.dimension,
            Writing(self._database.write, clock),
            memory_mb=memory_mb,
            compact_dead=compact_dead,
        )

    @property
    def mismatch(self) -> EmbeddingMismatch | None:
        """Why vectors cannot be used: the store was built with another profile. None if they can.

        Raises: StoreUnavailable, StoreCorrupt.
        """
        # Asked of the file and not remembered: another process may move the store to another encoder at any time.
        with self._database.read(Deadline(_LOOK)) as connection:
            return None if self._find_encoder(connection) is not None else self._other_profile(connection)

    @contextlib.contextmanager
    def read(self, deadline: Deadline) -> Iterator[SqliteReading]:
        """As `Records.read`."""
        with self.source(deadline) as source, self.index.follow(source, deadline) as vectors:
            yield SqliteReading(source.connection, source.head, vectors, self._clock.now(), self._allowances)

    @contextlib.contextmanager
    def source(self, deadline: Deadline) -> Iterator[SqliteSource]:
        """A transaction yet to begin, for an index to follow.

        Raises: StoreUnavailable, StoreCorrupt.
        """
        with self._database.read(deadline) as connection:
            other = partial(self._other_profile, connection)
            yield SqliteSource(connection, self._digest, self._fingerprint.dimension, other)

    def compact(self, *, force: bool) -> dict[str, Any] | None:
        """What the index's `compact` did; queries and saves go on meanwhile."""
        return self.index.compact(self._maintaining, force=force)

    def reindex(self, progress: Progress | None = None) -> dict[str, Any]:
        """Build the vector index anew from the rows; what its `rebuild` tells."""
        return self.index.rebuild(self._maintaining, progress)

    def _maintaining(self) -> contextlib.AbstractContextManager[SqliteSource]:
        return self.source(Deadline(_MAINTENANCE))

    def save(self, draft: Draft, caller: Caller, embedded: Embedded | None, now: datetime, deadline: Deadline) -> Saved:
        """As `Records.save`."""
        if embedded and embedded.fingerprint != self._fingerprint:
            raise self._other_profile()
        micros = to_micros(now)
        job = Save(
            draft=draft,
            caller=caller,
            public_id=new_id("n", micros // 1000),
            now=micros,
            text=fulltext.prepare(draft.title, draft.content, embedded.spans) if embedded else (),
            embedded=embedded,
            allowances=self._allowances,
        )

        def run(connection: sqlite3.Connection) -> Saved:
            self._require_profile(connection)
            return job(connection)

        self._reads.flush()
        return self._database.write(run, deadline)

    def forget(
        self, selection: Selection, caller: Caller, now: datetime, deadline: Deadline, *, dry_run: bool
    ) -> Forgotten:
        """As `Records.forget`: one transaction, all or nothing."""
        micros = to_micros(now)
        if dry_run:
            with self.read(deadline) as reading:
                return reading.preview(selection, caller.origin, now)
        return self._database.write(lambda c: forgetting.forget(c, selection, caller, micros), deadline)

    def restore(self, ids: Sequence[str], caller: Caller, now: datetime, deadline: Deadline) -> Restored:
        """As `Records.restore`."""
        micros, visible = to_micros(now), caller.scope.visible()
        return self._database.write(lambda c: forgetting.restore(c, ids, visible, caller, micros), deadline)

    def pin(self, ids: Sequence[str], caller: Caller, now: datetime, deadline: Deadline, *, pinned: bool) -> Pinned:
        """As `Records.pin`."""
        micros = to_micros(now)
        return self._database.write(lambda c: pinning.pin(c, ids, caller, micros, pinned=pinned), deadline)

    def log_read(self, read: Read, failed: Callable[[AgoraError], None]) -> None:
        """As `Records.log_read`; a store that can only be read logs none."""
        if self._database.read_only is None:
            self._reads.add(read, failed)

    def settle_reads(self, deadline: Deadline) -> None:
        """As `Records.settle_reads`."""
        self._reads.settle(deadline)

    def events(self, since: int | None, most: int, deadline: Deadline) -> tuple[int, tuple[Event, ...]]:
        """As `Records.events`."""
        with self._database.read(deadline) as connection:
            connection.execute("BEGIN")
            check_version(connection)
            head = journal.head(connection)
            if since is None or since == head:
                return head, ()
            return head, listing.events(connection, since, most)

    def details(self) -> dict[str, Any]:
        """As `Records.details`."""
        path = self._database.path
        if self._database.read_only is not None:
            # Whether it still is shows when something is written.
            with contextlib.suppress(AgoraError):
                self._database.write(lambda _: None, Deadline(1))
        with self._database.read(Deadline(5)) as connection:
            connection.execute("BEGIN")
            head = journal.head(connection)
            unfinished = connection.execute("SELECT 1 FROM meta WHERE key = ?", (MARK,)).fetchone() is not None
            told = conditions(connection, path, self._database.read_only)
            mode = connection.execute("PRAGMA journal_mode").fetchone()[0]
            synchronous = connection.execute("PRAGMA synchronous").fetchone()[0]
        # What is wrong with the index's files shows when it is brought to the present.
        with contextlib.suppress(AgoraError), self.read(Deadline(5)):
            pass
        sizes = {}
        for name, file in (("database", path), ("wal", path.with_name(path.name + "-wal"))):
            # The log comes and goes with the last connection.
            with contextlib.suppress(FileNotFoundError):
                sizes[name] = file.stat().st_size
        return {
            "path": str(path),
            "schema": LATEST,
            "sequence": head,
            "journal_mode": mode,
            "synchronous": {1: "normal", 2: "full"}.get(synchronous, str(synchronous)),
            "bytes": sizes,
            "fair": self._database.fair,
            "profile": self._digest[:12],
            "index": self.index.details(),
            "purge_unfinished": unfinished,
            "conditions": told,
        }

    def transfer(self) -> SqliteTransfer:
        """The rows of this store as they are, out and in."""
        from agora.stores.sqlite.transfer import SqliteTransfer  # noqa: PLC0415 - see the top

        return SqliteTransfer(self._database, self._fingerprint, self._other_profile)

    def purging(self) -> SqlitePurging:
        """Takes the bytes of forgotten rows out of this store."""
        from agora.stores.sqlite.purging import SqlitePurging  # noqa: PLC0415 - see the top

        return SqlitePurging(self._database, self.index, self._maintaining)

    def reembedding(self) -> SqliteReembedding:
        """What moves this store to the encoder that it was opened with, whichever it was built with."""
        from agora.stores.sqlite.reembedding import SqliteReembedding  # noqa: PLC0415 - see the top

        return SqliteReembedding(self._database, self._fingerprint)

    def facts(self) -> SqliteFacts:
        """What is stated of subjects."""
        from agora.stores.sqlite.facts.store import SqliteFacts  # noqa: PLC0415 - see the top

        return SqliteFacts(self._database, self._clock, self._require_profile, self._reads.flush, self._allowances)

    def tool_pins(self) -> SqliteToolPins:
        """What the tools of other servers were when they were approved."""
        from agora.stores.sqlite.gateway.pins import SqliteToolPins  # noqa: PLC0415 - see the top

        return SqliteToolPins(self._database)

    def call_log(self) -> SqliteCallLog:
        """The record of calls of other servers' tools."""
        from agora.stores.sqlite.gateway.calls import SqliteCallLog  # noqa: PLC0415 - see the top

        return SqliteCallLog(self._database)

    def kept_results(self) -> SqliteKeptResults:
        """Long results of other servers' tools."""
        from agora.stores.sqlite.gateway.kept import SqliteKeptResults  # noqa: PLC0415 - see the top

        return SqliteKeptResults(self._database)

    def conversations(self) -> SqliteConversations:
        """Messages in their order, and their summaries."""
        from agora.stores.sqlite.conversations.keeper import SqliteConversations  # noqa: PLC0415 - see the top

        return SqliteConversations(self._database, self._fingerprint, self._other_profile, self._allowances)

    def tool_vectors(self) -> SqliteToolVectors:
        """Vectors of the texts of other servers' tools, by the encoder that the store was opened with."""
        from agora.stores.sqlite.gateway.vectors import SqliteToolVectors  # noqa: PLC0415 - see the top

        return SqliteToolVectors(self._database, self._fingerprint)

    def close(self) -> None:
        """As `Records.close`."""
        self._reads.flush()
        self.index.close()
        self._database.close()

    def _bring_words_up_to_date(self, log: Log | None) -> None:
        """Build the full text of a small store anew if an older release built it; a large one waits for a repair."""
        if self._database.read_only is not None:
            return
        with self._database.read(Deadline(_LOOK)) as connection:
            built = fulltext.built_by(connection)
            size = connection.execute("SELECT sum(passages) FROM namespace_stats").fetchone()[0] or 0
        if (built is not None and built >= VERSION) or size > _SMALL:
            return

        def work(connection: sqlite3.Connection) -> None:
            fulltext.rebuild(connection)
            record(connection, {"done": ["full text built anew"]}, to_micros(self._clock.now()), vectors=False)

        # Somebody else may be writing for long, or have done it meanwhile; then status and doctor say so.
        with contextlib.suppress(StoreUnavailable, DeadlineExceeded):
            self._database.write(work, Deadline(_PATIENCE))
            if log is not None:
                log.info("full text built anew", analysis=VERSION, passages=size)

    def _other_profile(self, connection: sqlite3.Connection | None = None) -> EmbeddingMismatch:
        if connection is not None:
            return difference(connection, self._database.path, self._fingerprint)
        with self._database.read(Deadline(_LOOK)) as opened:
            return difference(opened, self._database.path, self._fingerprint)

    def _ready(self, connection: sqlite3.Connection) -> bool:
        """Whether the schema is ours and the profile is fixed."""
        return is_current(connection) and bool(
            connection.execute(f"SELECT 1 FROM meta, encoders {_ACTIVE} AND key = 'store'").fetchone()
        )

    def _prepare(self, connection: sqlite3.Connection) -> None:
        """Bring the schema up to date and fix the profile, which a store's first opener does."""
        migrate(connection)
        if not connection.execute("SELECT 1 FROM items LIMIT 1").fetchone():
            fulltext.set_built(connection)
        connection.execute(
            "INSERT INTO meta VALUES ('store', ?) ON CONFLICT DO NOTHING",
            (new_id("s", to_micros(self._clock.now()) // 1000),),
        )
        if not connection.execute(f"SELECT 1 FROM encoders {_ACTIVE}").fetchone():
            connection.execute(
                "INSERT INTO encoders (digest, name, dimension, fingerprint, layout, state)"
                " VALUES (?, ?, ?, ?, 1, 'active')",
                (
                    self._digest,
                    self._fingerprint.name,
                    self._fingerprint.dimension,
                    json.dumps(asdict(self._fingerprint), sort_keys=True),
                ),
            )

    def _require_profile(self, connection: sqlite3.Connection) -> None:
        # Asked of the file and not remembered: it may have been replaced since.
        if self._find_encoder(connection) is None:
            raise self._other_profile(connection)

    def _find_encoder(self, connection: sqlite3.Connection) -> int | None:
        found = connection.execute(f"SELECT id FROM encoders {_ACTIVE} AND digest = ?", (self._digest,)).fetchone()
        return None if found is None else int(found[0])
