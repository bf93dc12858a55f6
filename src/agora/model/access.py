"""What a connection may do in which namespace, by the tables `[[access]]`.

Tables without `clients` give, and what they give adds up. Tables with `clients` take: a program that calls itself so
keeps no more than they hold, out of what the others give. So a name that a program gives itself is never worth more
than none.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any, Literal, cast

from agora.config.access import EVERY, OWN, RIGHTS, AccessTable

Right = Literal["read", "write", "admin"]

Door = Literal["command", "local", "http"]
"""How somebody comes in: as a command of the user, as a session of this machine's user, or over HTTP."""

Program = tuple[str, ...]
"""What the tables know a program by: the patterns of theirs that its name fits, sorted."""

_LEVEL = {right: number for number, right in enumerate(RIGHTS, 1)}
_REMEMBERED = 4_096
"""Namespaces whose rights one connection's `Grants` remember."""

_SHOWN = 20
"""Patterns of one table that a status names."""


@dataclass(frozen=True, slots=True)
class Allowance:
    """What one table holds for one connection: in the namespaces that fit `patterns`, as much as `level`."""

    table: int
    place: str
    patterns: tuple[str, ...]
    level: int
    backends: tuple[str, ...] = ()
    """Patterns of names of other servers."""

    @property
    def everywhere(self) -> bool:
        """Whether there is no namespace that it does not hold."""
        return EVERY in self.patterns

    def details(self) -> dict[str, Any]:
        """As plain data."""
        shown = list(self.patterns[:_SHOWN])
        more = {"more_namespaces": len(self.patterns) - _SHOWN} if len(self.patterns) > _SHOWN else {}
        return {
            "table": self.table,
            "place": self.place,
            "namespaces": shown,
            **more,
            "rights": RIGHTS[self.level - 1],
            **({"backends": list(self.backends[:_SHOWN])} if self.backends else {}),
        }


class _Levels:
    """How much some tables hold together, in a form in which a name is looked up quickly."""

    __slots__ = ("_names", "_patterns")

    def __init__(self, tables: Sequence[Allowance]) -> None:
        self._names: dict[str, int] = {}
        patterns: dict[str, int] = {}
        for table in tables:
            for pattern in table.patterns:
                known = patterns if "*" in pattern else self._names
                known[pattern] = max(table.level, known.get(pattern, 0))
        # What holds most comes first: the first that fits is the most that the name has by a pattern.
        self._patterns = sorted(((level, *_pieces(pattern)) for pattern, level in patterns.items()), reverse=True)

    def level(self, namespace: str) -> int:
        """How much they hold there."""
        level = self._names.get(namespace, 0)
        for held, first, last, middle in self._patterns:
            if held <= level:
                break
            if namespace.startswith(first) and namespace.endswith(last) and _between(namespace, first, last, middle):
                return held
        return level


@dataclass(frozen=True, slots=True)
class Grants:
    """The rights of a connection: the most that one of `given` holds, and at most what each group of `limits` holds.

    `who` says in words whose they are. `identity` is by what its own notes are known: the name of its token, empty
    for this machine's user, None for somebody of whom nothing is known. `tables`: whether there are any tables.
    """

    who: str
    identity: str | None
    given: tuple[Allowance, ...]
    limits: tuple[tuple[Allowance, ...], ...] = ()
    tables: bool = True
    _known: dict[str, int] = field(default_factory=dict, compare=False, repr=False)
    _once: dict[str, Any] = field(default_factory=dict, compare=False, repr=False)

    def level(self, namespace: str) -> int:
        """How much is allowed there: 0 nothing, 1 read, 2 write, 3 admin."""
        if (level := self._known.get(namespace)) is not None:
            return level
        level = min(each.level(namespace) for each in self._levels())
        if len(self._known) >= _REMEMBERED:
            # Whoever makes up names must not fill the memory.
            self._known.clear()
        self._known[namespace] = level
        return level

    def _levels(self) -> tuple[_Levels, ...]:
        """What gives, then what limits."""
        if (found := self._once.get("levels")) is None:
            found = self._once["levels"] = tuple(map(_Levels, (self.given, *self.limits)))
        return cast("tuple[_Levels, ...]", found)

    def may(self, right: Right, namespace: str) -> bool:
        """Whether that is allowed there."""
        return self.level(namespace) >= _LEVEL[right]

    def may_call(self, backend: str) -> bool:
        """Whether that backend may be known of and its tools be called."""
        name = backend.casefold()
        groups = (self.given, *self.limits)
        return all(any(fits(pattern, name) for each in group for pattern in each.backends) for group in groups)

    @property
    def whole(self) -> bool:
        """Whether there is no namespace that may not be read, so that no number of the store is a secret."""
        return all(any(each.everywhere for each in group) for group in (self.given, *self.limits))

    def named(self) -> frozenset[str]:
        """The namespaces that the tables name one by one, and that may be read."""
        if (found := self._once.get("named")) is None:
            names = {pattern for each in self.given for pattern in each.patterns if "*" not in pattern}
            found = self._once["named"] = frozenset(name for name in names if self.level(name))
        return cast("frozenset[str]", found)

    @property
    def mark(self) -> str:
        """Equal for connections that may do the same, and for nobody else."""
        if not self.tables:
            return ""
        if (found := self._once.get("mark")) is None:
            found = self._once["mark"] = repr((self._bare(self.given), *map(self._bare, self.limits)))
        return cast("str", found)

    def details(self) -> dict[str, Any]:
        """Which tables apply, as plain data."""
        if not self.tables:
            rule = (
                "everything" if self.who == _COMMAND else "no [[access]] tables: its project, shared, and what it names"
            )
            return {"who": self.who, "rule": rule}
        found: dict[str, Any] = {"who": self.who, "given_by": [each.details() for each in self.given]}
        if self.limits:
            found["limited_by"] = [each.details() for group in self.limits for each in group]
        return found

    @staticmethod
    def _bare(group: Sequence[Allowance]) -> tuple[tuple[tuple[str, ...], int], ...]:
        return tuple(sorted((tuple(sorted(each.patterns)), each.level) for each in group))


