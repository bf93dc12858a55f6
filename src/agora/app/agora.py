"""Settings in, a running Agora out."""

from __future__ import annotations

import contextlib
import os
import sys
import threading
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from agora import __version__
from agora.app.indexing import unused_folders
from agora.app.opening import STORE_FILE, open_store
from agora.cache.disk import Disk
from agora.cache.embeddings import CachedEncoder
from agora.cache.results import TwoLevelCache
from agora.config.load import Loaded
from agora.config.logs import get_logger
from agora.config.settings import Settings
from agora.embedding.choose import choose_encoder, is_settled, settle
from agora.errors import AgoraError
from agora.maintenance.scheduler import Scheduler, Task
from agora.memory.browsing import Browsing
from agora.memory.notes import Notes
from agora.memory.watching import Watch
from agora.model.caller import Origin
from agora.model.deadline import Deadline
from agora.ports.encoder import Encoder
from agora.ports.transfer import Transfer
from agora.protocol.context import Connection
from agora.protocol.lifecycle import Lifecycle
from agora.protocol.prompts.filling import Filling
from agora.protocol.prompts.library import Library
from agora.protocol.prompts.prompts import Prompts
from agora.protocol.resources.resources import Resources
from agora.protocol.services import Services
from agora.protocol.tools.handlers import Limits, Tools
from agora.protocol.tools.late import LateTools
from agora.protocol.tools.table import offered
from agora.stores.sqlite.profile import profile_of
from agora.stores.sqlite.store import SqliteStore

if TYPE_CHECKING:
    from agora.exchange.exporting import Exporter
    from agora.exchange.importing import Importer
    from agora.maintenance.purge import Purger

CACHE_FILE = "cache.db"
"""Name of the cache in the data folder; it may be deleted at any time."""

FINISH_SECONDS = 300.0
"""Seconds between two looks for a purge that was interrupted."""


_LOOK = 3.0
"""Seconds that a look at the store may take."""


class SystemClock:
    """The machine's clock; implements `agora.ports.clock.Clock`."""

    def now(self) -> datetime:
        """The present instant, aware, UTC."""
        return datetime.now(UTC)


@dataclass(frozen=True, slots=True)
class _Opened:
    """What there is once the length of the vectors is known."""

    store: SqliteStore
    cache: TwoLevelCache | None
    notes: Notes
    tools: Tools


