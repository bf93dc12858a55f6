from __future__ import annotations

import contextlib
import json
import sqlite3
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict
from datetime import datetime
from pathlib import Path
from typing import Any, Literal

from agora.errors import AgoraError, EmbeddingMismatch
from agora.model.caller import Caller
from agora.model.crossref import Read
from agora.model.deadline import Deadline
from agora.model.note import Draft, Saved
from agora.model.profile import Fingerprint
from agora.model.selection import Forgotten, Restored, Selection
from agora.ports.clock import Clock
from agora.ports.records import Embedded
from agora.ports.vector_index import Progress, VectorIndex
from agora.stores.sqlite import forgetting, fulltext, journal
from agora.stores.sqlite.connection import Database
from agora.stores.sqlite.instants import to_micros
from agora.stores.sqlite.migrations import LATEST, is_current, migrate
from agora.stores.sqlite.reading import SqliteReading
from agora.stores.sqlite.reads import ReadLog
from agora.stores.sqlite.saving import Save
from agora.stores.sqlite.source import SqliteSource
from agora.stores.sqlite.transfer import SqliteTransfer
from agora.stores.sqlite.vectors import ExactIndex
from agora.text.ids import new_id

_ACTIVE = "WHERE state = 'active'"

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
    ) -> None:
        """Open the store, making or migrating it as needed. `index` stands in for the store's own vector index.

        Raises: StoreUnavailable, StoreCorrupt, StoreVersion.
        """
        self._clock = clock
        self._fingerprint = fingerprint
        self._digest = fingerprint.digest()
        self._encoder_id: int | None = None
        self._database = Database(
            path, self._ready, self._prepare, synchronous=synchronous, busy_timeout=busy_timeout, readers=readers
        )
        self._reads = ReadLog(self._database)
        self.index: VectorIndex = index or ExactIndex(fingerprint.dimension)

    @property
    def mismatch(self) -> EmbeddingMismatch | None:
        """Why vectors cannot be used: the store was built with another profile. None if they can."""
        return None if self._encoder_id is not None else self._other_profile()

    @contextlib.contextmanager
    def read(self, deadline: Deadline) -> Iterator[SqliteReading]:
        """As `Records.read`."""
        with self.source(deadline) as source, self.index.follow(source, deadline) as vectors:
            yield SqliteReading(source.connection, source.head, vectors, self._clock.now())

    @contextlib.contextmanager
    def source(self, deadline: Deadline) -> Iterator[SqliteSource]:
        """A transaction yet to begin, for an index to follow.

        Raises: StoreUnavailable, StoreCorrupt.
        """
        with self._database.read(deadline) as connection:
            yield SqliteSource(connection, self._digest, self._fingerprint.dimension, self._other_profile)

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
        )

        def run(connection: sqlite3.Connection) -> Saved:
            # Asked of the file and not remembered: it may have been replaced since.
            if self._find_encoder(connection) is None:
                raise self._other_profile()
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
                return reading.preview(selection, now)
        return self._database.write(lambda c: forgetting.forget(c, selection, caller, micros), deadline)

    def restore(self, ids: Sequence[str], caller: Caller, now: datetime, deadline: Deadline) -> Restored:
        """As `Records.restore`."""
        micros, visible = to_micros(now), caller.scope.visible()
        return self._database.write(lambda c: forgetting.restore(c, ids, visible, caller, micros), deadline)

    def log_read(self, read: Read, failed: Callable[[AgoraError], None]) -> None:
        """As `Records.log_read`."""
        self._reads.add(read, failed)

    def settle_reads(self, deadline: Deadline) -> None:
        """As `Records.settle_reads`."""
        self._reads.settle(deadline)

    def details(self) -> dict[str, Any]:
        """As `Records.details`."""
        path = self._database.path
        with self._database.read(Deadline(5)) as connection:
            connection.execute("BEGIN")
            head = journal.head(connection)
            mode = connection.execute("PRAGMA journal_mode").fetchone()[0]
            synchronous = connection.execute("PRAGMA synchronous").fetchone()[0]
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
            "profile": self._digest[:12],
            "index": self.index.details(),
        }

    def transfer(self) -> SqliteTransfer:
        """The rows of this store as they are, out and in."""
        return SqliteTransfer(self._database, self._fingerprint, self._other_profile)

    def close(self) -> None:
        """As `Records.close`."""
        self._reads.flush()
        self.index.close()
        self._database.close()

    def _other_profile(self) -> EmbeddingMismatch:
        return EmbeddingMismatch(
            f"the store {self._database.path} was built with another embedding model than {self._fingerprint.name!r}",
            hint="Set embedding.model back. `agora reembed` will migrate a store to another model; it comes with a"
            " later release. Lexical queries work meanwhile.",
        )

    def _ready(self, connection: sqlite3.Connection) -> bool:
        """Whether the schema is ours and the profile is fixed; finds our encoder in it."""
        if not is_current(connection) or not connection.execute(f"SELECT 1 FROM encoders {_ACTIVE}").fetchone():
            return False
        self._encoder_id = self._find_encoder(connection)
        return True

    def _prepare(self, connection: sqlite3.Connection) -> None:
        """Bring the schema up to date and find our encoder in the profile, which a store's first opener fixes."""
        migrate(connection)
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
        self._encoder_id = self._find_encoder(connection)

    def _find_encoder(self, connection: sqlite3.Connection) -> int | None:
        found = connection.execute(f"SELECT id FROM encoders {_ACTIVE} AND digest = ?", (self._digest,)).fetchone()
        return None if found is None else int(found[0])
