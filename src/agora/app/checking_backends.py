"""What `agora doctor` says of other MCP servers, without starting or calling one."""

from __future__ import annotations

import os
import shutil
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from agora.config.backend_expanding import expanded
from agora.config.backends import BackendTable
from agora.errors import ConfigError

_HERE = "This is what this shell has; a server that another program started may have another environment."


def backend_rows(tables: Sequence[BackendTable], env: Mapping[str, str] | None = None) -> list[dict[str, Any]]:
    """One row for each backend, as `agora.app.checking.diagnose` has them.

    A backend that cannot be used is a warning: all else works, and the server's own environment may have what `env`,
    by default that of the process, lacks. No row shows what a variable holds.
    """
    return [_row(table, os.environ if env is None else env) for table in tables]


def exposed_rows(expose: Sequence[str], tables: Sequence[BackendTable]) -> list[dict[str, Any]]:
    """A row, with a warning, for each name of `gateway.expose` that no backend has."""
    there = {table.name.casefold() for table in tables}
    some = ", ".join(table.name for table in tables) or "none"
    return [
        _bad(
            {"name": "gateway.expose", "ok": True},
            f"no backend is called {name!r}: nothing of it is shown",
            f"Write a table for it, or take it out of `gateway.expose`. There are: {some}.",
        )
        for name in expose
        if name.strip().casefold() not in there
    ]


def _row(table: BackendTable, env: Mapping[str, str]) -> dict[str, Any]:
    row: dict[str, Any] = {"name": f"backend {table.name}", "ok": True}
    try:
        filled = expanded(table, env)
    except ConfigError as error:
        return row | {"warning": True, **error.details(), "hint": f"{error.hint} {_HERE}"}
    if filled.transport == "http":
        parts = urlsplit(filled.url)
        # The rest of an address may be a key.
        return row | {"message": f"http, {parts.scheme}://{parts.netloc}; it was not called"}
    where = f"{table.place}: {table.label}"
    if filled.cwd is not None and not Path(filled.cwd).is_dir():
        hint = "Make the folder, or change cwd."
        return _bad(row, f"{where}: cwd is no folder: {filled.cwd}", hint)
    path = next((value for name, value in filled.env if name.upper() == "PATH"), env.get("PATH"))
    found = shutil.which(filled.command, path=path)
    if found is None:
        whole = os.path.dirname(filled.command)  # noqa: PTH120 - a bare name has none
        said = "is no program that can be run" if whole else "is on no folder of the PATH that the child gets"
        hint = f"Install it, or write the whole path. {'' if whole else _HERE}".rstrip()
        return _bad(row, f"{where}: the command {filled.command} {said}", hint)
    return row | {"message": f"stdio, {found}; it was not started"}


def _bad(row: dict[str, Any], message: str, hint: str) -> dict[str, Any]:
    return row | {"warning": True, "code": ConfigError.code, "message": message, "hint": hint}
