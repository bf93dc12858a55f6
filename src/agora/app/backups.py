"""What `agora backup` and `agora restore-backup` do."""

from __future__ import annotations

import contextlib
import os
import time
from collections.abc import Iterator
from datetime import datetime
from pathlib import Path
from typing import Any

from agora.app.clock import SystemClock
from agora.app.files import CACHE_FILE, STORE_FILE
from agora.app.opening import require_disk
from agora.app.reembedding import LOCK_FILE as REEMBED_LOCK
from agora.app.repairing import LOCK as REPAIR_LOCK
from agora.config.load import Loaded
from agora.config.logs import get_logger
from agora.errors import AgoraError, InvalidInput
from agora.model.instants import from_micros, to_micros
from agora.stores.sqlite.alone import alone
from agora.stores.sqlite.backup import Contents, Told, back_up, contents, in_use
from agora.stores.sqlite.restore import BEFORE, Backup, checked

Data = dict[str, Any]


def write_backup(loaded: Loaded, file: Path, told: Told, *, replace: bool, quick: bool) -> Data:
    """Write a checked copy of the store to `file`, while servers run; what it holds, and what is wrong with it.

    `quick` checks the structure of the file alone, and not every invariant of the store.

    Raises: InvalidInput for a file that must not be written, StoreUnavailable, StoreCorrupt, StoreVersion.
    """
    store, began = loaded.settings.home / STORE_FILE, time.monotonic()
    _require_free(file, loaded.settings.home, replace=replace)
    done = back_up(store, file, _now(), told, quick=quick)
    return {
        "file": str(file.absolute()),
        "bytes": done.bytes,
        **_shown(done.contents),
        "checked": "quick" if quick else "full",
        "problems": [each._asdict() for each in done.problems],
        "seconds": round(time.monotonic() - began, 3),
    }


class Restoring:
    """A checked backup beside the store that it would replace: look at both, then go on or not."""

    def __init__(self, loaded: Loaded, backup: Backup) -> None:
        self._loaded = loaded
        self._backup = backup
        self._store = loaded.settings.home / STORE_FILE

    def plan(self) -> Data:
        """What the backup holds, and what the store holds now: None if there is none, `unreadable` if it is damaged."""
        return {"file": str(self._backup.file.absolute()), **_shown(self._backup.contents), "now": _held(self._store)}

    def run(self, told: Told, *, keep: bool) -> Data:
        """Put the backup in place of what the store holds, after a copy of that if `keep`; what was done.

        Raises: Conflict while a repair or a reembed is under way; StoreUnavailable, StoreCorrupt, StoreVersion. The
        store is as it was then.
        """
        settings, began = self._loaded.settings, time.monotonic()
        settings.home.mkdir(parents=True, mode=0o700, exist_ok=True)
        copy = _free_name(self._store) if keep and self._store.exists() else None
        with alone(settings.home / REEMBED_LOCK, "a reembed"), alone(settings.home / REPAIR_LOCK, "a repair"):
            self._backup.put_in_place_of(self._store, copy, settings.store.busy_timeout, told)
        found = {
            "file": str(self._backup.file.absolute()),
            **_shown(self._backup.contents),
            "copy": None if copy is None else str(copy),
            "seconds": round(time.monotonic() - began, 3),
        }
        get_logger("agora.backup").info("backup restored", **found)
        return found


@contextlib.contextmanager
def restoring(loaded: Loaded, file: Path, told: Told) -> Iterator[Restoring]:
    """The backup in `file`, checked: nothing is changed before `Restoring.run`.

    Raises: InvalidInput if there is no such file, or it is the store itself; StoreCorrupt if it is damaged;
    StoreVersion if a later release wrote it.
    """
    settings = loaded.settings
    require_disk(settings)
    if not file.is_file():
        raise InvalidInput("file", "there is no such file", str(file))
    if _same(file, settings.home / STORE_FILE):
        raise InvalidInput("file", "is the store itself", str(file), hint="Name a file that `agora backup` wrote.")
    with checked(file, _now(), told) as backup:
        yield Restoring(loaded, backup)


def _require_free(file: Path, home: Path, *, replace: bool) -> None:
    """Return if a backup may be written to `file`.

    Raises: InvalidInput.
    """

    def refuse(reason: str, hint: str) -> InvalidInput:
        return InvalidInput("file", reason, str(file), hint=hint)

    another = "Name another file."
    if file.is_dir():
        raise refuse("is a folder", another)
    if not file.absolute().parent.is_dir():
        raise refuse("its folder does not exist", "Make the folder, or name another one.")
    ours = _same(file.absolute().parent, home) and (
        file.name in {STORE_FILE, "agora.toml"}
        or file.name.startswith((f"{STORE_FILE}-", CACHE_FILE))
        or file.name.endswith(".lock")
    )
    if ours or _same(file, home / STORE_FILE):
        raise refuse("is a file that Agora itself uses", another)
    if not file.exists():
        return
    if not replace:
        raise refuse("is there already", "Add --force to replace it.")
    if file.with_name(file.name + "-wal").exists():
        raise refuse("is a store in use: it has a log beside it", another)


def _same(one: Path, other: Path) -> bool:
    with contextlib.suppress(OSError):
        return one.samefile(other)
    return False


def _held(store: Path) -> Data | None:
    if not store.exists():
        return None
    try:
        with in_use(store) as connection:
            return _shown(contents(connection, _now()))
    except AgoraError as error:
        return {"unreadable": error.message}


def _shown(found: Contents) -> Data:
    changed = None if found.changed is None else from_micros(found.changed).isoformat().replace("+00:00", "Z")
    names = ("notes", "versions", "facts", "messages", "sequence", "schema", "model")
    return {name: getattr(found, name) for name in names} | {"last_change": changed}


def _free_name(store: Path) -> Path:
    """Where the copy of what is there now goes: a name that says when, and that nobody has."""
    stem = f"{store.name}{BEFORE}{_present():%Y%m%dT%H%M%SZ}"
    names = (stem if number == 1 else f"{stem}-{number}" for number in range(1, 10_000))
    return next(store.with_name(name) for name in names if not os.path.lexists(store.with_name(name)))


def _present() -> datetime:
    return SystemClock().now()


def _now() -> int:
    return to_micros(_present())
