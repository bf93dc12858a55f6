"""Arguments against the JSON Schema of their tool, with errors that name the argument and the reason."""

from __future__ import annotations

import difflib
import math
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from types import MappingProxyType
from typing import Any

from agora.abridging import abridge
from agora.errors import InvalidInput

Schema = dict[str, Any]


def text(description: str, **rules: Any) -> Schema:  # noqa: ANN401 - JSON
    """Schema of a string."""
    return {"type": "string", "description": description, **rules}


def array(description: str, items: Schema, **rules: Any) -> Schema:  # noqa: ANN401 - JSON
    """Schema of a list. Its length is checked before its items: a list of a million is refused at once."""
    return {"type": "array", "description": description, **rules, "items": items}


def whole(description: str, low: int, high: int, default: int | None = None) -> Schema:
    """Schema of a whole number."""
    found: Schema = {"type": "integer", "description": description, "minimum": low, "maximum": high}
    return found if default is None else found | {"default": default}


def arguments(required: tuple[str, ...] = (), /, **properties: Schema) -> Schema:
    """Schema of a tool's arguments: nothing but these."""
    found: Schema = {"type": "object", "properties": properties, "additionalProperties": False}
    return found | {"required": list(required)} if required else found


def check(
    schema: Schema,
    given: Mapping[str, Any],
    nulls: Mapping[str, str] = MappingProxyType({}),
) -> dict[str, Any]:
    """`given`, if it meets `schema`; a whole number that was written as 5.0 comes back as 5.

    The first argument in the schema's order that does not meet it is the one that is reported. `nulls` says of
    arguments what whoever gives null for them may mean to do.

    Raises: InvalidInput.
    """
    for name in given:
        if name not in schema["properties"]:
            raise InvalidInput(_shown(name), f"unknown argument{_nearest(name, schema['properties'])}", given[name])
    for name in schema.get("required", ()):
        if name not in given:
            raise InvalidInput(name, "is required", None)
    for name, rules in schema["properties"].items():
        if name in given:
            if _depth(given[name]) > _DEEPEST:
                # Before anything else looks at it: a validator would run out of stack.
                raise InvalidInput(name, f"is nested more than {_DEEPEST} levels deep")
            for error in _validator(_Frozen(rules)).iter_errors(given[name]):
                path = "".join(f"[{part}]" if isinstance(part, int) else f".{part}" for part in error.path)
                hint = nulls.get(name) if given[name] is None else None
                raise InvalidInput(_shown(name + path), _reason(error), error.instance, hint=hint)
    _check_values(given)
    return {name: _whole(schema["properties"][name], value) for name, value in given.items()}


NOT_BLANK = r"\S"
"""Pattern of a text with something to see in it; stricter here than in other validators: see `_matches`."""
ID = "^[nfms]_[0-7][0-9A-HJKMNP-TV-Z]{25}$"
"""Pattern of the id of a note, a fact, a message or a summary."""
READABLE = "^[nfmsr]_[0-7][0-9A-HJKMNP-TV-Z]{25}(#[0-9]{1,9})?$"
"""Pattern of such an id, or of that of a long result of a backend and the byte from which on it is read."""
KIND = "^[a-z][a-z0-9_-]{0,31}$"
"""Pattern of a kind of notes."""

_WORDS = {
    NOT_BLANK: "must not be blank",
    ID: "must be the id of a note, a fact or a message: n_, f_ or m_ and 26 digits and capital letters, as an answer"
    " gave it",
    READABLE: "must be the id of a note, a fact, a message or a result: n_, f_, m_ or r_ and 26 digits and capital"
    " letters",
    KIND: "must be a lower-case letter and then at most 31 lower-case letters, digits, - or _",
}
_DEEPEST = 32
"""Levels of lists and objects inside one argument: more are a mistake or an attack."""

_BITS = 13_289
"""Of a whole number: those of 4,000 digits at least. Python, as others, writes none of more than 4,300 in decimal."""

_LONE_SURROGATE = re.compile("[\ud800-\udfff]")
_VISIBLE = re.compile(
    # Neither white space nor a control character, soft hyphen, joiner, direction mark, tag, filler or blank.
    r"[^\s\x00-\x1f\x7f-\x9f\u00ad\u061c\u115f\u1160\u180e\u200b-\u200f\u202a-\u202e\u2060-\u206f\u2800\u3164"
    r"\ufeff\uffa0\U000e0001\U000e0020-\U000e007f]"
)

