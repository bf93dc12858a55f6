"""Composition root: settings in, a running Agora out. The only module that names adapters."""

from __future__ import annotations

import contextlib
import os
import sys
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from agora import __version__
from agora.cache.disk import Disk
from agora.cache.embeddings import CachedEncoder
from agora.cache.results import TwoLevelCache
from agora.config.load import Loaded
from agora.config.logs import get_logger
from agora.embedding.choose import choose_encoder, examined, is_settled, settle
from agora.errors import AgoraError, StoreUnavailable
from agora.memory.notes import Notes
from agora.model.caller import Origin
from agora.model.deadline import Deadline
from agora.ports.encoder import Encoder
from agora.ports.transfer import Transfer
from agora.protocol.context import Connection
from agora.protocol.tools.handlers import Limits, Tools
from agora.protocol.tools.late import LateTools
from agora.stores.sqlite.profile import profile_of
from agora.stores.sqlite.store import SqliteStore

if TYPE_CHECKING:
    from agora.exchange.exporting import Exporter
    from agora.exchange.importing import Importer

STORE_FILE = "agora.db"
"""Name of the canonical file in the data folder."""

CACHE_FILE = "cache.db"
"""Name of the cache in the data folder; it may be deleted at any time."""


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
        store = SqliteStore(
            settings.home / STORE_FILE,
            self.encoder.fingerprint,
            self.clock,
            synchronous=settings.store.synchronous,
            busy_timeout=settings.store.busy_timeout,
            readers=settings.store.readers,
        )
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

    def connection(
        self, *, origin: Origin = "agent", folder: Path | None = None, token: str = "", namespace: str | None = None
    ) -> Connection:
        """A new connection for a client that works in `folder`, or showed the token of that name.

        `namespace` is the token's; it goes before the setting.
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
        )

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
        }


@contextlib.contextmanager
def opened(loaded: Loaded) -> Iterator[Agora]:
    """An `Agora` for the length of a block."""
    agora = Agora(loaded)
    try:
        yield agora
    finally:
        agora.close()


def cache_of(loaded: Loaded, *, clear: bool) -> dict[str, Any]:
    """What `cache.db` holds, after deleting all of it if `clear`: `off` says why there is none."""
    settings, path = loaded.settings.cache, loaded.settings.home / CACHE_FILE
    found: dict[str, Any] = {"path": str(path), "off": None, "answers": 0, "embeddings": 0, "bytes": 0}
    if not settings.enabled or not settings.disk_entries:
        return found | {"off": "by setting"}
    if not path.exists():
        return found | ({"deleted": 0} if clear else {})
    disk = Disk(path, get_logger("agora.cache"), entries=settings.disk_entries)
    try:
        if clear:
            found["deleted"] = disk.clear()
        found |= {"answers": disk.count("result"), "embeddings": disk.count("embedding"), "off": disk.off}
    finally:
        disk.close()
    return found | {"bytes": path.stat().st_size}


def diagnose(loaded: Loaded) -> list[dict[str, Any]]:
    """What `agora doctor` found, one row a check: `name`, `ok`, `message` and, where it failed, `hint`.

    Changes nothing: no folder is made, no file is written.
    """
    from agora.stores.sqlite.examine import examine  # noqa: PLC0415 - a server that starts has no use for it

    settings, store = loaded.settings, loaded.settings.home / STORE_FILE
    checks = [
        _check("configuration", lambda: f"{loaded.file or 'no file, defaults'}"),
        _check("data folder", lambda: _folder_state(settings.home)),
        _check("model", lambda: examined(settings.embedding, partial(profile_of, store))),
    ]
    try:
        problems = examine(store)
    except AgoraError as error:
        return [*checks, {"name": "store", "ok": False, **error.details()}]
    if not problems:
        found = "every invariant holds" if store.exists() else "none yet"
        return [*checks, {"name": "store", "ok": True, "message": f"{store}: {found}"}]
    return [
        *checks,
        *(
            {"name": "store", "ok": False, "code": each.code, "message": each.message, "hint": each.hint}
            for each in problems
        ),
    ]


def _check(name: str, look: Callable[[], str]) -> dict[str, Any]:
    try:
        return {"name": name, "ok": True, "message": look()}
    except AgoraError as error:
        return {"name": name, "ok": False, **error.details()}


def _folder_state(home: Path) -> str:
    if not home.exists():
        return f"{home} does not exist yet: it is made at the first use"
    if not home.is_dir() or not os.access(home, os.R_OK | os.W_OK | os.X_OK):
        raise StoreUnavailable(
            f"{home} is not a folder that this user can write",
            hint="Change its permissions, or set AGORA_HOME to another folder.",
        )
    return str(home)