_COMMAND = "a command of this machine's user"
_LOCAL = "a session of this machine's user"
_ALL = (Allowance(0, "", (EVERY,), _LEVEL["admin"], (EVERY,)),)

EVERYTHING = Grants(_LOCAL, "", _ALL, tables=False)
"""Where there are no tables, and for the commands: every right in every namespace that is named."""


class Policy:
    """The tables, and what they come to for each connection. Immutable.

    Of what a program calls itself only the patterns of tables that it fits are kept: of these there are few, and of
    names as many as somebody likes to make up.
    """

    def __init__(self, tables: Sequence[AccessTable] = ()) -> None:
        """Without tables everything is allowed to everybody."""
        self._tables = tuple(enumerate(tables, 1))
        self._clients = tuple(sorted({pattern for table in tables for pattern in table.clients}))
        # A connection asks at every call, and there are few different ones.
        self._of = lru_cache(1_024)(self._grants)

    def grants(self, door: Door, token: str, clients: Iterable[str], own: str) -> Grants:
        """What a connection may do that came by `door` with the token of that name, if any.

        `clients` are the names that its programs give themselves, `own` is the namespace of its own project.
        """
        return self._of(door, token, self.known(clients), own)

    def granted(self, door: Door, token: str, programs: frozenset[Program], own: str) -> Grants:
        """As `grants`, for programs that are `known`."""
        return self._of(door, token, programs, own)

    def known(self, clients: Iterable[str]) -> frozenset[Program]:
        """What the tables know programs with these names by; nothing for one of which no table says anything."""
        if not self._clients:
            return frozenset()
        return frozenset(filter(None, (self._program(client.casefold()) for client in clients)))

    def _program(self, name: str) -> Program:
        return tuple(pattern for pattern in self._clients if fits(pattern, name))

    def _grants(self, door: Door, token: str, programs: frozenset[Program], own: str) -> Grants:
        who = _who(door, token)
        identity = token or ("" if door != "http" else None)
        if door == "command" or not self._tables:
            return Grants(who, identity, _ALL, tables=False)
        mine = [(number, table) for number, table in self._tables if _is_for(table, door, token)]
        given = tuple(_allowance(number, table, own) for number, table in mine if table.gives)
        groups = []
        for program in sorted(programs):
            group = [(n, table) for n, table in mine if not set(program).isdisjoint(table.clients)]
            if group:
                groups.append(tuple(_allowance(n, table, own) for n, table in group))
        return Grants(who, identity, given, tuple(groups))


def fits(pattern: str, name: str) -> bool:
    """Whether `name` is what `pattern` says, where each `*` stands for any characters, or none."""
    if "*" not in pattern:
        return pattern == name
    first, last, middle = _pieces(pattern)
    return name.startswith(first) and name.endswith(last) and _between(name, first, last, middle)


@lru_cache(4_096)
def _pieces(pattern: str) -> tuple[str, str, tuple[str, ...]]:
    """What stands before the first `*` of a pattern, after its last, and between these."""
    first, *middle, last = pattern.split("*")
    return first, last, tuple(filter(None, middle))


def _between(name: str, first: str, last: str, middle: Sequence[str]) -> bool:
    """Whether there is room for all pieces in a name that begins with `first` and ends with `last`."""
    at, end = len(first), len(name) - len(last)
    if end < at:
        return False
    # The earliest place of each piece leaves the most room for those after it.
    for piece in middle:
        found = name.find(piece, at, end)
        if found < 0:
            return False
        at = found + len(piece)
    return True


def _is_for(table: AccessTable, door: Door, token: str) -> bool:
    if table.any or (table.clients and not table.tokens and not table.local):
        return True
    if door == "local":
        return table.local
    return bool(token) and (token in table.tokens or EVERY in table.tokens)


def _allowance(number: int, table: AccessTable, own: str) -> Allowance:
    patterns = tuple(own if pattern == OWN else pattern for pattern in table.namespaces)
    return Allowance(number, table.place, patterns, _LEVEL[table.rights], table.backends)


def _who(door: Door, token: str) -> str:
    if door == "http":
        return f"token {token}" if token else "HTTP without a token"
    return _COMMAND if door == "command" else _LOCAL