_REASONS: Mapping[str, Callable[[Any, Any], str]] = {
    "type": lambda limit, _: f"must be of type {' or '.join([limit] if isinstance(limit, str) else limit)}",
    "minLength": lambda _limit, _: "must not be empty",
    "maxLength": lambda limit, _: f"must have at most {limit} characters",
    "minimum": lambda _, rules: f"must be between {rules['minimum']} and {rules['maximum']}",
    "maximum": lambda _, rules: f"must be between {rules['minimum']} and {rules['maximum']}",
    "enum": lambda limit, _: f"must be one of {', '.join(map(str, limit))}",
    "minItems": lambda limit, _: f"must have at least {limit} item",
    "maxItems": lambda limit, _: f"must have at most {limit} items",
    "maxProperties": lambda limit, _: f"must have at most {limit} keys",
    "pattern": lambda limit, _: _WORDS[limit],
}
"""Why a value breaks a rule of the table, from the rule's own value and the schema that it stands in."""


def _reason(error: Any) -> str:  # noqa: ANN401 - jsonschema is untyped
    return _REASONS[error.validator](error.validator_value, error.schema)


def _check_values(given: Mapping[str, Any]) -> None:
    for place, value in _leaves(given):
        if isinstance(value, str):
            if "\0" in value:
                raise InvalidInput(place.path(), f"holds a NUL character at position {value.index(chr(0))}", value)
            if _LONE_SURROGATE.search(value):
                raise InvalidInput(place.path(), "holds a lone surrogate, which is no character", value)
        elif isinstance(value, float) and not math.isfinite(value):
            # JSON has no infinity, but 1e400 is one when it is read.
            raise InvalidInput(place.path(), "must be a finite number", value)
        elif isinstance(value, int) and value.bit_length() > _BITS:
            raise InvalidInput(place.path(), "must be a number of at most 4,000 digits", value)


def _whole(rules: Schema, value: object) -> object:
    # To JSON Schema 5.0 is an integer; to Python it is none.
    return int(value) if isinstance(value, float) and "integer" in rules["type"] else value


class _Frozen:
    """A schema as a cache key: the table is made once, so identity is equality."""

    __slots__ = ("schema",)

    def __init__(self, schema: Schema) -> None:
        self.schema = schema

    def __hash__(self) -> int:
        return id(self.schema)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Frozen) and other.schema is self.schema


@cache
def _validator(frozen: _Frozen) -> Any:  # noqa: ANN401 - jsonschema is untyped
    from jsonschema import Draft202012Validator  # noqa: PLC0415 - 60 ms that `tools/list` must not pay
    from jsonschema.exceptions import ValidationError  # noqa: PLC0415 - as above
    from jsonschema.validators import extend  # noqa: PLC0415 - as above

    def pattern(_validator: object, wanted: str, value: object, _rules: object) -> Iterator[Exception]:
        if isinstance(value, str) and not _matches(wanted, value):
            yield ValidationError(wanted)

    return extend(Draft202012Validator, {"pattern": pattern})(frozen.schema)


def _matches(pattern: str, value: str) -> bool:
    """Whether a text meets a pattern of the table."""
    if pattern == NOT_BLANK:
        # A zero-width space is no white space to a pattern, and yet nobody sees it.
        return _VISIBLE.search(value) is not None
    # Python's `$` would let a line end pass.
    return re.search(pattern.removesuffix("$") + r"\Z", value) is not None


def _nearest(name: str, known: Mapping[str, Any]) -> str:
    if not known:
        return "; this tool takes none"
    close = difflib.get_close_matches(name, known, n=1)
    return f"; did you mean {close[0]!r}?" if close else f"; known: {', '.join(known)}"


def _shown(name: str) -> str:
    """A caller's own name for something, as it can be sent back: of bounded length, and encodable."""
    return str(abridge(name, 100))


@dataclass(frozen=True, slots=True)
class _Place:
    """Where in the arguments a value is. The path is put together only if it is needed: a key may be a megabyte."""

    name: str
    outer: _Place | None = None

    def path(self) -> str:
        names, place = [_shown(self.name)], self.outer
        while place is not None:
            names.append(_shown(place.name))
            place = place.outer
        return "".join(reversed(names))


def _depth(value: object) -> int:
    """How many lists and objects contain each other at the deepest place, at most one more than is allowed."""
    level, found = [value], 0
    while found <= _DEEPEST and (level := [each for each in level if isinstance(each, dict | list)]):
        found += 1
        level = [inner for each in level for inner in (each.values() if isinstance(each, dict) else each)]
    return found


def _leaves(given: Mapping[str, Any]) -> Iterator[tuple[_Place, object]]:
    """Every key and every value that is no container, and where it is."""
    stack: list[tuple[_Place, object]] = [(_Place(name), value) for name, value in given.items()][::-1]
    while stack:
        place, value = stack.pop()
        if isinstance(value, Mapping):
            inside = [(_Place(f".{key}", place), inner) for key, inner in value.items()]
            for key, (where, _) in zip(value, inside, strict=True):
                yield where, str(key)
            stack.extend(reversed(inside))
        elif isinstance(value, list):
            stack.extend((_Place(f"[{n}]", place), value[n]) for n in reversed(range(len(value))))
        else:
            yield place, value
