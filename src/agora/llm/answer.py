"""What came back from a model, before anything of it is believed."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class Answer:
    """The words of a model and what they cost. `flaw`: why they cannot be used, as the server itself says."""

    text: str
    model: str
    input_tokens: int
    output_tokens: int
    flaw: str | None = None


def value_in(text: str, schema: Mapping[str, Any]) -> tuple[Any, str | None]:
    """The JSON in `text` and no flaw, or None and the flaw: no JSON, or not what `schema` asks for.

    The flaw names the place in the answer and never what stands there.
    """
    from jsonschema import Draft202012Validator  # noqa: PLC0415 - 60 ms that a start must not pay
    from jsonschema.exceptions import best_match  # noqa: PLC0415 - as above

    try:
        value = json.loads(text, parse_constant=_refused)
    except (ValueError, RecursionError):
        return None, "it is no JSON"
    if (error := best_match(Draft202012Validator(dict(schema)).iter_errors(value))) is not None:
        place = error.json_path.removeprefix("$").lstrip(".") or "the whole"
        return None, f"it is not as the schema asks: {place}, {error.validator}"
    return value, None


def count(number: object) -> int:
    """A number of tokens that a server tells; 0 for what is none."""
    return number if isinstance(number, int) and not isinstance(number, bool) and number > 0 else 0


def _refused(name: str) -> Any:  # noqa: ANN401 - never returns
    raise ValueError(f"{name} is no JSON")
