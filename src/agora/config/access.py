"""The tables `[[access]]` of `agora.toml`: who may do what in which namespaces, as they are written.

What they mean is in `agora.model.access`.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from agora.config.project import canonical_namespace
from agora.config.suggest import did_you_mean
from agora.errors import ConfigError, InvalidNamespace, UnknownKey

KEY = "access"
"""Name of the tables."""

OWN = "{own}"
"""Stands for the connection's own project; no namespace can have this name."""

RIGHTS = ("read", "write", "admin")
"""Each holds those before it."""

EVERY = "*"

_KEYS = ("tokens", "clients", "local", "any", "namespaces", "rights", "backends")
_HINT = "docs/access.md shows what a table holds; `agora access` shows what the tables come to."
_HEADER = re.compile(r"\s*\[\[\s*[\"']?access[\"']?\s*\]\]")
_ANY_HEADER = re.compile(r"\s*\[")
_TOKEN = re.compile(r"[A-Za-z0-9._-]{1,64}")
_BACKEND = re.compile(r"[A-Za-z0-9._*-]{1,64}")
_LONGEST_CLIENT = 128

_STAR = "\N{CYRILLIC LETTER MULTIOCULAR O}"
"""A letter that stands for `*` while a pattern is brought into the form of names; no pattern may have it itself."""


@dataclass(frozen=True, slots=True)
class AccessTable:
    """One table. `tokens`, `local` and `any` say to whom it gives; one that names `clients` takes instead.

    `namespaces` holds names in canonical form, patterns with `*`, and `{own}`. `rights` is one of `RIGHTS`. `backends`
    holds names of other servers in lower case and patterns with `*`.
    """

    namespaces: tuple[str, ...]
    rights: str
    tokens: tuple[str, ...] = ()
    clients: tuple[str, ...] = ()
    local: bool = False
    any: bool = False
    backends: tuple[str, ...] = ()
    place: str = field(default="", compare=False)
    """File and line, as a reader is shown them; tables are equal wherever they stand."""

    @property
    def gives(self) -> bool:
        """Whether it gives rights; else it says how few a program of that name keeps."""
        return not self.clients


def read_tables(path: Path, text: str, value: object) -> tuple[AccessTable, ...]:
    """The tables that the file at `path` with the contents `text` holds, of which `value` was parsed.

    Raises: UnknownKey, ConfigError; messages begin with file and line.
    """
    lines = _Lines(path, text)
    if not isinstance(value, list) or not all(isinstance(table, dict) for table in value):
        raise ConfigError(f"{lines.of(0)}: {KEY} is a list of tables", hint=f"Write [[{KEY}]] above each table.")
    tables = tuple(_Table(table, number, lines).read() for number, table in enumerate(value))
    if tables and not any(table.gives for table in tables):
        raise ConfigError(
            f"{lines.of(0)}: no table of {KEY} gives anybody anything: a table that names `clients` only takes",
            hint="Add one with `tokens`, `local` or `any` and without `clients`.",
        )
    return tables


class _Lines:
    """Where in the file each table and each of its keys stands."""

    def __init__(self, path: Path, text: str) -> None:
        self._path = path
        self._lines = text.splitlines()
        self._starts = [number for number, line in enumerate(self._lines) if _HEADER.match(line)]

    def of(self, table: int, key: str | None = None) -> str:
        """`path:line`, or the path alone where the tables are written in another way."""
        number = self._number(table, key)
        return str(self._path) if number is None else f"{self._path}:{number}"

    def short(self, table: int) -> str:
        """As `of`, with the name of the file alone: it is told to clients."""
        number = self._number(table, None)
        return self._path.name if number is None else f"{self._path.name}:{number}"

    def _number(self, table: int, key: str | None) -> int | None:
        if table >= len(self._starts):
            return None
        start = self._starts[table]
        for number, line in enumerate(self._lines[start + 1 :], start + 2):
            if _ANY_HEADER.match(line):
                break
            if key is not None and re.match(rf"\s*[\"']?{re.escape(key)}[\"']?\s*=", line):
                return number
        return start + 1


