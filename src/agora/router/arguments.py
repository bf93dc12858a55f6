"""Arguments of a call against the schema that the backend gave for its tool."""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from typing import Any

from agora.errors import InvalidInput
from agora.model.backend import ToolDefinition

_UNCHECKED = ("pattern", "patternProperties", "format", "$dynamicRef")
"""Keywords that are the backend's own business: a pattern of a stranger can keep a processor busy for ever."""

_LARGEST = 100_000
"""Characters of a schema that is looked at."""


def check(tool: ToolDefinition, arguments: Mapping[str, Any]) -> str | None:
    """None if the arguments meet the tool's schema; why they could not be checked, if its schema is none.

    Raises: InvalidInput for the first argument that does not meet it.
    """
    try:
        validator = _validator(_Frozen(tool.digest(), tool.input))
    except Exception as error:  # noqa: BLE001 - a schema of a stranger can be anything
        return f"the schema of {tool.name} cannot be used ({type(error).__name__}), so its arguments were not checked"
    try:
        found = next(validator.iter_errors(dict(arguments)), None)
    except Exception as error:  # noqa: BLE001 - as above: a reference to nowhere shows only here
        return f"the schema of {tool.name} cannot be used ({type(error).__name__}), so its arguments were not checked"
    if found is not None:
        raise _refused(tool, found)
    return None


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
    from jsonschema import Draft7Validator, Draft202012Validator  # noqa: PLC0415 - 60 ms that a start must not pay
    from jsonschema.validators import extend  # noqa: PLC0415 - as above
    from referencing import Registry  # noqa: PLC0415 - as above

    schema = dict(frozen.schema)
    if len(str(schema)) > _LARGEST:
        raise ValueError("too large")
    older = "draft-07" in str(schema.get("$schema", "")) or "draft-04" in str(schema.get("$schema", ""))
    base = Draft7Validator if older else Draft202012Validator
    base.check_schema(schema)
    # An empty registry: nothing is fetched, whatever a schema refers to.
    return extend(base, dict.fromkeys(_UNCHECKED))(schema, registry=Registry())
