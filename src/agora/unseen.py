"""Characters that drive a terminal, turn the direction of writing or cannot be seen."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable

_C0 = "\x00-\x08\x0b-\x1f"
_OTHERS = (
    "\x7f-\x9f\u00ad\u034f\u0600-\u0605\u061c\u06dd\u070f\u0890\u0891\u08e2\u115f\u1160\u17b4\u17b5"
    "\u180b-\u180f\u200b-\u200f\u2028-\u202e\u2060-\u206f\u2800\u3164\ud800-\udfff\ufe00-\ufe0f\ufeff\uffa0\ufff0-\ufffb"
    "\U000110bd\U000110cd\U00016fe4\U00013430-\U0001343f\U0001bca0-\U0001bca3\U0001d173-\U0001d17a\U000e0000-\U000e0fff"
)
"""Control and format characters of Unicode 16 (Cc, Cf, Cs, Zl, Zp), fillers and selectors that show as nothing."""

_UNSEEN = re.compile(f"[{_C0}{_OTHERS}]")
_WITHIN = re.compile(
    rf"(?<=[A-Za-z\u0400-\u04ff])(?![\r\x0b\x0c\x1c-\x1f\x85\u2028\u2029])[{_C0}{_OTHERS}]++(?=[A-Za-z\u0400-\u04ff])"
)
_MONGOLIAN = re.compile("[\u1800-\u18af]")
_JOINERS = "\u200c\u200d"
_PLAIN = ("LATIN", "CYRILLIC", "GREEK")
"""Scripts that need no joiner: between their letters one only hides something."""


def shown(text: str) -> str:
    """`text` with every character that is not meant to be seen written as its escape; line ends and tabs stay.

    Joiners stay where they hold an emoji or a script together that needs them, selectors where they choose a form. A
    carriage return before a line end is part of it, and left out.
    """
    return _replaced(text.replace("\r\n", "\n"), _python)


def in_json(written: str) -> str:
    """JSON text with the same characters as JSON escapes: safe to look at, and equal to the first once it is read."""
    if written.isascii() and "\x7f" not in written:
        # JSON has escapes for the other ones by itself, and most answers are ASCII.
        return written
    return _replaced(written, _json)


def within_words(text: str) -> int:
    """How often such characters stand between two letters of a script that has no use for them."""
    return sum(1 for _ in _WITHIN.finditer(text)) if _UNSEEN.search(text) else 0


def without(text: str) -> str:
    """`text` without such characters; those that part words are blanks."""
    return _UNSEEN.sub(lambda found: " " if found[0].isspace() else "", text)


def _replaced(text: str, escape: Callable[[str], str]) -> str:
    return _UNSEEN.sub(lambda found: found[0] if _harmless(text, found.start()) else escape(found[0]), text)


def _harmless(text: str, at: int) -> bool:
    c = text[at]
    if c in _JOINERS:
        return 0 < at < len(text) - 1 and _joined(text[at - 1]) and _joined(text[at + 1])
    if "\ufe00" <= c <= "\ufe0f" or "\U000e0100" <= c <= "\U000e01ef":
        return at > 0 and _has_forms(text[at - 1])
    if "\u180b" <= c <= "\u180f" and c != "\u180e":
        return at > 0 and _MONGOLIAN.match(text[at - 1]) is not None
    return False


def _joined(c: str) -> bool:
    if c.isascii() or _UNSEEN.match(c):
        # A selector stands between an emoji and its joiner.
        return c == "\ufe0f"
    return not unicodedata.name(c, "LATIN").startswith(_PLAIN)


def _has_forms(c: str) -> bool:
    if c.isascii():
        return c in "0123456789#*"
    return not _UNSEEN.match(c) and not unicodedata.name(c, "LATIN").startswith(_PLAIN)


def _python(c: str) -> str:
    return f"\\u{ord(c):04x}" if ord(c) < 0x10000 else f"\\U{ord(c):08x}"


def _json(c: str) -> str:
    if ord(c) < 0x10000:
        return f"\\u{ord(c):04x}"
    high, low = divmod(ord(c) - 0x10000, 0x400)
    return f"\\u{0xD800 + high:04x}\\u{0xDC00 + low:04x}"
