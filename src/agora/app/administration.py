"""What the administrator's commands do beside checking and repairing: look at the cache."""

from __future__ import annotations

from typing import Any

from agora.app.files import CACHE_FILE
from agora.cache.disk import Disk
from agora.config.load import Loaded
from agora.config.logs import get_logger


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
