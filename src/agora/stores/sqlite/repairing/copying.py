from __future__ import annotations

import os
import shutil
import sqlite3
from contextlib import closing
from datetime import datetime
from pathlib import Path

from agora.errors import StoreUnavailable

BEFORE = ".before-repair-"
"""What comes between the store's name and the time in the name of the copy that is made before a repair."""

_ROOM = 3
"""Sizes of the store that have to be free: the copy, the log of the repair, a file that may have to be made anew."""


def require_room(path: Path) -> None:
    """Return if there is room beside the store at `path` for a copy of it and for the repair after it.

    Raises: StoreUnavailable.
    """
    size = sum(each.stat().st_size for each in (path, path.with_name(path.name + "-wal")) if each.exists())
    free = shutil.disk_usage(path.parent).free
    if free < _ROOM * size:
        raise StoreUnavailable(
            f"a repair of {path} needs {_ROOM * size:,} bytes beside it, {free:,} are free",
            hint="Nothing was changed. Free some space, or move the data folder to a larger disk: set AGORA_HOME.",
        )


def copy_aside(path: Path, at: datetime) -> Path:
    """The path of a whole copy of the store at `path`, beside it, readable by its owner alone.

    Raises: as `require_room`; nothing is left then.
    """
    require_room(path)
    copy = _new_file(path, at)
    try:
        # Through SQLite, which knows what is in the log; closing a file by hand would end the locks of this process.
        with closing(sqlite3.connect(path)) as source, closing(sqlite3.connect(copy)) as target:
            source.backup(target)
    except BaseException:
        copy.unlink(missing_ok=True)
        raise
    return copy


def _new_file(path: Path, at: datetime) -> Path:
    stem = f"{path.name}{BEFORE}{at:%Y%m%dT%H%M%SZ}"
    number = 1
    while True:
        copy = path.with_name(stem if number == 1 else f"{stem}-{number}")
        try:
            os.close(os.open(copy, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600))
        except FileExistsError:
            number += 1
        else:
            return copy
