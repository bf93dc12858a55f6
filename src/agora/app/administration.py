"""What the administrator's commands do: look at the cache, check everything."""

from __future__ import annotations

import os
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

from agora.app.agora import CACHE_FILE, STORE_FILE
from agora.cache.disk import Disk
from agora.config.load import Loaded
from agora.config.logs import get_logger
from agora.embedding.choose import examined
from agora.errors import AgoraError, StoreUnavailable
from agora.stores.sqlite.profile import profile_of


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
