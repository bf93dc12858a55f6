"""The store as the settings want it, for whoever opens it."""

from __future__ import annotations

from agora.app.files import STORE_FILE
from agora.app.indexing import choose_index
from agora.config.bounds import QuotaSettings
from agora.config.settings import Settings
from agora.model.allowance import Allowance, Allowances
from agora.model.profile import Fingerprint
from agora.ports.clock import Clock
from agora.ports.log import Log
from agora.stores.sqlite.environment import require_own_disk
from agora.stores.sqlite.store import SqliteStore


def require_disk(settings: Settings) -> None:
    """Return if the data folder lies where a store may be.

    Raises: StoreUnavailable for a network file system, unless the settings allow it.
    """
    if settings.store.network_file_system == "refuse":
        require_own_disk(settings.home)


def open_store(
    settings: Settings,
    fingerprint: Fingerprint,
    clock: Clock,
    log: Log,
    *,
    busy_timeout: float | None = None,
    readers: int | None = None,
) -> SqliteStore:
    """The open store with the index that is set, for an encoder of this `fingerprint`.

    `busy_timeout` (seconds) and `readers` go before the settings.

    Raises: ConfigError, MissingExtra; StoreUnavailable, StoreCorrupt, StoreVersion.
    """
    require_disk(settings)
    return SqliteStore(
        settings.home / STORE_FILE,
        fingerprint,
        clock,
        synchronous=settings.store.synchronous,
        busy_timeout=settings.store.busy_timeout if busy_timeout is None else busy_timeout,
        readers=settings.store.readers if readers is None else readers,
        index=choose_index(settings.index, settings.home, log),
        memory_mb=settings.index.memory_mb,
        compact_dead=settings.index.compact_dead,
        log=log,
        allowances=allowances(settings.quota),
    )


def allowances(quota: QuotaSettings) -> Allowances:
    """What agents and namespaces may save, as it is set."""
    million = 1_000_000
    return Allowances(
        Allowance(quota.agent_saves or None, quota.agent_mb * million or None),
        Allowance(quota.namespace_saves or None, quota.namespace_mb * million or None),
    )
