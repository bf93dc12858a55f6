"""Which servers of a client's file become backends, and what becomes of the others."""

from __future__ import annotations

import json
import re
import tomllib
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Literal

from agora.config.backend_reading import read_tables
from agora.config.backends import KEY, BackendTable, identity
from agora.config.variables import variables_in
from agora.errors import ConfigError, NotFound
from agora.exchange.servers.reading import ClientFile, Offered
from agora.exchange.servers.secrets import Secrets
from agora.exchange.servers.translating import Taken, starts_agora, taken
from agora.exchange.servers.variables import NotTaken
from agora.exchange.servers.writing import rendered
from agora.redaction.redactor import Redactor

_NAMED = re.compile(r"\$\{?(?:env:)?([A-Za-z_]\w*)")
_PLACE = re.compile(rf'.*?: {KEY}\[1\](?: "[^"]*")?: ', re.DOTALL)


@dataclass(frozen=True, slots=True)
class Row:
    """What becomes of one server: `imported`, or `skipped` and `refused` with the reason."""

    name: str
    """As the client's file has it."""
    fate: Literal["imported", "skipped", "refused"]
    reason: str = ""
    project: str | None = None
    backend: str = ""
    """The name that it has now, if it was imported."""
    transport: str = ""
    remarks: tuple[str, ...] = ()


@dataclass(slots=True)
class Plan:
    """What an import does. `text` is what is added to the file; `wanted` the variables to set, with who needs them."""

    rows: list[Row] = field(default_factory=list)
    text: str = ""
    wanted: list[tuple[str, str, str]] = field(default_factory=list)
    """Variable, backend, key."""


def plan(
    file: ClientFile,
    target: Path,
    there: Sequence[BackendTable],
    *,
    only: Collection[str] = (),
    with_secrets: bool = False,
) -> Plan:
    """What importing the servers of `file` into the configuration file `target`, with the backends `there`, does.

    `only`: names as the file has them; none for all. Nothing is written.

    Raises: NotFound if the file has none of a name in `only`.
    """
    names = [each.name for each in file.servers]
    for name in only:
        if name not in names:
            listed = ", ".join(dict.fromkeys(names)) or "none"
            raise NotFound(f"{file.path} has no server {name!r}", hint=f"It has: {listed}.")
    # What a variable stands for that has its name already is not known here: no other secret may have that name.
    values = dict.fromkeys((*_variables(there), *_named(file)), "\0")
    importing = _Importing(file, target, list(there), Secrets(Redactor(), kept=with_secrets, values=values))
    for offered in file.servers:
        if not only or offered.name in only:
            importing.add(offered)
    importing.plan.text = rendered(KEY, importing.tables) if importing.tables else ""
    return importing.plan


class _Importing:
    def __init__(self, file: ClientFile, target: Path, there: list[BackendTable], secrets: Secrets) -> None:
        self._file = file
        self._target = target
        self._there = there
        self._secrets = secrets
        self.plan = Plan()
        self.tables: list[dict[str, Any]] = []

    def add(self, offered: Offered) -> None:
        if reason := _not_wanted(offered):
            self._row(offered, "skipped", reason)
            return
        try:
            found = taken(offered, self._file, self._secrets)
            table = self._read(found)
        except NotTaken as error:
            self._row(offered, "refused", str(error))
            return
        if reason := self._is_there(table):
            self._row(offered, "skipped", reason)
            return
        self._there.append(table)
        self.tables.append(found.table)
        self.plan.wanted += [(variable, table.name, key) for variable, key in found.wanted]
        twice = ("is in the file twice: the last one counts",) if offered.twice else ()
        self.plan.rows.append(
            Row(offered.name, "imported", "", offered.project, table.name, table.transport, (*twice, *found.remarks))
        )

    def _row(self, offered: Offered, fate: Literal["skipped", "refused"], reason: str) -> None:
        self.plan.rows.append(Row(offered.name, fate, reason, offered.project))

    def _read(self, found: Taken) -> BackendTable:
        """The table as Agora will read it.

        Raises: NotTaken if it will not.
        """
        text = rendered(KEY, [found.table])
        try:
            (table,) = read_tables(self._target, text, tomllib.loads(text)[KEY])
        except ConfigError as error:
            raise NotTaken(_PLACE.sub("", error.message, count=1)) from None
        # Where it will stand is not known yet.
        return replace(table, place="", number=len(self._there) + 1)

    def _is_there(self, table: BackendTable) -> str | None:
        """Why there is no need or no room for it."""
        for other in self._there:
            where = f"{other.label} ({other.place})" if other.place else other.label
            if other.name.casefold() == table.name.casefold():
                same = "is there already" if identity(other) == identity(table) else "its name is taken"
                return f"{same}: {where}"
            if _reached(other) == _reached(table):
                return f"is there already under another name: {where}"
        return None


def _not_wanted(offered: Offered) -> str | None:
    if offered.disabled:
        return "is switched off there"
    return "is Agora itself" if starts_agora(offered) else None


def _reached(table: BackendTable) -> tuple[object, ...]:
    return identity(table), sorted(table.env), sorted(table.headers), table.bearer_token


def _variables(tables: Sequence[BackendTable]) -> Iterator[str]:
    """Every variable that backends which are there name."""
    for table in tables:
        values = (*dict(table.env).values(), *dict(table.headers).values())
        for text in (table.command, table.cwd or "", *table.args, table.url, table.bearer_token or "", *values):
            yield from (name for name, _ in variables_in(text))


def _named(file: ClientFile) -> Iterator[str]:
    """Every variable that the servers of the file name, in whatever form."""
    for each in file.servers:
        yield from _NAMED.findall(json.dumps(each.given, default=str))
        yield from map(str, (each.given.get("bearer_token_env_var"), *_listed(each.given.get("env_vars"))))
        headers = each.given.get("env_http_headers")
        yield from map(str, headers.values()) if isinstance(headers, Mapping) else ()


def _listed(value: object) -> list[object]:
    return value if isinstance(value, list) else []
