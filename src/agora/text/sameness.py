"""When two ways to write a value, a subject or a key mean the same."""

from __future__ import annotations

import hashlib
import json
import math
import re
from collections.abc import Mapping
from decimal import Decimal
from typing import Any

from agora.text.normal import folded

_GROUPED = re.compile(r"[+-]?(?:[1-9]\d{0,2}(?:[ ,_'’]\d{3})+|0|[1-9]\d*)", re.ASCII)
_DECIMAL = re.compile(r"[+-]?(?:0|[1-9]\d*)\.\d*[1-9]", re.ASCII)
_LONGEST = 300
"""Characters of the longest number that is read as one."""

_JOINERS = re.compile(r"[\s_-]+")
_BLANKS = re.compile(r"\s+")


def name_of(text: str) -> str:
    """A subject or a key as it is compared: `Favourite_Editor` and `favourite editor` are one."""
    return _JOINERS.sub(" ", folded(text)).strip() or folded(text).strip()


def same(value: object) -> bytes:
    """SHA-256 that is equal for values that mean the same: letter case, Unicode form, blanks and number formats aside.

    `"1,000"`, `1000` and `1000.0` are one, `"true"` and `True` too; `"3.10"` is no number, since it may be a version.
    """
    return hashlib.sha256(json.dumps(_plain(value), ensure_ascii=True, sort_keys=True).encode()).digest()


def _plain(value: object) -> Any:  # noqa: ANN401 - JSON
    if isinstance(value, str):
        return _word(value)
    if isinstance(value, bool) or value is None:
        return ["is", value]
    if isinstance(value, int | float):
        return ["number", _number(value)]
    if isinstance(value, Mapping):
        return {str(key): _plain(inner) for key, inner in value.items()}
    if isinstance(value, list | tuple):
        return ["list", *map(_plain, value)]
    raise TypeError(f"no value of JSON: {type(value).__name__}")


def _word(text: str) -> Any:  # noqa: ANN401 - JSON
    text = _BLANKS.sub(" ", folded(text)).strip()
    if text in {"true", "false"}:
        return ["is", text == "true"]
    if len(text) <= _LONGEST:
        if _GROUPED.fullmatch(text):
            return ["number", str(int(re.sub(r"[^\d+-]", "", text)))]
        if _DECIMAL.fullmatch(text):
            return ["number", _decimal(text)]
    return ["text", text]


def _number(value: float) -> str:
    if isinstance(value, int):
        return _digits(value)
    return _decimal(repr(value)) if math.isfinite(value) else repr(value)


def _decimal(text: str) -> str:
    """A number in full, digit by digit: a float would make one of two that differ late."""
    number = f"{Decimal(text):f}"
    number = number.rstrip("0").rstrip(".") if "." in number else number
    return number.removeprefix("+") if number != "-0" else "0"


def _digits(value: int) -> str:
    # Python refuses to write very long ones in decimal.
    return str(value) if value.bit_length() < 2_000 else hex(value)
