"""A text as a reader would take it: without characters that hide words, with letters of other alphabets undone."""

from __future__ import annotations

import re
import unicodedata
from functools import cache

from agora.unseen import within_words, without

_TAGS = re.compile("[\U000e0020-\U000e007e]{3,}")
_TURNED = re.compile("[\u202d\u202e]")
_HIDING = re.compile("[\u180b-\u180d\u200b-\u200f\u2060-\u2064\ufe00-\ufe0f\U000e0100-\U000e01ef]{4}")
_HIDINGS = 3
"""One soft hyphen or joiner is a trace of a word processor; so many within words are a trick."""
_STYLED = re.compile(
    "[\u02b0-\u02b8\u1d2c-\u1d6a\u2071-\u209c\u249c-\u24e9\uff01-\uff5e\U0001d400-\U0001d7ff\U0001f110-\U0001f189]"
)
_MIXED = re.compile("[A-Za-z][\u0370-\u04ff\u0500-\u058f]|[\u0370-\u04ff\u0500-\u058f][A-Za-z]|[a-z][\u0300-\u036f]")
"""A word of two alphabets, or with marks over it that no letter of its own has."""
_MARKS = re.compile("[\u0300-\u036f]+")
_LOOKALIKES = str.maketrans("аеорсухіјѕһԁԛԝкмтвнοαεικνρτυχցօս", "aeopcyxijshdqwkmtbhoaeikvptuxgou")
_SPACED = re.compile(r"(?<!\w)(?:\w ){2,}\w(?: {2,}(?:\w ){1,}\w)*(?!\w)")
"""Letters one by one: a space apart within a word, more between words."""


def hides(text: str) -> bool:
    """Whether part of the text cannot be seen, or not as it is read."""
    if not text.isascii() and (_TAGS.search(text) or _TURNED.search(text)):
        return True
    return within_words(text) >= _HIDINGS or len(_HIDING.findall(text)) >= _HIDINGS


def bare(text: str) -> str:
    """`text` in lower case, what is hidden in it made readable, white space as it is."""
    if not text.isascii():
        text = _TAGS.sub(lambda found: " " + "".join(chr(ord(c) - 0xE0000) for c in found[0]), text)
        if _STYLED.search(text):
            text = text.translate(_plain())
        text = text.replace("\u2019", "'").replace("\u02bc", "'")
    return _SPACED.sub(lambda found: _together(found[0]), without(text)).lower()


def undone(plain: str) -> str | None:
    """What `bare` gave with letters in Latin that only look so, and without loose accents; None if no word needs it."""
    if plain.isascii() or not _MIXED.search(plain):
        return None
    return _MARKS.sub("", unicodedata.normalize("NFD", plain.translate(_LOOKALIKES)))


def _together(spaced: str) -> str:
    if len(spaced) < 12:
        return spaced
    return " ".join(word.replace(" ", "") for word in re.split(" {2,}", spaced))


@cache
def _plain() -> dict[int, str]:
    codes = (
        *range(0x2B0, 0x2B9),
        *range(0x1D2C, 0x1D6B),
        *range(0x2071, 0x209D),
        *range(0x249C, 0x24EA),
        *range(0xFF01, 0xFF5F),
        *range(0x1D400, 0x1D800),
        *range(0x1F110, 0x1F18A),
    )
    # Letters in brackets, and white ones on black, which no normal form knows.
    found = {code: unicodedata.normalize("NFKC", chr(code)).strip("()") for code in codes}
    return found | {first + n: chr(ord("a") + n) for first in (0x1F150, 0x1F170) for n in range(26)}
