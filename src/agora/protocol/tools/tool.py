"""What a row of the table of tools is made of."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from agora.protocol.fence import FENCE, FENCE_END
from agora.protocol.schemas import Schema


def named(given: Mapping[str, Any]) -> str | None:
    """The namespace that a call names; None if it names none."""
    found: str | None = given.get("namespace")
    return found


@dataclass(frozen=True, slots=True)
class Tool:
    """One tool. `claims` names the arguments by which a call says who it is.

    `recalled` names the members of its result that hold what somebody saved: texts, titles, tags, names of agents,
    or what a backend answered. `verbatim` names the arguments in which nothing is looked for: what goes to a backend as
    it is, secrets too, and tokens of ours; nothing of them is kept. `open_world`: that it reaches beyond Agora's own
    store. `nulls` says of arguments what whoever gives null for them may mean to do. `pair` names an argument that is a
    name and the one that is what has that name: what is called a password is taken for one. `place` finds the namespace
    that a call names.
    """

    name: str
    title: str
    description: str
    input: Schema
    output: Schema
    read_only: bool = False
    destructive: bool = False
    idempotent: bool = False
    open_world: bool = False
    claims: tuple[str, ...] = field(default=())
    recalled: tuple[str, ...] = field(default=())
    verbatim: tuple[str, ...] = field(default=())
    nulls: Mapping[str, str] = field(default_factory=dict)
    pair: tuple[str, str] | None = None
    place: Callable[[Mapping[str, Any]], str | None] = named


STRINGS: Schema = {"type": "array", "items": {"type": "string"}}
ROWS: Schema = {"type": "array", "items": {"type": "object"}}
INTEGER: Schema = {"type": "integer"}
STRING: Schema = {"type": "string"}
OBJECT: Schema = {"type": "object"}
COUNTS: Schema = {"type": "object", "additionalProperties": {"type": "integer"}}


COMMON: Schema = {
    FENCE: STRING,
    "namespace": STRING,
    "namespace_rule": STRING,
    "redacted": COUNTS,
    "error": {"type": "object"},
    FENCE_END: STRING,
}
"""What may stand in the result of every tool; the marks of the fence where it holds what somebody saved."""


def out(**properties: Schema) -> Schema:
    """Schema of a result; nothing is required of it, since a call that failed has `error` alone."""
    return {"type": "object", "properties": properties | COMMON}
