from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from types import MappingProxyType
from typing import Any, NamedTuple

from pydantic import ValidationError

from agora.config.settings import SETTINGS, Settings, plain, value_of
from agora.config.sources import CONFIG_VARIABLE, Found, from_environment, from_file, from_options
from agora.errors import ConfigError

FILE_NAME = "agora.toml"
"""Name of the configuration file in the data folder."""

_NONE: Mapping[str, Any] = MappingProxyType({})


class Row(NamedTuple):
    """One setting as `agora config` shows it: `value` is plain data, a secret is stars."""

    key: str
    value: str | int | float | None
    source: str
    help: str


@dataclass(frozen=True, slots=True)
class Loaded:
    """The settings of this run, where each came from, and the file that was read, if any.

    `sources` maps every dotted key to `default`, a variable, an option or the path of the file.
    """

    settings: Settings
    sources: Mapping[str, str]
    file: Path | None

    @property
    def place(self) -> Path:
        """The configuration file, whether it is there or not."""
        return self.file or self.settings.home / FILE_NAME

    def rows(self) -> list[Row]:
        """Every setting in the order of the documentation."""
        return [Row(key, plain(value_of(self.settings, key)), self.sources[key], text) for key, _, _, text in SETTINGS]


def load_settings(
    cli: Mapping[str, Any] = _NONE, env: Mapping[str, str] | None = None, *, folder: Path | None = None
) -> Loaded:
    """The settings that hold: command line over `AGORA_*` variables over `agora.toml` over defaults.

    `cli` maps dotted keys to values, None for an option that was not given; `config` names the file as
    AGORA_CONFIG does. `env` stands in for the environment of the process, `folder` for the folder that it works in,
    which relative paths start from. Nothing is created or written.

    Raises: UnknownKey with the nearest name; ConfigError with the place of the mistake.
    """
    env = os.environ if env is None else env
    folder = folder or Path.cwd()
    given = {key: value for key, value in cli.items() if key != "config"}
    above = from_environment(env) | from_options(given)
    named = cli.get("config") or env.get(CONFIG_VARIABLE, "").strip() or None
    home = _absolute(above["home"].value, folder) if "home" in above else Settings().home
    file = _absolute(named, folder) if named else home / FILE_NAME
    read = from_file(file, env, required=named is not None)
    below = read or {}
    if "home" in below and not named:
        raise ConfigError(
            f"{below['home'].where}: home cannot be set in the file that lies in it",
            hint=f"Set AGORA_HOME, or name a file elsewhere by {CONFIG_VARIABLE}.",
        )
    if "home" in below and "home" not in above and isinstance(below["home"].value, str):
        home = _absolute(below["home"].value, file.parent)
    found = _placed(below, file.parent) | _placed(above, folder)
    settings = _validated(found).model_copy(update={"home": home})
    sources = {key: found[key].source if key in found else "default" for key, *_ in SETTINGS}
    return Loaded(settings, MappingProxyType(sources), None if read is None else file)


def _placed(found: Mapping[str, Found], base: Path) -> dict[str, Found]:
    """The same values, relative paths made absolute: a server that sessions share works in none of their folders."""
    placed = dict(found)
    for key in _PATHS:
        item = found.get(key)
        if item is None or not isinstance(item.value, str):
            continue
        # A model that is no path is named without a separator, or begins with a scheme.
        is_path = key != "embedding.model" or (any(mark in item.value for mark in "/\\") and ":" not in item.value[2:])
        if item.value.strip() and is_path:
            placed[key] = replace(item, value=str(_absolute(item.value.strip(), base)))
    return placed


_PATHS = ("prompts.folder", "embedding.model")


def _absolute(path: str | Path, base: Path) -> Path:
    # Not `resolve`: a link that the user chose stays in every path that is shown to them.
    try:
        return Path(os.path.abspath(base / Path(path).expanduser()))  # noqa: PTH100 - as above
    except RuntimeError as error:
        raise ConfigError(f"{path}: the home folder in it is not known", hint="Give the whole path.") from error


def _validated(found: Mapping[str, Found]) -> Settings:
    tables: dict[str, Any] = {}
    for key, item in found.items():
        *sections, name = key.split(".")
        table = tables
        for section in sections:
            table = table.setdefault(section, {})
        table[name] = item.value
    try:
        return Settings.model_validate(tables)
    except ValidationError as error:
        problems = error.errors(include_url=False, include_input=False)
        lines = [_problem([str(part) for part in item["loc"]], item["msg"], found) for item in problems]
        raise ConfigError("; ".join(lines), hint="`agora config` shows what each setting means.") from None


def _problem(location: list[str], message: str, found: Mapping[str, Found]) -> str:
    # A value of a wrong shape may be reported at a part of it.
    key = next(".".join(location[:end]) for end in (1, 2, 3) if ".".join(location[:end]) in found)
    item = found[key]
    said = message.removeprefix("Value error, ")
    said = said[:1].lower() + said[1:]
    return f"{item.where}: {key} cannot be {item.written!r}: {said}"
