from __future__ import annotations

import re
import tomllib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from agora.config import access
from agora.config.settings import SECTIONS, SETTINGS
from agora.config.suggest import did_you_mean, nearest
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
        # Windows editors put a byte order mark before the text.
        text = path.read_bytes().decode("utf-8-sig")
    except OSError as error:
        if not required and isinstance(error, FileNotFoundError | NotADirectoryError):
            return None
        raise ConfigError(f"{path}: cannot be read: {error.strerror or error}", hint=_NAME_A_FILE) from error
    except UnicodeDecodeError as error:
        raise ConfigError(f"{path}: is not UTF-8 text", hint="Save the file as UTF-8.") from error
    try:
        tables = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise _not_toml(path, text, error) from error
    found: dict[str, Found] = {}
    for key, value in _leaves(path, text, tables):
        where = _place(path, text, key)
        expanded = _expand(value, key, where, env) if isinstance(value, str) else value
        found[key] = Found(expanded, str(path), where, value)
    return found


_NAME_A_FILE = f"Point {CONFIG_VARIABLE} at a file that can be read, or unset it."
_VARIABLE = re.compile(r"\$(?P<literal>\$)?\{(?P<name>[^}]*)\}")
_HEADER = re.compile(r"\s*\[\[?\s*(?P<table>[^\[\]]+?)\s*\]")
_KEY = re.compile(r"\s*(?P<key>[^=#\[]+?)\s*=")
_PLACE = re.compile(r"\s*\(at line (?P<line>\d+), column \d+\)|\s*\(at end of document\)")


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
        else:
            raise UnknownKey(
                f"{_place(path, text, key)}: unknown setting {key!r}",
                hint=did_you_mean(key, (*KEYS, *sorted(SECTIONS), access.KEY), otherwise=_ALL),
            )


def _expand(text: str, key: str, where: str, env: Mapping[str, str]) -> str:
    def replaced(match: re.Match[str]) -> str:
        if match["literal"]:
            return match[0][1:]
        try:
            return env[match["name"]]
        except KeyError:
            raise ConfigError(
                f"{where}: {key} needs the environment variable {match['name']!r}, which is not set",
                hint="Set the variable, or write $${...} for the characters themselves.",
            ) from None

    return _VARIABLE.sub(replaced, text)


def _not_toml(path: Path, text: str, error: tomllib.TOMLDecodeError) -> ConfigError:
    message = str(error)
    place = _PLACE.search(message)
    line = (place and place["line"]) or text.count("\n") + 1
    return ConfigError(
        f"{path}:{line}: is no valid TOML: {_PLACE.sub('', message)}",
        hint='A text value needs quotes, as in level = "info".',
    )


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
