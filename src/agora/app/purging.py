"""What the command `agora purge` works with."""

from __future__ import annotations

import shutil
from collections.abc import Sequence
from pathlib import Path

from agora.cache.disk import Disk
from agora.errors import StoreUnavailable
from agora.maintenance.purge import Outside, Purger
from agora.ports import places
from agora.ports.clock import Clock
from agora.ports.log import Log
from agora.ports.result_cache import ResultCache
from agora.stores.sqlite.purging import SqlitePurging


def make_purger(
    store: SqlitePurging,
    cache: ResultCache | None,
    cache_file: Path,
    clock: Clock,
    log: Log,
    unused: Sequence[Path] = (),
) -> Purger:
    """Purges `store`, and the files beside it; `cache` is this process's, if it has one.

    `unused`: folders of indexes that the settings do not name. They may hold vectors, and nobody looks after them.
    """

    def drop() -> None:
        for folder in unused:
            try:
                shutil.rmtree(folder)
            except FileNotFoundError:
                continue
            except OSError as error:
                raise StoreUnavailable(
                    f"the unused index {folder} cannot be deleted: {error.strerror or error}",
                    hint="End the processes that use it, and purge again.",
                ) from error

    def empty() -> None:
        if cache is not None:
            cache.clear()
        # Whatever the settings say now: an earlier process may have kept answers.
        _empty(cache_file, log)

    outside = [Outside(places.UNUSED_INDEX, drop), Outside(places.CACHE, empty)]
    return Purger(store, cache_file.parent, outside, clock, log)


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
