"""Reading the tables `[[backends]]` of `agora.toml`. What they hold is in `agora.config.backends`."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Any, NamedTuple

from agora.config import backend_checks as checks
from agora.config.backend_expanding import sends_secret
from agora.config.backends import KEY, BackendTable, Wire
from agora.config.suggest import did_you_mean
from agora.config.toml_file import Lines, cannot_be_read, read_toml
from agora.config.variables import variables_in
from agora.errors import ConfigError, UnknownKey


class Bounds(NamedTuple):
    """What a number may be; `above`: `least` itself is too little."""

    least: int
    most: int
    whole: bool = False
    above: bool = False

    def said(self) -> str:
        """In words."""
        kind = "a whole number" if self.whole else "a number"
        begin = f"above {self.least:g}, at most" if self.above else f"from {self.least:g} to"
        return f"{kind} {begin} {self.most:,}"


BOUNDS: Mapping[str, Bounds] = MappingProxyType(
    {
        "timeout": Bounds(0, 3_600, above=True),
        "start_timeout": Bounds(0, 600, above=True),
        "max_retries": Bounds(0, 10, whole=True),
        "retry_delay": Bounds(0, 60),
        "rate": Bounds(0, 100_000, above=True),
        "concurrency": Bounds(1, 1_000, whole=True),
        "cache_seconds": Bounds(0, 31_536_000),
    }
)

LONGEST_DESCRIPTION = 2_000

STDIO_KEYS = ("command", "args", "cwd", "env")
HTTP_KEYS = ("url", "headers", "bearer_token")
COMMON_KEYS = (
    *("name", "transport", "description", "read_only", "trusted", "allow", "deny", "timeout", "start_timeout"),
    *("max_retries", "retry_delay", "rate", "concurrency", "cache_seconds", "save_results"),
)
_KEYS = (*COMMON_KEYS, *STDIO_KEYS, *HTTP_KEYS)
_ELSEWHERE = {
    "type": "transport",
    "httpUrl": "url",
    "serverUrl": "url",
    "http_headers": "headers",
    "bearer_token_env_var": "bearer_token",
    "token": "bearer_token",
    "trust": "trusted",
    "startup_timeout_sec": "start_timeout",
    "tool_timeout_sec": "timeout",
    "enabled_tools": "allow",
    "disabled_tools": "deny",
    "excludeTools": "deny",
}
"""Keys of clients' files, whose names are not like ours."""

_HINT = "docs/gateway.md shows what a table holds; `agora backends import` writes tables from another client's file."
_NAME_A_FILE = "The backends that were read before stay until it can be read."


def read_tables(path: Path, text: str, value: object) -> tuple[BackendTable, ...]:
    """The tables that the file at `path` with the contents `text` holds, of which `value` was parsed.

    Variables stay as they are written: see `agora.config.backend_expanding`. Paths are made whole; relative ones start
    at the folder of the file.

    Raises: UnknownKey, ConfigError; messages begin with file and line.
    """
    lines = Lines(text)
    if not isinstance(value, list) or not all(isinstance(table, dict) for table in value):
        line = lines.of(KEY)
        raise ConfigError(
            f"{path}{'' if line is None else f':{line}'}: {KEY} is a list of tables",
            hint=f'Write [[{KEY}]] above each table, and in it name = "…".',
        )
    tables = tuple(_Table(table, number, path, lines).read() for number, table in enumerate(value))
    _require_own_names(path, lines, tables)
    return tables


def reread(path: Path) -> tuple[BackendTable, ...]:
    """The backends of the file at `path` as it is now; what else it holds is not looked at, but has to be TOML.

    Variables are not looked up: `expanded` does that for each table.

    Raises: UnknownKey, ConfigError, also if the file is not there: an editor may be writing it.
    """
    try:
        text, tables = read_toml(path, unreadable=_NAME_A_FILE)
    except OSError as error:
        raise cannot_be_read(path, error, _NAME_A_FILE) from error
    return read_tables(path, text, tables.get(KEY, []))


def _require_own_names(path: Path, lines: Lines, tables: tuple[BackendTable, ...]) -> None:
    first: dict[str, BackendTable] = {}
    for table in tables:
        other = first.setdefault(table.name.casefold(), table)
        if other is not table:
            line = lines.of(KEY, table.number - 1, "name")
            raise ConfigError(
                f"{path}{'' if line is None else f':{line}'}: {table.label}: the name is taken by {other.label}"
                f" ({other.place})",
                hint="Names of backends are the same in any case.",
            )


