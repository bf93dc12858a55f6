"""Regular expressions that people write into settings: checked before they are used, and bounded in what they cost."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import NamedTuple

LONGEST = 200
MOST = 50
_REPEATS = 3
"""Python's `re` goes back as often as it takes and cannot be stopped. What a pattern is compared with has at most 128
characters (`agora.redaction.redactor.ALLOWED_LENGTH`); three repeats then take at most some 350,000 steps, while one
inside another may take more than there are seconds."""


class _Repeat(NamedTuple):
    inner: int
    """How many repeats and alternatives are inside what is repeated."""


def fault(pattern: str) -> str | None:
    """Why `pattern` cannot be used, in words; None if it can.

    It can if `re` reads it, it has at most 200 characters and three parts of varying length (`*`, `+`, `?`, `{2,9}`),
    no group that is repeated has one of them or `|` in it, and none is referred back to.
    """
    if len(pattern) > LONGEST:
        return f"it has more than {LONGEST} characters"
    try:
        re.compile(pattern)
    except (re.error, OverflowError, RecursionError) as error:
        return f"it is no regular expression: {error}"
    repeats = list(_repeats(pattern))
    if any(repeat.inner for repeat in repeats):
        return "a repeat or `|` inside a group that is repeated can take for ever: write it without one of them"
    if len(repeats) > _REPEATS:
        return f"it has {len(repeats)} parts of varying length (`*`, `+`, `?`, `{{2,9}}`), and {_REPEATS} are the most"
    if re.search(r"\\[1-9]|\(\?P=|\(\?\(", _bare(pattern)):
        return "it refers back to a group, which can take for ever"
    return None


_TOKEN = re.compile(
    r"(?P<escape>\\.)|(?P<set>\[\^?\]?(?:\\.|[^\]\\])*\])|(?P<open>\((?:\?[^)<=!]*?[:>)]|\?P?<[^>]*>|\?<?[=!])?)|(?P<close>\))"
    r"|(?P<repeat>[*+?][+?]?|\{\d*(?P<range>,)?\d*\}[+?]?)|(?P<other>.)",
    re.DOTALL,
)


def _repeats(pattern: str) -> Iterator[_Repeat]:
    """Every part of varying length, and how many such, and alternatives, are inside what it repeats.

    A fixed `{3}` is one only around others.
    """
    # Repeats seen so far in each open group, the innermost last; `last` is what the last thing holds.
    depths, last = [0], 0
    for token in _TOKEN.finditer(pattern):
        if token["open"] is not None and not token["open"].endswith(")"):
            depths.append(0)
            last = 0
        elif token["close"] is not None:
            last = depths.pop() if len(depths) > 1 else 0
            depths[-1] += last
        elif token["other"] == "|":
            # Two ways to read the same letters: once is harmless, repeated they multiply.
            depths[-1] += 1
            last = 0
        elif token["repeat"] is not None:
            fixed = token["repeat"].startswith("{") and token["range"] is None
            if not fixed or last:
                yield _Repeat(last)
                depths[-1] += 1
                last += 1
        else:
            last = 0


def _bare(pattern: str) -> str:
    """`pattern` without its sets and escaped backslashes."""
    return re.sub(r"\\\\|\[\^?\]?(?:\\.|[^\]\\])*\]", "", pattern)
