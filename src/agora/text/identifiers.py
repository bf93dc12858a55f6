from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import pairwise

from agora.text.normal import folded
from agora.text.scripts import clusters, kind, lone_han

_PIECE = re.compile(
    r"(?P<uuid>[0-9a-fA-F]{8}(?:-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12})(?![^\W_])"
    r"|(?P<date>(?:19|20)\d\d-\d\d(?:-\d\d)?)(?![\d-])T?"
    r"|(?P<time>\d?\d:\d\d(?::\d\d)?(?:\.\d+)?)(?![\d:])Z?"
    r"|(?<![^\W_])(?P<version>[vV]?\d+(?:\.\d+)+)(?![^\W_])"
    # Everything that is no joiner, marks too: `\w` does not know them.
    r"|(?P<word>\#\d+|[^-_.@:/\\#+]+(?:\#|\+\+)?)"
)
_NUMBER_JOINERS = re.compile(r"[-.:]")
_CAMEL = re.compile(r"[A-Z]+(?![a-z])\d*|[A-Z]?[a-z]+\d*|\d+")
_HUMP = re.compile(r"[a-z][A-Z]|[A-Z]{2}[a-z]")
_HASH = re.compile(r"(?=[a-f]*\d)(?=\d*[a-f])(?:[0-9a-f]{32}|[0-9a-f]{40}|[0-9a-f]{64})$")
_SEGMENTS = re.compile(r"[/\\@]+|:+(?!\d)")

_SHORT_HASHES = range(12, 6, -1)
"""Lengths to which tools abbreviate a commit: Git prints 7 and more as a repository grows."""

_MOST_GLUED = 4
"""Parts that are also written together: `e-mail` is `email`, but a path is never one word."""


_LONGEST_NAMED = 1000
"""Characters of an identifier whose inner names are worth finding; a longer one is data."""

_MOST_NUMBERS = 8
"""Numbers of a version that can be named short; without a bound a long list of dots would grow by its square."""


@dataclass(frozen=True, slots=True)
class Identifier:
    """A token taken apart, everything folded.

    `wholes`: ways to write all of it, joined by `_`, the full one first. `parts`: the words in it, in order.
    `within`: what people also name alone: the files of a path, the start of a version.
    """

    wholes: tuple[str, ...]
    parts: tuple[str, ...]
    within: tuple[str, ...] = ()


def take_apart(token: str) -> Identifier:
    """The whole, the parts and the inner names of a token such as `src/app/userName.py`.

    A dotted number stays one part (`3.11` is never `3` and `11`), and so does a date or a UUID. A run that
    is written without blanks has every two neighbouring letters as a part, since nothing marks its words. A
    token without any word, such as `__`, has neither wholes nor parts.
    """
    read = _RUNS.get(kind(token))
    return read(folded(token)) if read else _joined(token)


def _joined(token: str) -> Identifier:
    found = _read(token)
    inner: list[str] = []
    if len(found.parts) > 1 and len(token) <= _LONGEST_NAMED:
        segments = [segment for segment in _SEGMENTS.split(token) if segment]
        name, dot, _ = segments[-1].rpartition(".")
        inner += segments if len(segments) > 1 else []
        inner += [name] if dot else []
    names = [found.within, *(part for segment in inner for part in _names(segment))]
    within = dict.fromkeys(name for group in names for name in group)
    return Identifier(found.wholes, found.parts, tuple(name for name in within if name not in found.wholes))


def _names(token: str) -> tuple[tuple[str, ...], ...]:
    found = _read(token)
    return found.wholes, found.within


def _read(token: str) -> Identifier:
    pieces = [_piece(str(found.lastgroup), str(found[str(found.lastgroup)])) for found in _PIECE.finditer(token)]
    if len(pieces) == 1:
        return pieces[0]
    if not pieces:
        return Identifier((), ())
    first = [piece.wholes[0] for piece in pieces]
    return Identifier(
        ("_".join(first), *_glued(first)),
        tuple(part for piece in pieces for part in piece.parts),
        tuple(name for piece in pieces for name in (*piece.wholes, *piece.within) if name not in piece.parts),
    )


def _piece(form: str, text: str) -> Identifier:
    word = folded(text)
    if form == "word":
        return _word(text, word)
    numbers = _NUMBER_JOINERS.split(word)
    whole = "_".join(numbers)
    if form == "uuid":
        return Identifier((whole,), (word,))
    # Asked for 1.2, a text about v1.2.3 is found; asked for 2024, one of 2024-05-01. Never the other way.
    bare = whole.removeprefix("v")
    plain = bare.split("_")
    starts = ["_".join(plain[:count]) for count in range(2, min(len(plain), _MOST_NUMBERS))]
    if len(plain[0]) == 4:
        starts.append(plain[0])
    return Identifier(tuple(dict.fromkeys((whole, bare))), (word,), tuple(starts))


def _word(text: str, word: str) -> Identifier:
    if word.startswith("#"):
        return Identifier((word, word[1:]), (word,))
    if _HASH.match(word):
        return Identifier((word, *(word[:length] for length in _SHORT_HASHES)), (word,))
    if text.isascii() and _HUMP.search(text):
        parts = tuple(part.lower() for part in _CAMEL.findall(text))
        # A single letter is no word: iPhone and OAuth2 stay whole.
        if len(parts) > 1 and min(map(len, parts)) > 1:
            return Identifier((word, "_".join(parts)), parts)
    return Identifier((word,), (word,))


def _glued(words: Sequence[str]) -> list[str]:
    if len(words) > _MOST_GLUED:
        return []
    # 3-11 is not 311: where two digits would meet, the parts stay apart.
    if any(left[-1].isdigit() and right[0].isdigit() for left, right in pairwise(words)):
        return []
    return ["".join(words)]


def _han(run: str) -> Identifier:
    # A Han character between kana is a word: 鍵を更新 is found by 鍵.
    return Identifier((), _pairs(list(run)), tuple(lone_han(run)) if len(run) > 1 else ())


def _hangul(run: str) -> Identifier:
    return Identifier((run,), _pairs(list(run)))


def _unspaced(run: str) -> Identifier:
    return Identifier((), _pairs(clusters(run)))


def _emoji(sign: str) -> Identifier:
    return Identifier((sign,), (sign,))


def _pairs(letters: Sequence[str]) -> tuple[str, ...]:
    """Every two neighbours; the letter itself when it stands alone."""
    if len(letters) < 2:
        return tuple(letters)
    return tuple(left + right for left, right in pairwise(letters))


_RUNS: dict[str, Callable[[str], Identifier]] = {
    "han": _han,
    "hangul": _hangul,
    "unspaced": _unspaced,
    "emoji": _emoji,
}
"""How tokens that have no blanks or joiners inside are taken apart."""
