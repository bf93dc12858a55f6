"""A backend's table with the values of the variables that it names."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from dataclasses import replace

from agora.config import backend_checks as checks
from agora.config.backends import BackendTable
from agora.config.variables import expand
from agora.errors import ConfigError

Check = Callable[[str], str | None]


def expanded(table: BackendTable, env: Mapping[str, str]) -> BackendTable:
    """`table` with each `${VAR}` replaced by the variable of `env`, ready to be connected to.

    Raises: ConfigError if a variable is not set or what it holds cannot be used. The message names file and line, the
    backend, the key and the variable, and never shows a value. Other backends are not concerned.
    """
    text = _Expanding(table, env).text
    secret = sends_secret(table)
    return replace(
        table,
        command=text("command", table.command, checks.of_command),
        args=tuple(text(f"args[{number}]", each, checks.of_argument) for number, each in enumerate(table.args)),
        cwd=None if table.cwd is None else text("cwd", table.cwd, _of_folder),
        env=tuple((name, text(f"env.{name}", value, checks.of_argument)) for name, value in table.env),
        url=text("url", table.url, lambda url: checks.of_url(url, secret=secret)),
        headers=tuple((name, text(f"headers.{name}", value, checks.of_header_value)) for name, value in table.headers),
        bearer_token=None
        if table.bearer_token is None
        else text("bearer_token", table.bearer_token, checks.of_header_value),
    )


def sends_secret(table: BackendTable) -> bool:
    """Whether a bearer token, or a header that is a secret by its name, goes along with each request."""
    return table.bearer_token is not None or any(checks.is_secret_name(name) for name, _ in table.headers)


class _Expanding:
    def __init__(self, table: BackendTable, env: Mapping[str, str]) -> None:
        self._table = table
        self._env = env

    def text(self, key: str, written: str, check: Check) -> str:
        def missing(name: str) -> ConfigError:
            return ConfigError(
                f"{self._table.place}: {self._table.label}: {key} needs the environment variable {name!r}, which is"
                " not set",
                hint=f"Set it where Agora starts, or write a default as in ${{{name or 'NAME'}:-…}}; $${{…}} stands for"
                " the characters themselves.",
            )

        value = expand(written, self._env, missing)
        problem = check(value) if value or written else None
        if written and not value and key in {"command", "url"}:
            problem = "is empty"
        if problem is not None:
            filled = "" if value == written else ", with its variables put in,"
            raise ConfigError(
                f"{self._table.place}: {self._table.label}: {key}{filled} {problem}",
                hint="Look at the variables that it names." if filled else "docs/gateway.md shows what a table holds.",
            )
        return value


def _of_folder(path: str) -> str | None:
    if not os.path.isabs(path):  # noqa: PTH117 - Path would take off what the check is about
        return "has to be a whole path"
    return checks.of_argument(path)
