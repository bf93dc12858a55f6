"""Settings in, a running Agora out."""

from __future__ import annotations

import contextlib
import os
import sys
import threading
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from agora import __version__
from agora.app.clock import SystemClock
from agora.app.files import CACHE_FILE
from agora.app.guarding import guard_of
from agora.app.tables import Reach, TablesInFile
from agora.config.load import Loaded
from agora.config.logs import get_logger
from agora.config.settings import Settings
from agora.errors import AgoraError, StoreUnavailable
from agora.maintenance.scheduler import Scheduler, Task
from agora.memory.browsing import Browsing
from agora.memory.watching import Watch
from agora.model.access import Door, Policy
from agora.model.caller import Origin
from agora.model.deadline import Deadline
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
from agora.router.news import News

if TYPE_CHECKING:
    from agora.app.assembly import Opened
    from agora.exchange.exporting import Exporter
    from agora.exchange.importing import Importer
    from agora.maintenance.purge import Purger
    from agora.memory.conversations.service import ConversationMemory
    from agora.memory.facts import FactMemory
    from agora.memory.notes import Notes
    from agora.ports.encoder import Encoder
    from agora.ports.transfer import Transfer
    from agora.router.gateway import Gateway
    from agora.stores.sqlite.store import SqliteStore

FINISH_SECONDS = 300.0
"""Seconds between two looks for a purge that was interrupted."""

SWEEP_SECONDS = 900.0
"""Seconds between two looks for long results whose time is over."""

_LOOK = 3.0
"""Seconds that a look at the store may take."""


