"""Finds text that is not Unicode: JSON can spell half of a surrogate pair, UTF-8 cannot carry it."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any

_ESCAPED = re.compile(rb"\\u[dD][89a-fA-F]")
_LONE = re.compile("[\ud800-\udfff]")

REASON = "holds a lone surrogate, which is not Unicode text"


@dataclass(frozen=True, slots=True)
class BadText:
    """A lone surrogate in a message: at which `path`, in which text, in the arguments of which `tool`.

    `path` is dotted from the message's root (`params.arguments.tags[0]`). `tool` is None unless the text is
    inside the arguments of a `tools/call`; then `param` is the path inside those arguments.
    `modern` says whether the request carries the 2026-07-28 envelope.
    """

    path: str
    received: str
    tool: str | None = None
    modern: bool = False

    @property
    def param(self) -> str:
        """The path without `params.arguments.` in front."""
        return self.path.removeprefix("params.arguments.")


def is_text(value: str) -> bool:
    """Whether `value` can be written as UTF-8."""
    return _LONE.search(value) is None


def may_hold_surrogates(line: bytes) -> bool:
    """Whether `line` spells a surrogate at all; False is certain and costs one scan of the bytes."""
    return _ESCAPED.search(line) is not None


def find_bad_text(message: dict[str, Any]) -> BadText | None:
    """The first lone surrogate in `message`, in the order of its members."""
    stack: list[tuple[str, Any]] = [("", message)]
    while stack:
        path, value = stack.pop()
        if isinstance(value, str):
            if not is_text(value):
                return BadText(path, value)
        elif isinstance(value, dict):
            for key in value:
                if not is_text(key):
                    return BadText(_join(path, _shown(key)), key)
            stack.extend((_join(path, key), inner) for key, inner in reversed(value.items()))
        elif isinstance(value, list):
            stack.extend((f"{path}[{n}]", value[n]) for n in range(len(value) - 1, -1, -1))
    return None


def depth(value: object) -> int:
    """How many arrays and objects contain each other at the deepest place."""
    level, found = [value], 0
    while level := [v for v in level if isinstance(v, dict | list)]:
        found += 1
        level = [inner for v in level for inner in (v.values() if isinstance(v, dict) else v)]
    return found


def _join(path: str, key: str) -> str:
    return f"{path}.{key}" if path else key


def _shown(text: str) -> str:
    return text.encode("utf-8", "backslashreplace").decode("utf-8")
