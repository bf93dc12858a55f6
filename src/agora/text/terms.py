from __future__ import annotations

import hashlib
import unicodedata
from typing import Final

LONGEST: Final = 64
"""Characters of the longest term that is written out; SHA-256 in hexadecimal just fits."""

_JOINERS = frozenset("_-.:")

_FIRST, _SECOND = 0xE000, 0xE800
"""Private-use blocks that hold the upper 10 and the lower 11 bits of an escaped character."""


def term(word: str) -> str:
    """`word` as one token of an FTS5 `unicode61 remove_diacritics 0 tokenchars '_'` table.

    SQLite's tokenizer splits words at most combining marks and at letters that are younger than its tables.
    Such a character is written as two private-use characters, which every SQLite keeps, so that Hindi, Thai
    and new scripts work on any build. The joiners `-`, `.` and `:` are written `_`; apart from that, two
    words give the same term only if they are equal. A word beyond `LONGEST` becomes its first 32 characters
    and a 64-bit digest. Expects a folded word that is not empty.
    """
    if len(word) > LONGEST:
        # Before escaping, so that the cut never falls inside an escape.
        word = f"{word[:32]}_{hashlib.blake2b(word.encode(), digest_size=8).hexdigest()}"
    return word.translate(_ESCAPES)


class _Escapes(dict[int, str]):
    """What each character is written as, found when it is first met."""

    def __missing__(self, code: int) -> str:
        self[code] = written = _written(chr(code))
        return written


def _written(character: str) -> str:
    if character in _JOINERS:
        return "_"
    # Unicode 3.2 is older than the tables of every SQLite with FTS5, and is the same in every Python.
    if unicodedata.ucd_3_2_0.category(character)[0] in "LN":
        return character
    return chr(_FIRST + (ord(character) >> 11)) + chr(_SECOND + (ord(character) & 0x7FF))


_ESCAPES = _Escapes()