class Agora:
    """One process's Agora on a data folder: the store is open, the model is verified but not yet loaded.

    A new store whose vectors come from a server has to wait for the first answer, which says how long they are;
    it is opened by the first call after that.
    """

    def __init__(self, loaded: Loaded) -> None:
        """Open the store and verify the model.

        Raises: ModelMissing, ModelTampered, EmbeddingError, ConfigError, StoreUnavailable, StoreCorrupt, StoreVersion.
        """
        settings = loaded.settings
        self._loaded = loaded
        self.clock = SystemClock()
        self.log = get_logger("agora")
        built = partial(profile_of, settings.home / STORE_FILE)
        self.encoder: Encoder = choose_encoder(settings.embedding, self.log, built)
        self.encoder.verify()
        self._lock = threading.Lock()
        self._opened: _Opened | None = None
        self._scheduler: Scheduler | None = None
        self._watch: Watch | None = None
        self._purger: Purger | None = None
        self._limits = Limits(
            content_bytes=settings.limits.content_bytes,
            query_chars=settings.limits.query_chars,
            call_seconds=settings.limits.call_seconds,
        )
        self.tools: Tools
        if is_settled(self.encoder):
            self.tools = self._open(Deadline(settings.embedding.deadline)).tools
        else:
            self.tools = LateTools(lambda deadline: self._open(deadline).tools, self._limits, self._about)

    @property
    def settings(self) -> Settings:
        """The settings that it was made with."""
        return self._loaded.settings

    @property
    def store(self) -> SqliteStore:
        """The open store.

        Raises: EncoderUnavailable if it is still to be made and the encoder's server does not answer.
        """
        return self._open(Deadline(self._loaded.settings.embedding.deadline)).store

    @property
    def notes(self) -> Notes:
        """The notes in the store.

        Raises: as `store`.
        """
        return self._open(Deadline(self._loaded.settings.embedding.deadline)).notes

    def _open(self, deadline: Deadline) -> _Opened:
        """The store and what stands on it, opened at the first call that finds the encoder's dimension known."""
        settle(self.encoder, deadline.within(self._loaded.settings.embedding.deadline))
        with self._lock:
            if self._opened is None:
                self._opened = self._made()
            return self._opened

    def _made(self) -> _Opened:
        settings = self._loaded.settings
        store = open_store(settings, self.encoder.fingerprint, self.clock, self.log)
        cache, questions = self._caches()
        notes = Notes(
            store,
            self.encoder,
            self.clock,
            self.log,
            model_seconds=settings.embedding.deadline,
            cache=cache,
            questions=questions,
        )
        return _Opened(store, cache, notes, Tools(notes, self.clock, self._limits, self._about))

    def services(self) -> Services:
        """What a server offers its clients."""
        settings = self._loaded.settings

        def records(deadline: Deadline) -> SqliteStore:
            return self._open(deadline).store

        browsing = Browsing(records)
        folder = settings.prompts.folder or settings.home / "prompts"
        library = Library(folder, settings.prompts.language, self.log)
        prompts = Prompts(library, Filling(self.tools, browsing))
        self._watch = Watch(records, self.log, beside=prompts.changes())
        return Services(
            self.tools,
            offered(settings.tools.profile),
            Resources(self.tools, browsing, self.clock),
            prompts,
            self._watch,
        )

    def unready(self) -> list[dict[str, Any]]:
        """Why calls could not be answered now, one row a reason; blocking."""
        found = []
        if (state := self.encoder.state) != "ready":
            error = self.encoder.details().get("error")
            found.append({"code": "warming_up" if error is None else "model_failed", "message": error or state})
        try:
            store = self.store
            if (mismatch := store.mismatch) is not None:
                found.append(mismatch.details())
            store.events(None, 0, Deadline(_LOOK))
        except AgoraError as error:
            found.append(error.details())
        return found

    def start_maintenance(self) -> None:
        """Begin the work that a server does beside its calls: compaction, and purges that were interrupted."""
        seconds = self._loaded.settings.index.compact_seconds
        tasks = [Task("compact", seconds, self._compact), Task("purge", FINISH_SECONDS, self._finish_purge)]
        self._scheduler = Scheduler(tasks, self.log)
        self._scheduler.start()

    def _compact(self) -> dict[str, Any] | None:
        with self._lock:
            opened = self._opened
        return None if opened is None else opened.store.compact(force=False)

    def connection(
        self,
        *,
        origin: Origin = "agent",
        folder: Path | None = None,
        token: str = "",
        namespace: str | None = None,
        lifecycle: Lifecycle | None = None,
    ) -> Connection:
        """A new connection for a client that works in `folder`, or showed the token of that name.

        `namespace` is the token's; it goes before the setting. `lifecycle` is what agora_status shows of it.
        """
        settings = self._loaded.settings
        return Connection(
            at_ms=int(self.clock.now().timestamp() * 1000),
            origin=origin,
            folder=folder,
            namespace=namespace or settings.namespace.default,
            rule="the token's namespace" if namespace else "setting namespace.default",
            agent=settings.agent,
            token=token,
            lifecycle=lifecycle,
        )

    def _finish_purge(self) -> dict[str, Any] | None:
        with self._lock:
            opened = self._opened
        return None if opened is None else self.purger.finish_left()

    @property
    def purger(self) -> Purger:
        """Takes the bytes of forgotten notes out of store, index and cache."""
        from agora.app.purging import make_purger  # noqa: PLC0415 - a server that starts has no use for it

        settings = self._loaded.settings
        opened = self._open(Deadline(settings.embedding.deadline))
        file = settings.home / CACHE_FILE
        unused = unused_folders(settings.index, settings.home)
        with self._lock:
            # One for all: it remembers what it saw unfinished when it looked last.
            if self._purger is None:
                self._purger = make_purger(opened.store.purging(), opened.cache, file, self.clock, self.log, unused)
            return self._purger

    @property
    def transfer(self) -> Transfer:
        """The rows of the store as they are, for exports and imports."""
        return self.store.transfer()

    def exporter(self) -> Exporter:
        """Writes the store to a file."""
        from agora.exchange.exporting import Exporter  # noqa: PLC0415 - a server that starts has no use for it

        return Exporter(self.transfer, self.clock, self.log)

    def importer(self) -> Importer:
        """Takes files into the store."""
        from agora.exchange.importing import Importer  # noqa: PLC0415 - a server that starts has no use for it

        limit = self._loaded.settings.limits.content_bytes
        return Importer(self.transfer, self.encoder, self.clock, self.log, content_bytes=limit)

    def close(self) -> None:
        """Finish the accepted writes and let the files go."""
        if self._watch is not None:
            self._watch.close()
        if self._scheduler is not None:
            self._scheduler.close()
        with self._lock:
            opened = self._opened
        self.encoder.close()
        if opened is None:
            return
        opened.store.close()
        if opened.cache is not None:
            opened.cache.close()

    def _caches(self) -> tuple[TwoLevelCache | None, Encoder]:
        """The cache of answers and the encoder that remembers questions, or none and the plain one by setting."""
        settings = self._loaded.settings.cache
        if not settings.enabled:
            return None, self.encoder
        disk = None
        if settings.disk_entries:
            disk = Disk(self._loaded.settings.home / CACHE_FILE, self.log, entries=settings.disk_entries)
        results = TwoLevelCache(
            self.clock, disk, entries=settings.entries, seconds=settings.seconds, disk_seconds=settings.disk_seconds
        )
        questions = CachedEncoder(
            self.encoder, self.clock, disk, entries=settings.entries, disk_seconds=settings.disk_seconds
        )
        return results, questions

    def _about(self) -> dict[str, Any]:
        return {
            "version": __version__,
            "python": sys.version.split()[0],
            "pid": os.getpid(),
            "home": str(self._loaded.settings.home),
            "configuration": str(self._loaded.file) if self._loaded.file else None,
            "maintenance": None if self._scheduler is None else self._scheduler.details(),
        }


@contextlib.contextmanager
def opened(loaded: Loaded) -> Iterator[Agora]:
    """An `Agora` for the length of a block."""
    agora = Agora(loaded)
    try:
        yield agora
    finally:
        agora.close()