class _Table:
    """One table as it is written, and where, so that what is wrong in it can be told."""

    def __init__(self, given: Mapping[str, Any], number: int, path: Path, lines: Lines) -> None:
        self._given = given
        self._number = number
        self._path = path
        self._lines = lines
        name = given.get("name")
        known = isinstance(name, str) and checks.NAME.fullmatch(name)
        self._label = f"{KEY}[{number + 1}]" + (f' "{name}"' if known else "")

    def read(self) -> BackendTable:
        """What it says.

        Raises: UnknownKey, ConfigError.
        """
        for key in self._given:
            if key not in _KEYS:
                raise self._unknown(key)
        transport = self._transport()
        for key in HTTP_KEYS if transport == "stdio" else STDIO_KEYS:
            if key in self._given:
                other = "http" if transport == "stdio" else "stdio"
                raise self._wrong((key,), f"{key} belongs to the transport {other}, and this one's is {transport}")
        table = BackendTable(
            name=self._name(),
            transport=transport,
            description=self._description(),
            command=self._command(),
            args=self._args(),
            cwd=self._folder(),
            env=self._pairs("env", checks.of_variable, checks.of_argument),
            url=self._text("url"),
            headers=self._pairs("headers", checks.of_header_name, checks.of_header_value),
            bearer_token=self._token(),
            read_only=self._switch("read_only"),
            trusted=self._switch("trusted"),
            allow=self._patterns("allow"),
            deny=self._patterns("deny"),
            save_results=self._switch("save_results"),
            place=self._short(),
            number=self._number + 1,
            **dict(self._numbers()),
        )
        self._require_right_url(table)
        return table

    def _unknown(self, key: str) -> UnknownKey:
        otherwise = f"A table holds {', '.join(_KEYS)}."
        hint = (
            f"Did you mean {_ELSEWHERE[key]}?" if key in _ELSEWHERE else did_you_mean(key, _KEYS, otherwise=otherwise)
        )
        if key in {"enabled", "disabled"}:
            hint = "A backend that is not wanted is taken out, or made a comment."
        return UnknownKey(f"{self._place(key)}: {self._label}: unknown key {key!r}", hint=hint)

    def _place(self, *keys: str) -> str:
        line = self._lines.of(KEY, self._number, *keys)
        return str(self._path) if line is None else f"{self._path}:{line}"

    def _short(self) -> str:
        """Where the table begins, with the name of the file alone: clients are told it."""
        line = self._lines.of(KEY, self._number)
        return self._path.name if line is None else f"{self._path.name}:{line}"

    def _wrong(self, keys: tuple[str, ...], why: str, hint: str = _HINT) -> ConfigError:
        return ConfigError(f"{self._place(*keys)}: {self._label}: {why}", hint=hint)

    def _transport(self) -> Wire:
        said = self._given.get("transport")
        has = [key for key in ("command", "url") if key in self._given]
        if said is None:
            if len(has) != 1:
                why = "says both `command` and `url`" if has else "needs `command` or `url`"
                raise self._wrong((), why, "A child process has a command, a server in the network a url.")
            return "stdio" if has == ["command"] else "http"
        if said in {"stdio", "http"}:
            needed = "command" if said == "stdio" else "url"
            if needed not in has:
                raise self._wrong(("transport",), f"the transport {said} needs `{needed}`")
            return "stdio" if said == "stdio" else "http"
        if said == "sse":
            raise self._wrong(
                ("transport",),
                "the transport sse is not supported: the protocol has given it up",
                'Ask the server for its Streamable HTTP address and write transport = "http".',
            )
        near = (
            did_you_mean(said, ("stdio", "http"), otherwise="It is stdio or http.") if isinstance(said, str) else None
        )
        raise self._wrong(("transport",), f"transport cannot be {said!r}", near or "It is stdio or http.")

    def _name(self) -> str:
        if "name" not in self._given:
            raise self._wrong((), "says nothing of `name`")
        name = self._given["name"]
        if not isinstance(name, str):
            raise self._wrong(("name",), f"name cannot be {name!r}: it is a text")
        if problem := checks.of_name(name):
            raise self._wrong(("name",), f"name cannot be {name!r}: it {problem}")
        return name

    def _description(self) -> str:
        text = self._text("description", empty=True).strip()
        if len(text) > LONGEST_DESCRIPTION:
            raise self._wrong(("description",), f"description is longer than {LONGEST_DESCRIPTION:,} characters")
        return text

    def _text(self, key: str, *, empty: bool = False) -> str:
        """A text, which may be a secret and is not shown; empty if there is none."""
        if key not in self._given:
            return ""
        value = self._given[key]
        if not isinstance(value, str):
            raise self._wrong((key,), f"{key} has to be a text in quotes")
        if not value.strip() and not empty:
            raise self._wrong((key,), f"{key} is empty")
        return value

    def _command(self) -> str:
        value = self._text("command")
        self._require(value, checks.of_command, "command")
        # A name alone is looked up on the PATH.
        is_path = value.startswith("~") or os.sep in value or (os.altsep is not None and os.altsep in value)
        return self._whole("command", value) if is_path else value

    def _folder(self) -> str | None:
        value = self._text("cwd")
        self._require(value, checks.of_argument, "cwd")
        return self._whole("cwd", value) if value else None

    def _whole(self, key: str, value: str) -> str:
        if re.match(r"\$?\$\{", value):
            # What it begins with is not known yet.
            return value
        try:
            return os.path.abspath(self._path.parent / Path(value).expanduser())  # noqa: PTH100 - a link stays in it
        except RuntimeError:
            raise self._wrong((key,), f"{key}: the home folder in it is not known", "Give the whole path.") from None

    def _args(self) -> tuple[str, ...]:
        value = self._given.get("args", [])
        if not isinstance(value, list) or not all(isinstance(each, str) for each in value):
            raise self._wrong(("args",), "args has to be a list of texts", 'As in args = ["-y", "some-package"].')
        for each in value:
            self._require(each, checks.of_argument, "args")
        return tuple(value)

    def _pairs(self, key: str, of_name: Check, of_value: Check) -> tuple[tuple[str, str], ...]:
        value = self._given.get(key, {})
        if not isinstance(value, dict):
            raise self._wrong((key,), f"{key} has to be a table", f'As in {key} = {{ NAME = "value" }}.')
        for name, each in value.items():
            if problem := of_name(name):
                raise self._wrong((key, name), f"{key}: {name!r} {problem}")
            if not isinstance(each, str):
                raise self._wrong((key, name), f"{key}.{name} has to be a text in quotes")
            self._require(each, of_value, key, name)
        names = [name.lower() for name in value]
        if key == "headers" and len(set(names)) < len(names):
            raise self._wrong((key,), "headers has a name twice: case does not count")
        return tuple(value.items())

    def _token(self) -> str | None:
        if "bearer_token" not in self._given:
            return None
        if any(name.lower() == "authorization" for name in self._given.get("headers", ())):
            raise self._wrong(("bearer_token",), "both bearer_token and headers.Authorization are given", "Keep one.")
        token = self._text("bearer_token")
        if token.lower().startswith("bearer "):
            raise self._wrong(("bearer_token",), "bearer_token begins with `Bearer`, which Agora writes itself")
        self._require(token, checks.of_header_value, "bearer_token")
        return token

    def _require(self, value: str, check: Check, *keys: str) -> None:
        """Return if what is written is right; what variables will bring in is checked when they do."""
        if value and not any(variables_in(value)) and (problem := check(value)):
            raise self._wrong(keys, f"{'.'.join(keys)} {problem}")

    def _require_right_url(self, table: BackendTable) -> None:
        self._require(table.url, lambda url: checks.of_url(url, secret=sends_secret(table)), "url")

    def _switch(self, key: str) -> bool:
        value = self._given.get(key, False)
        if not isinstance(value, bool):
            raise self._wrong((key,), f"{key} cannot be {value!r}: it is true or false")
        return value

    def _patterns(self, key: str) -> tuple[str, ...]:
        value = self._given.get(key, [])
        value = [value] if isinstance(value, str) else value
        if not isinstance(value, list) or not all(isinstance(each, str) for each in value):
            raise self._wrong((key,), f"{key} cannot be {value!r}: it is a text or a list of texts")
        for each in value:
            if problem := checks.of_pattern(each):
                raise self._wrong((key,), f"{key} cannot hold {each!r}: a pattern {problem}")
        return tuple(dict.fromkeys(value))

    def _numbers(self) -> Iterator[tuple[str, Any]]:
        for key, bounds in BOUNDS.items():
            if key not in self._given:
                continue
            value = self._given[key]
            right = isinstance(value, int if bounds.whole else int | float) and not isinstance(value, bool)
            # Not a number is neither less nor more.
            if not right or not bounds.least <= value <= bounds.most or (bounds.above and value == bounds.least):
                raise self._wrong((key,), f"{key} cannot be {_shown(value)}: it is {bounds.said()}")
            yield key, value if bounds.whole else float(value)


Check = Callable[[str], str | None]


def _shown(value: object) -> str:
    try:
        return repr(value)[:80]
    except ValueError:
        # A whole number with more digits than are written out.
        return "that"
