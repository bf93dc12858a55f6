"""A text as a reader would take it: without characters that hide words, with letters of other alphabets undone."""

from __future__ import annotations

import re
import unicodedata
from functools import cache

_TAGS = re.compile("[\U000e0020-\U000e007e]{3,}")
_TURNED = re.compile("[\u202d\u202e]")
_DROPPED = re.compile(
    "[\u00ad\u034f\u061c\u180e\u200b-\u200f\u202a-\u202e\u2060-\u206f\ufe00-\ufe0f\ufeff\U000e0100-\U000e01ef]"
)
_HIDING = re.compile(
    "[A-Za-z\u0400-\u04ff][\u00ad\u200b-\u200f\u2060-\u2064\ufeff\u034f][A-Za-z\u0400-\u04ff]"
    "|[\u200b-\u200f\u2060-\u2064\ufe00-\ufe0f\U000e0100-\U000e01ef]{4}"
)
_HIDINGS = 3
"""One soft hyphen or joiner is a trace of a word processor; so many within words are a trick."""
_STYLED = re.compile("[\uff01-\uff5e\u24b6-\u24e9\U0001d400-\U0001d7ff]")
_SPACED = re.compile(r"(?<!\w)(?:\w ){2,}\w(?: {2,}(?:\w ){1,}\w)*(?!\w)")
"""Letters one by one: a space apart within a word, more between words."""


def hides(text: str) -> bool:
    """Whether part of the text cannot be seen, or not as it is read."""
    if text.isascii():
        return False
    if _TAGS.search(text) or _TURNED.search(text):
        return True
    found = _HIDING.finditer(text)
    return sum(1 for _ in zip(range(_HIDINGS), found, strict=False)) == _HIDINGS


def bare(text: str) -> str:
    """`text` in lower case, what is hidden in it made readable, white space as it is."""
    if not text.isascii():
        text = _TAGS.sub(lambda found: " " + "".join(chr(ord(c) - 0xE0000) for c in found[0]), text)
        text = _DROPPED.sub("", text)
        if _STYLED.search(text):
            text = text.translate(_plain())
        text = text.replace("\u2019", "'").replace("\u02bc", "'")
    return _SPACED.sub(lambda found: _together(found[0]), text).lower()


def _together(spaced: str) -> str:
    if len(spaced) < 12:
        return spaced
    return " ".join(word.replace(" ", "") for word in re.split(" {2,}", spaced))


@cache
def _plain() -> dict[int, str]:
    codes = (*range(0xFF01, 0xFF5F), *range(0x24B6, 0x24EA), *range(0x1D400, 0x1D800))
    return {code: unicodedata.normalize("NFKC", chr(code)) for code in codes}
