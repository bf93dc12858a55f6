"""What `agora doctor` looks at, one row a check."""

from __future__ import annotations

import importlib.util
import os
import shutil
import sqlite3
from collections.abc import Callable
from contextlib import closing
from functools import partial
from pathlib import Path
from typing import Any

from agora.app.checking_backends import backend_rows, exposed_rows
from agora.app.files import CACHE_FILE, STORE_FILE
from agora.app.indexing import chroma_place
from agora.app.reviewing import review
from agora.config.load import Loaded
from agora.config.settings import EmbeddingSettings, Settings
from agora.embedding.choose import choose_encoder, examined, is_settled
from agora.errors import AgoraError, ConfigError, StoreUnavailable
from agora.llm.choosing import examined as examined_language
from agora.stores.chroma.checking import examine as examine_chroma
from agora.stores.chroma.client import missing
from agora.stores.sqlite.environment import file_system, risk
from agora.stores.sqlite.examine import examine, remarks, snapshot
from agora.stores.sqlite.kernels import choose_kernel
from agora.stores.sqlite.opening import open_to_read
from agora.stores.sqlite.profile import mismatch_of, profile_of
from agora.stores.sqlite.rules import KINDS, SURROUNDINGS
from agora.stores.sqlite.store import INDEX_FOLDER

ROOM = 16 * 1024 * 1024
"""Bytes that have to be free on the disk of the data folder: what a busy store's log may grow by before it is full."""

Row = dict[str, Any]


def diagnose(loaded: Loaded) -> list[Row]:
    """What `agora doctor` found, one row a check: `name`, `ok`, `message` and, where it failed, `code` and `hint`.

    `warning` marks a row that is no failure and yet no good news. Changes nothing: no folder is made, no file written.
    """
    settings, store = loaded.settings, loaded.settings.home / STORE_FILE
    return [
        _check("configuration", lambda: f"{loaded.file or 'no file, defaults'}"),
        *_folder(settings.home),
        _file_system(settings.home, allowed=settings.store.network_file_system == "allow"),
        _redaction(settings),
        _check("model", lambda: _model(settings.embedding, store)),
        _check("language model", lambda: examined_language(settings.model)),
        _index(settings, store),
        *([_cache(settings.home / CACHE_FILE)] if (settings.home / CACHE_FILE).exists() else []),
        *_store(store, settings.home / INDEX_FOLDER if settings.index.url == "sqlite" else None),
        *backend_rows(settings.backends),
        *review(settings, store),
        *exposed_rows(settings.gateway.expose, settings.backends),
    ]


def _redaction(settings: Settings) -> Row:
    mode = settings.redaction.mode
    row = {"name": "redaction", "ok": True, "message": f"secrets in new notes and questions: {mode}"}
    if mode != "off":
        return row
    hint = "Secrets are kept, indexed and shown to every agent. Set redaction.mode to redact or refuse."
    return row | {"warning": True, "message": "secrets in new notes and questions are not looked for", "hint": hint}


def failures(rows: list[Row]) -> list[Row]:
    """The rows of checks that failed."""
    return [row for row in rows if not row["ok"]]


def _check(name: str, look: Callable[[], str]) -> Row:
    try:
        return {"name": name, "ok": True, "message": look()}
    except AgoraError as error:
        return {"name": name, "ok": False, **error.details()}


def _model(settings: EmbeddingSettings, store: Path) -> str:
    """What trying the encoder says, if it is the one that the store has."""
    built = partial(profile_of, store)
    encoder = choose_encoder(settings, None, built)
    # A server that has not said how long its vectors are has to be asked first.
    if is_settled(encoder) and (mismatch := mismatch_of(store, encoder.fingerprint)) is not None:
        raise mismatch
    return examined(settings, built)


def _index(settings: Settings, store: Path) -> Row:
    """Which vector index is set, whether it can be used, and what of Chroma's is not as it must be.

    The files of the store's own index are compared with the rest of the store.
    """
    name = "vector index"
    try:
        place = chroma_place(settings.index, settings.home)
        if place is None:
            return _kernel(name)
        if importlib.util.find_spec("chromadb") is None:
            raise missing()
        path, owned = place
        with snapshot(store) as source:
            try:
                found = examine_chroma(path, owned=owned, source=source)
            except ConfigError as error:
                return _failed(name, "index_foreign", error.message, error.hint)
    except AgoraError as error:
        return {"name": name, "ok": False, **error.details()}
    if found.code is None:
        return {"name": name, "ok": True, "message": found.message}
    kind = KINDS.get(found.code) or SURROUNDINGS[found.code]
    row = {"name": name, "code": found.code, "message": found.message}
    if kind.repair is None:
        return row | {"ok": True, "warning": True, "hint": kind.hint}
    return row | {"ok": False, "hint": kind.hint}


