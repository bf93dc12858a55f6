"""What a stranger sent, as data that can always be written as JSON and as UTF-8."""

from __future__ import annotations

import json
import math
from typing import Any

DEEPEST = 100
"""Levels of lists and objects; what serializes results for clients gives up at some 250."""


def is_plain(value: Any) -> bool:  # noqa: ANN401 - JSON
    """Whether it is written as it is: no half of a surrogate pair, no number that is none, no more levels than that."""
    try:
        json.dumps(value, ensure_ascii=False, allow_nan=False).encode("utf-8")
    except (ValueError, RecursionError):
        return False
    return is_shallow(value)


def is_shallow(value: Any) -> bool:  # noqa: ANN401 - JSON
    """Whether it has no more levels than so many."""
    layer = [value]
    for _ in range(DEEPEST):
        layer = [inner for each in layer for inner in _inside(each) if isinstance(inner, dict | list)]
        if not layer:
            return True
    return False


def plain(value: dict[str, Any]) -> dict[str, Any]:
    """The same, if it is plain; else what of it is: texts keep their length, deep things become text."""
    if is_plain(value):
        return value
    found: dict[str, Any] = _plain(value, DEEPEST)
    return found


def _inside(value: dict[str, Any] | list[Any]) -> Any:  # noqa: ANN401 - JSON
    return value.values() if isinstance(value, dict) else value


def _plain(value: Any, levels: int) -> Any:  # noqa: ANN401 - JSON
    if isinstance(value, str):
        return value.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    if isinstance(value, float) and not math.isfinite(value):
        return None
    if not isinstance(value, dict | list):
        return value
    if levels <= 1:
        return _written(value)
    if isinstance(value, dict):
        return {_plain(key, levels): _plain(inner, levels - 1) for key, inner in value.items()}
    return [_plain(inner, levels - 1) for inner in value]


def _written(value: dict[str, Any] | list[Any]) -> str:
    try:
        return json.dumps(value)
    except RecursionError:
        return "[nested too deeply]"
