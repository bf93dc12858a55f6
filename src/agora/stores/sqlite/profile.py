from __future__ import annotations

import contextlib
import json
import sqlite3
from pathlib import Path

from agora.errors import EmbeddingMismatch
from agora.model.profile import Fingerprint


def profile_of(path: Path) -> Fingerprint | None:
    """The fingerprint that the store at `path` was built with; None if there is no store, or none that can be read.

    Changes nothing. What is wrong with a store is told when it is opened, not here.
    """
    if not path.exists():
        return None
    with contextlib.suppress(sqlite3.Error, ValueError, TypeError):
        connection = _looking(path)
        try:
            return active(connection)
        finally:
            connection.close()
    return None


def mismatch_of(path: Path, wanted: Fingerprint) -> EmbeddingMismatch | None:
    """Why `wanted` cannot be used on the store at `path`; None if it can, or there is no store that can be read."""
    built = profile_of(path)
    if built is None or built == wanted:
        return None
    with contextlib.suppress(sqlite3.Error):
        connection = _looking(path)
        try:
            return difference(connection, path, wanted)
        finally:
            connection.close()
    return None


def active(connection: sqlite3.Connection) -> Fingerprint | None:
    """The fingerprint of the store's encoder."""
    found = connection.execute("SELECT fingerprint FROM encoders WHERE state = 'active'").fetchone()
    return None if found is None else Fingerprint(**json.loads(found[0]))


def difference(connection: sqlite3.Connection, path: Path, wanted: Fingerprint) -> EmbeddingMismatch:
    """The error for a process whose encoder is `wanted` on a store of another one: which, and every way out."""
    try:
        built = active(connection)
    except (ValueError, TypeError):
        built = None
    if built is None:
        return EmbeddingMismatch(f"the store {path} does not say which embedding model built it", hint=_DOCTOR)
    there = {
        state
        for (state,) in connection.execute("SELECT state FROM encoders WHERE digest = ?", (wanted.digest(),)).fetchall()
    }
    back = f"set {_setting(built)}, which the store was built with"
    if "building" in there:
        return EmbeddingMismatch(
            f"the store {path} is on its way from {built.name!r} to {wanted.name!r} and not there yet",
            hint=f"Wait until `agora reembed` is done, or run it again if it was stopped. Else {back}. {_WORDS}",
        )
    if "retired" in there and built.name != wanted.name:
        return EmbeddingMismatch(
            f"the store {path} was moved from the embedding model {wanted.name!r} to {built.name!r}",
            hint=f"Set {_setting(built)}, and start this process again. To go back, run {_command(wanted)}. {_WORDS}",
        )
    if built.name == wanted.name:
        unlike = ", ".join(
            f"{field} {getattr(built, field)!r} and not {getattr(wanted, field)!r}"
            for field in ("dimension", "pooling", "prefix", "max_tokens")
            if getattr(built, field) != getattr(wanted, field)
        )
        return EmbeddingMismatch(
            f"the store {path} was built with other settings of {built.name!r}: {unlike or 'other files'}",
            hint=f"Set them as they were under [embedding], or move the store to yours: `agora reembed`. {_WORDS}",
        )
    return EmbeddingMismatch(
        f"the store {path} was built with the embedding model {built.name!r}, not with {wanted.name!r}",
        hint=f"Either {back}, or move the store to yours: {_command(wanted)}. {_WORDS}",
    )


_WORDS = "Lexical queries work meanwhile."
_DOCTOR = "Run `agora doctor`."


def _looking(path: Path) -> sqlite3.Connection:
    return sqlite3.connect(f"{path.resolve().as_uri()}?mode=ro", uri=True, isolation_level=None)


def _setting(built: Fingerprint) -> str:
    """What to write into the configuration for an encoder, as far as its name tells."""
    model, _, host = built.name.partition("@")
    if host:
        return f"embedding.model to {model!r} and embedding.url to its server {host}"
    if built.name.startswith("onnx:"):
        # A folder is known by its files, wherever it lies.
        return f"embedding.model to the folder of the graph whose SHA-256 begins with {built.sha256[:12]}"
    return f"embedding.model to {built.name!r}"


def _command(wanted: Fingerprint) -> str:
    model, _, host = wanted.name.partition("@")
    if host:
        return f"`agora reembed --model {model}` with its --url"
    return f"`agora reembed --model {'FOLDER' if model.startswith('onnx:') else model}`"