def _kernel(name: str) -> Row:
    """By what the store's own index compares; a faster way that cannot be used here is worth a word."""
    kernel = choose_kernel()
    row = {"name": name, "ok": True, "message": f"Agora's own, compares with {kernel.name}"}
    if not kernel.passed_over:
        return row
    hint = "Answers are the same, and searches of large stores take twice as long."
    return row | {"warning": True, "message": f"{row['message']}. {' '.join(kernel.passed_over)}", "hint": hint}


def _failed(name: str, code: str, message: str, hint: str) -> Row:
    return {"name": name, "ok": False, "code": code, "message": message, "hint": hint}


def _around(name: str, code: str, message: str) -> Row:
    return _failed(name, code, message, SURROUNDINGS[code].hint)


def _folder(home: Path) -> list[Row]:
    if not home.exists():
        message = f"{home} does not exist yet: it is made at the first use"
        return [{"name": "data folder", "ok": True, "message": message}]
    if not home.is_dir() or not os.access(home, os.R_OK | os.X_OK):
        message = f"{home} is not a folder that this user can read"
        hint = "Change its permissions, or set AGORA_HOME to another folder."
        return [_failed("data folder", StoreUnavailable.code, message, hint)]
    file = home / STORE_FILE
    if not os.access(home, os.W_OK) or (file.exists() and not os.access(file, os.W_OK)):
        what = home if not os.access(home, os.W_OK) else file
        return [_around("data folder", "read_only", f"{what} can only be read")]
    free = shutil.disk_usage(home).free
    if free < ROOM:
        return [_around("data folder", "disk_full", f"{free:,} bytes are free on the disk of {home}")]
    opened = _open_to_others(home)
    if not opened:
        return [{"name": "data folder", "ok": True, "message": str(home)}]
    more = f" and {len(opened) - 1} more" if len(opened) > 1 else ""
    row = _around("data folder", "open_to_others", f"other users can use {opened[0]}{more}")
    return [row | {"ok": True, "warning": True}]


def _open_to_others(home: Path) -> list[Path]:
    """The data folder and the files of Agora in it that have a right for another user than their owner."""
    if os.name == "nt":
        # Rights are inherited there from the user's profile, and the mode says nothing of them.
        return []
    found = [home, *(Path(folder, name) for folder, _, names in os.walk(home) for name in names)]
    return [path for path in found if _mode(path) & 0o077]


def _mode(path: Path) -> int:
    try:
        return path.lstat().st_mode if not path.is_symlink() else 0
    except OSError:
        # It was there a moment ago: a server made it and took it away.
        return 0


def _file_system(home: Path, *, allowed: bool) -> Row:
    found, at_risk = file_system(home), risk(home)
    if at_risk is None:
        return {"name": "file system", "ok": True, "message": "unknown" if found is None else found.kind}
    row = {"name": "file system", "ok": True, "warning": True, **at_risk}
    # Refused at every use, unless the setting allows it.
    return row | {"ok": allowed or found is None or found.reach != "network"}


def _cache(path: Path) -> Row:
    damage = cache_damage(path)
    if damage is None:
        return {"name": "cache", "ok": True, "message": str(path)}
    return _around("cache", "cache_damaged", f"{path} is damaged: {damage}")


def cache_damage(path: Path) -> str | None:
    """What is wrong with the cache's file; None if nothing is."""
    try:
        with closing(open_to_read(path, sqlite3.Connection)[0]) as connection:
            told = str(connection.execute("PRAGMA integrity_check(1)").fetchone()[0])
    except (sqlite3.Error, StoreUnavailable) as error:
        locked = isinstance(error, sqlite3.OperationalError | StoreUnavailable)
        return None if locked else str(error)
    return None if told == "ok" else " ".join(told.split())


def _store(path: Path, index: Path | None) -> list[Row]:
    if not path.exists():
        return [{"name": "store", "ok": True, "message": f"{path}: none yet"}]
    try:
        problems = examine(path, index)
        said = remarks(path)
    except AgoraError as error:
        return [{"name": "store", "ok": False, **error.details()}]
    rows: list[Row] = [{"name": "store", "ok": True, "warning": True, "message": each} for each in said]
    if not problems:
        return [*rows, {"name": "store", "ok": True, "message": f"{path}: every invariant holds"}]
    return [*rows, *(_failed("store", each.code, each.message, each.hint) for each in problems)]
