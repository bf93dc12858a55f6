"""Arguments of a call against the schema that the backend gave for its tool."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator, Mapping
from functools import lru_cache
from typing import Any

from agora.errors import InvalidInput
from agora.model.backend import ToolDefinition

_UNCHECKED = ("pattern", "patternProperties", "format", "$dynamicRef", "uniqueItems")
"""Keywords that are the backend's own business: each alone can keep a processor busy for ever."""

_SECONDS = 0.1
"""Of the processor, for one check: a few references that each refer twice to the next ask for more than there is."""

_SCHEMA_SECONDS = 1.0
"""The same for the first look at a schema."""

_LARGEST = 100_000
"""Characters of a schema that is looked at."""


def check(tool: ToolDefinition, arguments: Mapping[str, Any]) -> str | None:
    """None if the arguments meet the tool's schema; why they could not be checked, if its schema is none.

    Raises: InvalidInput for the first argument that does not meet it.
    """
    validator = _validator(_Frozen(tool.digest(), tool.input))
    if isinstance(validator, str):
        return _unchecked(tool, validator)
    try:
        _begin(_SECONDS)
        found = next(validator.iter_errors(dict(arguments)), None)
    except Exception as error:  # noqa: BLE001 - a schema of a stranger can be anything
        return _unchecked(tool, type(error).__name__)
    if found is not None:
        raise _refused(tool, found)
    return None


def _unchecked(tool: ToolDefinition, why: str) -> str:
    return f"the schema of {tool.name} cannot be used ({why.removeprefix('_')}), so its arguments were not checked"


def _refused(tool: ToolDefinition, error: Any) -> InvalidInput:  # noqa: ANN401 - jsonschema is untyped
    path = "arguments" + "".join(f"[{part}]" if isinstance(part, int) else f".{part}" for part in error.absolute_path)
    properties = tool.input.get("properties")
    known = ", ".join(map(str, properties)) if isinstance(properties, Mapping) else ""
    hint = f"{tool.name} takes: {known}." if known else f"{tool.name} takes no arguments."
    if error.validator == "required":
        missing = next(name for name in error.validator_value if name not in error.instance)
        return InvalidInput(f"{path}.{missing}", "is required", None, hint=hint)
    if error.validator == "additionalProperties" and isinstance(error.instance, Mapping):
        unknown = sorted(set(map(str, error.instance)) - set(error.schema.get("properties", {})))
        if unknown:
            name = f"{path}.{unknown[0]}"
            return InvalidInput(name, "is not an argument of this tool", error.instance[unknown[0]], hint=hint)
    return InvalidInput(path, error.message[:300], error.instance, hint=hint)


_Keyword = Callable[..., Iterator[Any] | None]

_time = threading.local()


class _TooLong(Exception):
    """The schema asks for more than there is time for."""


def _begin(seconds: float) -> None:
    _time.ends = time.thread_time() + seconds


def _bounded(keyword: _Keyword) -> _Keyword:
    """The same check, as long as there is time."""

    def check_keyword(*given: object) -> Iterator[Any] | None:
        if time.thread_time() > _time.ends:
            raise _TooLong
        return keyword(*given)

    return check_keyword


class _Frozen:
    """A schema as a cache key: equal digests are equal definitions."""

    __slots__ = ("digest", "schema")

    def __init__(self, digest: str, schema: Mapping[str, Any]) -> None:
        self.digest = digest
        self.schema = schema

    def __hash__(self) -> int:
        return hash(self.digest)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Frozen) and other.digest == self.digest


@lru_cache(maxsize=512)
def _validator(frozen: _Frozen) -> Any:  # noqa: ANN401 - jsonschema is untyped
    """What checks arguments; the name of an error if the schema is none."""
    try:
        return _made(frozen)
    except Exception as error:  # noqa: BLE001 - a schema of a stranger can be anything
        return type(error).__name__


def _made(frozen: _Frozen) -> Any:  # noqa: ANN401 - jsonschema is untyped
    from jsonschema import (  # noqa: PLC0415 - 60 ms that a start must not pay
        Draft7Validator,
        Draft202012Validator,
        SchemaError,
    )
    from jsonschema.validators import extend  # noqa: PLC0415 - as above
    from referencing import Registry  # noqa: PLC0415 - as above

    schema = dict(frozen.schema)
    if len(str(schema)) > _LARGEST:
        raise ValueError("too large")
    older = "draft-07" in str(schema.get("$schema", "")) or "draft-04" in str(schema.get("$schema", ""))
    base = Draft7Validator if older else Draft202012Validator
    bounded = {name: _bounded(keyword) for name, keyword in base.VALIDATORS.items()}
    validator = extend(base, bounded | dict.fromkeys(_UNCHECKED))
    _begin(_SCHEMA_SECONDS)
    # As `check_schema` does it, within the time.
    if (wrong := next(extend(base, bounded)(base.META_SCHEMA).iter_errors(schema), None)) is not None:
        raise SchemaError.create_from(wrong)
    # An empty registry: nothing is fetched, whatever a schema refers to.
    return validator(schema, registry=Registry())