class _Table:
    """One table as it is written, and where, so that what is wrong in it can be told."""

    def __init__(self, given: Mapping[str, Any], number: int, lines: _Lines) -> None:
        self._given = given
        self._number = number
        self._lines = lines
        self._name = f"{KEY}[{number + 1}]"

    def read(self) -> AccessTable:
        """What it says.

        Raises: UnknownKey, ConfigError.
        """
        for key in self._given:
            if key not in _KEYS:
                raise UnknownKey(
                    f"{self._lines.of(self._number, key)}: unknown key {key!r} of {self._name}",
                    hint=did_you_mean(key, _KEYS, otherwise=f"A table holds {', '.join(_KEYS)}."),
                )
        for key in ("namespaces", "rights"):
            if key not in self._given:
                raise self._wrong(None, f"says nothing of `{key}`")
        table = AccessTable(
            namespaces=tuple(dict.fromkeys(map(self._namespace, self._texts("namespaces")))),
            rights=max(map(self._right, self._texts("rights")), key=RIGHTS.index),
            tokens=tuple(map(self._token, self._texts("tokens"))),
            clients=tuple(map(self._client, self._texts("clients"))),
            local=self._switch("local"),
            any=self._switch("any"),
            backends=tuple(dict.fromkeys(map(self._backend, self._texts("backends")))),
            place=self._lines.short(self._number),
        )
        if not (table.tokens or table.clients or table.local or table.any):
            raise self._wrong(None, "says for nobody: it needs `tokens`, `clients`, `local = true` or `any = true`")
        return table

    def _wrong(self, key: str | None, why: str, hint: str = _HINT) -> ConfigError:
        what = self._name if key is None else f"{self._name}.{key}"
        return ConfigError(f"{self._lines.of(self._number, key)}: {what} {why}", hint=hint)

    def _texts(self, key: str) -> list[str]:
        if key not in self._given:
            return []
        value = self._given[key]
        value = [value] if isinstance(value, str) else value
        if not isinstance(value, list) or not all(isinstance(each, str) for each in value):
            raise self._wrong(key, f"cannot be {value!r}: it is a text or a list of texts")
        if not value:
            raise self._wrong(key, "is empty")
        return value

    def _switch(self, key: str) -> bool:
        value = self._given.get(key, False)
        if not isinstance(value, bool):
            raise self._wrong(key, f"cannot be {value!r}: it is true or false")
        return value

    def _token(self, name: str) -> str:
        if name != EVERY and not _TOKEN.fullmatch(name):
            raise self._wrong("tokens", f"cannot hold {name!r}: a token's name has letters, digits and . _ -")
        return name

    def _client(self, name: str) -> str:
        if not name.strip() or len(name) > _LONGEST_CLIENT:
            raise self._wrong("clients", f"cannot hold {name!r}: a name has 1 to {_LONGEST_CLIENT} characters")
        return name.strip().casefold()

    def _backend(self, name: str) -> str:
        if not _BACKEND.fullmatch(name.strip()):
            raise self._wrong("backends", f"cannot hold {name!r}: a backend's name has letters, digits and . _ -")
        return name.strip().casefold()

    def _right(self, name: str) -> str:
        if name not in RIGHTS:
            every = f"Write {', '.join(RIGHTS)}; each holds those before it."
            raise self._wrong("rights", f"cannot hold {name!r}", did_you_mean(name, RIGHTS, otherwise=every))
        return name

    def _namespace(self, written: str) -> str:
        try:
            return _pattern(written)
        except InvalidNamespace as error:
            raise self._wrong("namespaces", f"cannot hold {written!r}: {error.reason}", error.hint or _HINT) from None


def _pattern(written: str) -> str:
    """A name or a pattern in the form in which names are compared.

    Raises: InvalidNamespace.
    """
    if written.strip() == OWN:
        return OWN
    if written.strip().strip("{}<>$").casefold() == "own":
        raise InvalidNamespace("namespace", "the connection's own project is written in braces", hint=f"Write {OWN}.")
    if _STAR in written:
        raise InvalidNamespace("namespace", f"may not contain {_STAR!r}")
    return canonical_namespace(written.replace("*", _STAR)).replace(_STAR, "*")


def names_of(tables: Sequence[AccessTable]) -> frozenset[str]:
    """Every name of a token that the tables know, without `*`."""
    return frozenset(token for table in tables for token in table.tokens) - {EVERY}
