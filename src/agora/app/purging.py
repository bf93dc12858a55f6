"""What the command `agora purge` works with."""

from __future__ import annotations

from pathlib import Path

from agora.cache.disk import Disk
from agora.errors import StoreUnavailable
from agora.maintenance.purge import Outside, Purger
from agora.ports import places
from agora.ports.clock import Clock
from agora.ports.log import Log
from agora.ports.result_cache import ResultCache
from agora.stores.sqlite.purging import SqlitePurging


def make_purger(store: SqlitePurging, cache: ResultCache | None, cache_file: Path, clock: Clock, log: Log) -> Purger:
    """Purges `store`, and the files beside it; `cache` is this process's, if it has one."""

    def empty() -> None:
        if cache is not None:
            cache.clear()
        # Whatever the settings say now: an earlier process may have kept answers.
        _empty(cache_file, log)

    return Purger(store, cache_file.parent, [Outside(places.CACHE, empty)], clock, log)


def _empty(path: Path, log: Log) -> None:
    if not path.exists():
        return
    disk = Disk(path, log, entries=1)
    try:
        disk.clear()
        if disk.off is not None:
            raise StoreUnavailable(f"the cache cannot be emptied: {disk.off}", hint="Delete the file cache.db.")
    finally:
        disk.close()
