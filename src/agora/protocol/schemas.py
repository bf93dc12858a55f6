"""Arguments against the JSON Schema of their tool, with errors that name the argument and the reason."""

from __future__ import annotations

import difflib
from collections.abc import Iterator, Mapping
from functools import cache
from typing import Any

from agora.errors import InvalidInput

Schema = dict[str, Any]


def text(description: str, **rules: Any) -> Schema:  # noqa: ANN401 - JSON
    """Schema of a string."""
    return {"type": "string", "description": description, **rules}


def array(description: str, items: Schema, **rules: Any) -> Schema:  # noqa: ANN401 - JSON
    """Schema of a list of distinct items."""
    return {"type": "array", "description": description, "items": items, **rules}


def whole(description: str, low: int, high: int, default: int | None = None) -> Schema:
    """Schema of a whole number."""
    found: Schema = {"type": "integer", "description": description, "minimum": low, "maximum": high}
    return found if default is None else found | {"default": default}


def arguments(required: tuple[str, ...] = (), /, **properties: Schema) -> Schema:
    """Schema of a tool's arguments: nothing but these."""
    found: Schema = {"type": "object", "properties": properties, "additionalProperties": False}
    return found | {"required": list(required)} if required else found


def check(schema: Schema, given: Mapping[str, Any]) -> None:
    """Return if `given` meets `schema`.

    Raises: InvalidInput for the first argument, in the schema's order, that does not.
    """
    for name in given:
        if name not in schema["properties"]:
            raise InvalidInput(name, f"unknown argument{_nearest(name, schema['properties'])}", given[name])
    for name in schema.get("required", ()):
        if name not in given:
            raise InvalidInput(name, "is required", None)
    for name, rules in schema["properties"].items():
        if name in given:
            _check_one(name, rules, given[name])
    for path, string in _strings(given):
        if "\0" in string:
            raise InvalidInput(path, f"holds a NUL character at position {string.index(chr(0))}", string)
        if any("\ud800" <= character <= "\udfff" for character in string):
            raise InvalidInput(path, "holds a lone surrogate, which is no character", string)


def _check_one(name: str, rules: Schema, value: object) -> None:
    for error in sorted(_validator(_Frozen(rules)).iter_errors(value), key=lambda found: list(map(str, found.path))):
        path = "".join(f"[{part}]" if isinstance(part, int) else f".{part}" for part in error.path)
        raise InvalidInput(name + path, _reason(error), error.instance)


def _reason(error: Any) -> str:  # noqa: ANN401 - jsonschema is untyped
    limit = error.validator_value
    reasons = {
        "type": f"must be of type {' or '.join([limit] if isinstance(limit, str) else limit)}"
        if error.validator == "type"
        else "",
        "minLength": "must not be empty",
        "maxLength": f"must have at most {limit} characters",
        "minimum": f"must be between {error.schema.get('minimum')} and {error.schema.get('maximum')}",
        "maximum": f"must be between {error.schema.get('minimum')} and {error.schema.get('maximum')}",
        "enum": f"must be one of {', '.join(map(str, limit))}" if error.validator == "enum" else "",
        "minItems": f"must have at least {limit} item",
        "maxItems": f"must have at most {limit} items",
        "uniqueItems": "must not repeat an item",
        "maxProperties": f"must have at most {limit} keys",
    }
    if error.validator == "pattern":
        return "must not be blank" if limit == NOT_BLANK else f"must match {limit}"
    return reasons.get(error.validator) or str(error.message)


NOT_BLANK = r"\S"
"""Pattern of a text that holds something."""


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

    return Draft202012Validator(frozen.schema)


def _nearest(name: str, known: Mapping[str, Any]) -> str:
    close = difflib.get_close_matches(name, known, n=1)
    return f"; did you mean {close[0]!r}?" if close else f"; known: {', '.join(known)}"


def _strings(value: object, path: str = "") -> Iterator[tuple[str, str]]:
    if isinstance(value, str):
        yield path, value
    elif isinstance(value, Mapping):
        for key, inner in value.items():
            inside = f"{path}.{key}" if path else str(key)
            yield inside, str(key)
            yield from _strings(inner, inside)
    elif isinstance(value, list):
        for place, inner in enumerate(value):
            yield from _strings(inner, f"{path}[{place}]")