class Agora:
    """One process's Agora on a data folder: the store is open, the model is verified but not yet loaded.

    Where `late`, that is so after `open_soon` or the first call that needs it: what opening takes, most of all the
    imports of numpy and of the adapters, is not on the way of a client's first messages. A store that cannot be
    opened then fails every call with the reason, and each call tries again. A new store whose vectors come from a
    server is opened late in any case: it has to wait for the first answer, which says how long they are.
    """

    def __init__(
        self,
        loaded: Loaded,
        *,
        late: bool = False,
        server: Callable[[], dict[str, Any]] | None = None,
        env: Mapping[str, str] | None = None,
    ) -> None:
        """Open the store and verify the model, unless `late`; `server` tells of the process for the status.

        `env`: what `${VAR}` in the tables of backends stands for, if not the variables of the process.

        Raises: ModelMissing, ModelTampered, EmbeddingError, ConfigError, StoreUnavailable, StoreCorrupt, StoreVersion;
        with `late` none of them.
        """
        settings = loaded.settings
        self._loaded = loaded
        self._server = server
        self._env = dict(os.environ if env is None else env)
        self.clock = SystemClock()
        self.policy = Policy(settings.access)
        """What the access tables come to; those of the process, whatever a session's own settings say."""
        self.log = get_logger("agora")
        self._tables = TablesInFile(loaded, self.log)
        self._lock = threading.Lock()
        self._choosing = threading.Lock()
        self._encoder: Encoder | None = None
        self._opened: Opened | None = None
        self._closed = False
        self._opening: threading.Thread | None = None
        self.failure: AgoraError | None = None
        """Why the store could not be opened when that was last tried; None once it is open."""
        self._scheduler: Scheduler | None = None
        self._watch: Watch | None = None
        self._purger: Purger | None = None
        self._limits = Limits(
            content_bytes=settings.limits.content_bytes,
            query_chars=settings.limits.query_chars,
            call_seconds=settings.limits.call_seconds,
        )
        self.guard = guard_of(settings)
        self.tools: Tools = LateTools(
            lambda deadline: self._open(deadline).tools, self._limits, self._about, self.guard
        )
        if not late:
            from agora.embedding.choose import is_settled  # noqa: PLC0415 - whoever opens late has it imported later

            if is_settled(self.encoder):
                self.tools = self._open(self._patience).tools

    @property
    def settings(self) -> Settings:
        """The settings that it was made with."""
        return self._loaded.settings

    @property
    def encoder(self) -> Encoder:
        """The encoder, verified.

        Raises: ModelMissing, ModelTampered, EmbeddingError, ConfigError.
        """
        from agora.app.assembly import make_encoder  # noqa: PLC0415 - whoever opens late has it imported later

        with self._choosing:
            if self._encoder is None:
                self._encoder = make_encoder(self.settings, self.log)
            return self._encoder

    @property
    def store(self) -> SqliteStore:
        """The open store.

        Raises: EncoderUnavailable if it is still to be made and the encoder's server does not answer; where it is
        opened late, what opening it raises.
        """
        return self._open(self._patience).store

    @property
    def notes(self) -> Notes:
        """The notes in the store, which is opened as by `store`."""
        return self._open(self._patience).notes

    @property
    def facts(self) -> FactMemory:
        """The facts in the store, which is opened as by `store`."""
        return self._open(self._patience).facts

    @property
    def conversations(self) -> ConversationMemory:
        """The conversations in the store, which is opened as by `store`."""
        return self._open(self._patience).conversations

    @property
    def _patience(self) -> Deadline:
        return Deadline(self.settings.embedding.deadline)

    def _open(self, deadline: Deadline) -> Opened:
        """The store and what stands on it, opened at the first call that finds the encoder's dimension known."""
        if (opened := self._opened) is not None:
            return opened
        from agora.app.assembly import assemble  # noqa: PLC0415 - as in `encoder`
        from agora.embedding.choose import settle  # noqa: PLC0415 - as above

        try:
            encoder = self.encoder
            settle(encoder, deadline.within(self.settings.embedding.deadline))
            with self._lock:
                if self._closed:
                    raise StoreUnavailable("the server is ending", hint="Try again when it is back.")
                if self._opened is None:
                    self._opened = assemble(
                        *(self.settings, encoder, self.clock, self.log, self._limits, self._about, self.guard),
                        Reach(self._tables, self._env),
                    )
                self.failure = None
                return self._opened
        except AgoraError as error:
            self.failure = error
            raise

    def open_now(self) -> None:
        """Return once the store is open.

        Raises: what opening the store and the model raises.
        """
        self._open(self._patience)

    def open_soon(self, then: Callable[[], None] = lambda: None) -> None:
        """Open the store and load the model in a thread; `then` is called when both are ready or have failed.

        What failed is logged and kept in `failure`; the next call tries again. A second call does nothing.
        """
        if self._opening is not None:
            return

        def run() -> None:
            try:
                self._open(self._patience)
                self.log.info("ready", home=str(self.settings.home))
                self.encoder.warm_up()
            except AgoraError as error:
                self.log.warning("the store is not open", code=error.code, message=error.message, hint=error.hint)
            finally:
                then()

        self._opening = threading.Thread(target=run, name="agora-open", daemon=True)
        self._opening.start()

    def services(self) -> Services:
        """What a server offers its clients."""
        settings, late = self._loaded.settings, self._open

        def records(deadline: Deadline) -> SqliteStore:
            return self._open(deadline).store

        def gateway(deadline: Deadline | None) -> Gateway | None:
            opened = self._opened if deadline is None else self._open(deadline)
            return None if opened is None else opened.gateway

        browsing = Browsing(records)
        folder = settings.prompts.folder or settings.home / "prompts"
        library = Library(folder, settings.prompts.language, self.log)
        prompts = Prompts(library, Filling(self.tools, browsing))
        own, others = prompts.changes(), News(lambda: gateway(None))
        self._watch = Watch(records, self.log, beside=lambda: own() | others())
        return Services(
            self.tools,
            offered(settings.tools.profile),
            Resources(self.tools, browsing, self.clock, lambda by: late(by).facts, lambda by: late(by).conversations),
            prompts,
            self._watch,
            lambda caller: any(map(caller.scope.grants.may_call, self._tables.names)),
            gateway,
        )

    def unready(self) -> list[dict[str, Any]]:
        """Why calls could not be answered now, one row a reason; blocking."""
        found = []
        try:
            if (state := self.encoder.state) != "ready":
                error = self.encoder.details().get("error")
                found.append({"code": "warming_up" if error is None else "model_failed", "message": error or state})
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
        tasks = [
            Task("compact", seconds, self._compact),
            Task("purge", FINISH_SECONDS, self._finish_purge),
            Task("kept results", SWEEP_SECONDS, self._sweep_kept),
        ]
        self._scheduler = Scheduler(tasks, self.log)
        self._scheduler.start()

    def is_working(self) -> bool:
        """Whether something goes on that no client waits for: maintenance, or the store is opened and migrated."""
        if self._opening is not None and self._opening.is_alive():
            return True
        return self._scheduler is not None and self._scheduler.working

    def _compact(self) -> dict[str, Any] | None:
        with self._lock:
            opened = self._opened
        return None if opened is None else opened.store.compact(force=False)

    def _sweep_kept(self) -> dict[str, Any] | None:
        with self._lock:
            opened = self._opened
        swept = 0 if opened is None else opened.store.kept_results().sweep(self.clock.now(), self._patience)
        return {"expired": swept} if swept else None

    def connection(  # noqa: PLR0913 - what there is to know of a client, each by its name
        self,
        *,
        origin: Origin = "agent",
        folder: Path | None = None,
        token: str = "",
        namespace: str | None = None,
        lifecycle: Lifecycle | None = None,
        own: Settings | None = None,
        door: Door = "local",
        near: bool = True,
    ) -> Connection:
        """A new connection for a client that works in `folder`, or showed the token of that name, and came by `door`.

        `namespace` is the token's; it goes before the setting. `lifecycle` is what agora_status shows of it.
        `own` are the settings of the client's session where they may differ from the process's. `near`: it is on this
        machine, so that the folders that it declares are folders here.
        """
        settings = own or self._loaded.settings
        return Connection(
            at_ms=int(self.clock.now().timestamp() * 1000),
            origin=origin,
            folder=folder,
            namespace=namespace or settings.namespace.default,
            rule="the token's namespace" if namespace else "setting namespace.default",
            agent=settings.agent,
            token=token,
            lifecycle=lifecycle,
            door=door,
            policy=self.policy,
            guard=self.guard,
            near=near,
            expose=settings.gateway.expose,
        )

    def _finish_purge(self) -> dict[str, Any] | None:
        with self._lock:
            opened = self._opened
        return None if opened is None else self.purger.finish_left()

    @property
    def purger(self) -> Purger:
        """Takes the bytes of forgotten notes out of store, index and cache."""
        from agora.app.indexing import unused_folders  # noqa: PLC0415 - a server that starts has no use for it
        from agora.app.purging import make_purger  # noqa: PLC0415 - as above

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
        return Importer(self.transfer, self.encoder, self.clock, self.log, content_bytes=limit, guard=self.guard)

    def close(self) -> None:
        """Finish the accepted writes and let the files go."""
        if self._watch is not None:
            self._watch.close()
        if self._scheduler is not None:
            self._scheduler.close()
        with self._lock:
            self._closed = True
            opened = self._opened
        with self._choosing:
            encoder = self._encoder
        if encoder is not None:
            encoder.close()
        if opened is not None:
            opened.close()

    def _about(self) -> dict[str, Any]:
        return {
            "version": __version__,
            "python": sys.version.split()[0],
            "pid": os.getpid(),
            "home": str(self._loaded.settings.home),
            "configuration": str(self._loaded.file) if self._loaded.file else None,
            **({} if self._server is None else {"server": self._server()}),
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
