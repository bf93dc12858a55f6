"""Values in short, for messages and logs."""

from __future__ import annotations

import json
import math


def abridge(value: object, limit: int = 200) -> object:
    """`value` itself when it is small and plain, else its text (lists and objects as JSON) cut to `limit` characters.

    The result can always be written as JSON and as UTF-8.
    """
    if value is None or isinstance(value, bool):
        return value
    if isinstance(value, int):
        return value if abs(value) <= _EXACT else f"a whole number of {value.bit_length()} bits"
    if isinstance(value, float):
        return value if math.isfinite(value) else repr(value)
    # A lone surrogate cannot leave the process as UTF-8.
    text = _text(value).encode("utf-8", "backslashreplace").decode("utf-8")
    return text if len(text) <= limit else f"{text[:limit]}… ({len(text)} characters)"


_EXACT = 2**53
"""The largest whole number that every JSON reader takes as it is."""


def _text(value: object) -> str:
    if isinstance(value, str):
        return value
    try:
        return json.dumps(value, ensure_ascii=False) if isinstance(value, list | dict) else repr(value)
    except (TypeError, ValueError, RecursionError):
        # Nested too deep, or nothing that JSON has.
        return f"a {type(value).__name__}"
