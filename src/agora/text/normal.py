from __future__ import annotations

import re
import unicodedata

_CROWD = re.compile("(?:[^\\w\\x00-\\x7f]|[\uff9e\uff9f]){31,}")
"""More than 30 characters in a row that may be combining marks: no language needs them (UAX #15, 13)."""

_CROWD_LIMIT = 30
_JOINER = "\u034f"
"""Combining grapheme joiner: invisible, and marks are never sorted across it."""

_STRIPPED = re.compile(
    "[\u00ad\u034f\u061c\u0640\u180b-\u180e\u200c-\u200f\u202a-\u202e\u2060-\u2064\ufe00-\ufe0f\ufeff]"
)
"""Characters that change how a word looks and not which word it is; tatweel (U+0640) stretches Arabic."""

_KEPT = frozenset("йїў")
"""Cyrillic letters that decompose into another letter and a mark without being accented forms of it."""

_PLAIN = {"ø": "o", "ł": "l", "đ": "d", "ı": "i", "æ": "ae", "œ": "oe", "ħ": "h", "ð": "d", "þ": "th"}
"""Latin letters that people without the key type otherwise, and that have no Unicode decomposition."""


def nfkc(text: str) -> str:
    """`text` in Unicode form NFKC, in linear time whatever the text.

    `unicodedata.normalize` sorts runs of combining marks by insertion: one megabyte of them takes minutes.
    A run is therefore broken every 30 marks, as the stream-safe text format of UAX #15 does.
    """
    if text.isascii():
        return text
    return unicodedata.normalize("NFKC", _CROWD.sub(_spread, text))


def folded(text: str) -> str:
    """`text` as it is compared: NFKC, case folded, without invisible characters; the same for NFC and NFD."""
    if text.isascii():
        return text.lower()
    return nfkc(_STRIPPED.sub("", nfkc(text)).casefold())


def visible(text: str) -> str:
    """`text` in NFKC without invisible characters, letter case kept."""
    if text.isascii():
        return text
    return _STRIPPED.sub("", nfkc(text))


def unaccented(word: str) -> str:
    """`word` without its accents: città gives citta. Expects a folded word.

    Latin, Greek, Cyrillic, Hebrew and Arabic only. A mark of another script is part of the letter: without it
    the Japanese "ga" would read "ka".
    """
    return word if word.isascii() else word.translate(_UNACCENTED)


class _Unaccented(dict[int, str]):
    """What each character becomes, found when it is first met."""

    def __missing__(self, code: int) -> str:
        self[code] = plain = _without_marks(chr(code))
        return plain


def _without_marks(character: str) -> str:
    if character in _KEPT or not _has_accents(ord(character)):
        return character
    if character in _PLAIN:
        return _PLAIN[character]
    parts = unicodedata.normalize("NFD", character)
    return "".join(part for part in parts if unicodedata.category(part) != "Mn")


def _has_accents(code: int) -> bool:
    # U+0300 to U+036F are the marks that NFKC could not combine; U+0590 to U+06FF are Hebrew and Arabic.
    return 0xC0 <= code <= 0x52F or 0x590 <= code <= 0x6FF or 0x1E00 <= code <= 0x1FFF


def _spread(crowd: re.Match[str]) -> str:
    run = crowd.group()
    return _JOINER.join(run[start : start + _CROWD_LIMIT] for start in range(0, len(run), _CROWD_LIMIT))


_UNACCENTED = _Unaccented()
