from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from agora.config import access, backend_reading
from agora.config.backends import KEY as BACKENDS
from agora.config.settings import SECTIONS, SETTINGS
from agora.config.suggest import did_you_mean, nearest
from agora.config.toml_file import cannot_be_read, read_toml
from agora.config.variables import expand
from agora.errors import ConfigError, UnknownKey

KEYS = tuple(setting.key for setting in SETTINGS)
VARIABLES = {setting.variable: setting.key for setting in SETTINGS}
CONFIG_VARIABLE = "AGORA_CONFIG"
"""Names the configuration file; it is no setting, since no file could hold it."""

_PREFIX = "AGORA_"
# Options whose name is shorter than the setting's.
_OPTIONS = {"namespace.default": "--namespace"}
_ALL = "Run `agora config` to see every setting."


@dataclass(frozen=True, slots=True)
class Found:
    """A value as one source gives it."""

    value: Any
    source: str
    """What `agora config` shows: a variable, an option or the path of the file."""
    where: str
    """What an error message shows: as `source`, for a file with the line."""
    written: object
    """The value before `${VAR}` was replaced: an error message must not show a secret."""


def from_options(options: Mapping[str, Any]) -> dict[str, Found]:
    """Values from the command line, by dotted key; None stands for an option that was not given.

    Raises: UnknownKey.
    """
    found: dict[str, Found] = {}
    for key, value in options.items():
        if key not in KEYS:
            raise UnknownKey(f"unknown setting {key!r}", hint=did_you_mean(key, KEYS, otherwise=_ALL))
        if value is not None:
            # Only a command that is about the encoder has options for it.
            name = key.removeprefix("embedding.").replace(".", "-").replace("_", "-")
            option = _OPTIONS.get(key, "--" + name)
            found[key] = Found(value, option, option, value)
    return found


def from_environment(env: Mapping[str, str]) -> dict[str, Found]:
    """Values from `AGORA_*` variables, by dotted key; an empty variable counts as not set.

    Raises: UnknownKey if a variable begins with AGORA_ and names no setting.
    """
    found: dict[str, Found] = {}
    for name, value in sorted(env.items()):
        if not name.startswith(_PREFIX) or name == CONFIG_VARIABLE:
            continue
        if name not in VARIABLES:
            # The prefix is alike in all of them and says nothing about what was meant.
            like = nearest(
                name.removeprefix(_PREFIX),
                [known.removeprefix(_PREFIX) for known in (*VARIABLES, CONFIG_VARIABLE)],
            )
            hint = _ALL if like is None else f"Did you mean {_PREFIX}{like}?"
            raise UnknownKey(f"unknown environment variable {name}", hint=hint)
        if value.strip():
            found[VARIABLES[name]] = Found(value, name, name, value)
    return found


def from_file(path: Path, env: Mapping[str, str], *, required: bool) -> dict[str, Found] | None:
    """Values from the TOML file at `path`, by dotted key, each `${VAR}` replaced by the variable of `env`.

    None if there is no such file and it is not `required`.

    Raises: UnknownKey; ConfigError if the file cannot be read, is no TOML, or names a variable that is
    not set. Messages begin with file and line.
    """
    try:
        text, tables = read_toml(path, unreadable=_NAME_A_FILE)
    except (FileNotFoundError, NotADirectoryError) as error:
        if not required:
            return None
        raise cannot_be_read(path, error, _NAME_A_FILE) from error
    found: dict[str, Found] = {}
    for key, value in _leaves(path, text, tables):
        where = _place(path, text, key)
        expanded = _expand(value, key, where, env) if isinstance(value, str) else value
        found[key] = Found(expanded, str(path), where, value)
    return found


_NAME_A_FILE = f"Point {CONFIG_VARIABLE} at a file that can be read, or unset it."
_HEADER = re.compile(r"\s*\[\[?\s*(?P<table>[^\[\]]+?)\s*\]")
_KEY = re.compile(r"\s*(?P<key>[^=#\[]+?)\s*=")


def _leaves(path: Path, text: str, tables: Mapping[str, Any], prefix: str = "") -> Iterator[tuple[str, Any]]:
    for name, value in tables.items():
        key = prefix + name
        if key in SECTIONS:
            if not isinstance(value, dict):
                raise ConfigError(
                    f"{_place(path, text, key)}: {key} is a table, not a value",
                    hint=f"Write [{key}] on a line of its own and its settings below it.",
                )
            yield from _leaves(path, text, value, f"{key}.")
        elif key in KEYS:
            yield key, value
        elif key == access.KEY:
            yield key, access.read_tables(path, text, value)
        elif key == BACKENDS:
            yield key, backend_reading.read_tables(path, text, value)
        else:
            raise UnknownKey(
                f"{_place(path, text, key)}: unknown setting {key!r}",
                hint=did_you_mean(key, (*KEYS, *sorted(SECTIONS), access.KEY, BACKENDS), otherwise=_ALL),
            )


def _expand(text: str, key: str, where: str, env: Mapping[str, str]) -> str:
    def missing(name: str) -> ConfigError:
        return ConfigError(
            f"{where}: {key} needs the environment variable {name!r}, which is not set",
            hint="Set the variable, or write $${...} for the characters themselves.",
        )

    return expand(text, env, missing)


def _place(path: Path, text: str, key: str) -> str:
    """`path:line` of the line that sets `key` or opens it as a table; `path` alone if none is found."""
    table = ""
    for number, line in enumerate(text.splitlines(), 1):
        header, setting = _HEADER.match(line), _KEY.match(line)
        if header:
            table = header["table"]
        here = table if header else _join(table, setting["key"]) if setting else None
        if here is not None and (here == key or here.startswith(f"{key}.")):
            return f"{path}:{number}"
    return str(path)


def _join(table: str, key: str) -> str:
    name = key.strip("\"'")
    return f"{table}.{name}" if table else name
