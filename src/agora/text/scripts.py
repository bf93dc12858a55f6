from __future__ import annotations

import re
import unicodedata
from functools import lru_cache
from typing import Final

HAN: Final = "\u3005-\u3007\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\U00020000-\U0003fffd"
KANA: Final = "\u3041-\u3096\u3099\u309a\u309d-\u309f\u30a1-\u30fa\u30fc-\u312f\u31f0-\u31ff"
HANGUL: Final = "\u1100-\u11ff\ua960-\ua97f\uac00-\ud7ff"
UNSPACED: Final = "\u0e01-\u0e3a\u0e40-\u0e4e\u0e50-\u0e59\u0e81-\u0edf\u1000-\u1049\u1050-\u109d\u1780-\u17d3"
"""Thai, Lao, Myanmar, Khmer: written without blanks between words."""

_EMOJI = "\u2600-\u27bf\u2b00-\u2bff\U0001f000-\U0001f1e5\U0001f200-\U0001f3fa\U0001f400-\U0001faff"
_FLAG = "\U0001f1e6-\U0001f1ff"
_ASCII_WORD = "0-9A-Za-z_"
_RARE = "\U00010000-\U0001cfff\U0001e000-\U0001eeff"
"""Scripts beyond the basic plane, as whole blocks: a few signs in them count as letters, but a list of 250
ranges would be tried at every blank."""

_BLOCKS: Final = (
    ("cyrillic", "[\u0400-\u052f\u1c80-\u1c8f]"),
    ("greek", "[\u0370-\u03ff\u1f00-\u1fff]"),
    ("arabic", "[\u0600-\u06ff\u0750-\u077f]"),
    ("armenian", "[\u0530-\u058f]"),
    ("devanagari", "[\u0900-\u097f]"),
    ("tamil", "[\u0b80-\u0bff]"),
    ("latin", "[a-z\u00e0-\u024f\u1e00-\u1eff]"),
)
_SCRIPT = re.compile("|".join(f"(?P<{name}>{block})" for name, block in _BLOCKS))

_RUN = re.compile(
    f"(?P<han>[{HAN}{KANA}])|(?P<hangul>[{HANGUL}])|(?P<unspaced>[{UNSPACED}])|(?P<emoji>[{_EMOJI}{_FLAG}])"
)

# Read left to right: an English ending and a Romance elision are skipped; C++, C#, #123; then words joined by
# single marks, so that a path, a version or an address is one token. The classes of `word` are disjoint from
# those of the joiners: matching never backtracks over a word.
_GRAMMAR = (
    "['\u2019](?:s|t|d|m|ll|re|ve)(?![{word}])"
    "|(?<![{word}])(?:[cdjlmnst]|qu|[CDJLMNST]|Qu)['\u2019](?=[{word}])"
    "|((?<![{word}])[A-Za-z](?:\\+\\+|\\#)(?![{word}])"
    "|(?<![{word}])\\#[0-9]+(?![{word}])"
    "|[{word}]+(?:(?:://|::|\\.?/\\.?|:?\\\\|[-.@:])[{word}]+)*"
    "{others})"
)


def tokens(text: str) -> list[str]:
    """The words of `text` in order; a joined identifier, a run of Han or Thai, an emoji is one token.

    Expects `agora.text.normal.visible(text)`. Letter case is kept: it shows where `camelCase` splits.
    """
    pattern = _ascii_tokens() if text.isascii() else _all_tokens()
    return [token for token in pattern.findall(text) if token]


def kind(token: str) -> str:
    """How a token is taken apart: `word`, `han`, `hangul`, `unspaced` or `emoji`."""
    if token.isascii():
        return "word"
    found = _RUN.match(token)
    return str(found.lastgroup) if found else "word"


def script(word: str) -> str:
    """The writing system of a folded word, by its first letter that tells; `other` when none does."""
    found = _SCRIPT.search(word)
    return str(found.lastgroup) if found else "other"


def clusters(run: str) -> list[str]:
    """`run` cut into letters with the marks that belong to them."""
    found: list[str] = []
    for character in run:
        if found and unicodedata.category(character)[0] == "M":
            found[-1] += character
        else:
            found.append(character)
    return found


def lone_han(run: str) -> list[str]:
    """The Han characters that stand alone among kana in a run: Japanese words of one character."""
    return _LONE_HAN.findall(run)


_LONE_HAN = re.compile(f"(?<![{HAN}])[{HAN}](?![{HAN}])")


@lru_cache(maxsize=1)
def _ascii_tokens() -> re.Pattern[str]:
    return re.compile(_GRAMMAR.replace("{word}", _ASCII_WORD).replace("{others}", ""))


@lru_cache(maxsize=1)
def _all_tokens() -> re.Pattern[str]:
    # Built on first use: it looks at 65,000 characters (about 20 ms).
    others = f"|[{HAN}{KANA}]+|[{HANGUL}]+|[{UNSPACED}]+|[{_FLAG}]{{2}}|[{_EMOJI}]"
    return re.compile(_GRAMMAR.replace("{word}", _word_class()).replace("{others}", others))


def _word_class() -> str:
    """Every letter, digit and mark, except of scripts that have their own rule."""
    apart = re.compile(f"[{HAN}{KANA}{HANGUL}{UNSPACED}]")
    ranges, start = [_ASCII_WORD, _RARE], None
    for code in range(0x80, 0x10000):
        character = chr(code)
        inside = unicodedata.category(character) in _WORD_CATEGORIES and not apart.match(character)
        if inside and start is None:
            start = character
        elif not inside and start is not None:
            ranges.append(f"{start}-{chr(code - 1)}")
            start = None
    return "".join(ranges)


_WORD_CATEGORIES = frozenset({"Lu", "Ll", "Lt", "Lm", "Lo", "Nd", "Nl", "No", "Mn", "Mc"})
