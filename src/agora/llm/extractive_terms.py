"""What a piece of a message is made of: names, numbers, dates, paths, and words by their beginnings."""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import lru_cache
from itertools import pairwise
from typing import Final, Literal

from agora.llm import extractive_cues as cues
from agora.text.anchors import anchors
from agora.text.languages import STOP_WORDS
from agora.text.normal import folded
from agora.text.scripts import kind as kind_of

Term = tuple[Literal["file", "number", "name", "date", "near", "word"], str]
"""Its class and how it is compared."""

_BEGINNING: Final = 6
"""Letters by which two words count as the same: endings of all three languages are behind them."""

_LONGEST: Final = 60
"""Characters of a token that is read as a word; what is longer is data."""

_CHUNK = re.compile(r"[^\s\"`“”«»()\[\]{}<>;!?*|=…'’]+")
_LEADS, _EDGES = ",:;-–—_", ".,:;-–—_~"
_INNER = re.compile(r"[^\W_]+")
_ODD = re.compile(r"[\\/_#@]|\w\.\w|::|^[0-9a-fA-F]{7,64}$|^[A-Z]+-\d")
_NUMBER = re.compile(r"[$€£₽#~≈+-]{0,2}\d")
_GROUPED = re.compile(r"(?<=\d)[,'’_](?=\d{3}(?!\d))")
_MAIL = re.compile(r"[\w.+-]+@[\w-]+(?:\.[\w-]+)+$")
_DULL_WORDS = """
    ll ve re don didn doesn isn aren wasn won couldn shouldn wouldn haven hasn hadn really very just also still much
    many lot lots some any more most well even ever being been going get got getting make makes made go goes thing
    things way ways something anything everything good great nice cool awesome amazing super definitely totally
    thanks thank hey hi hello yeah yes sure ok okay wow oh like am let new now here too only about because how one
    know think feel want need time see take come say said tell glad happy love help keep always never again back im
    all out up down off over after before your our his her him them both each other another same such than then
    while through during between sounds looks"""
_DULL = STOP_WORDS | frozenset(_DULL_WORDS.split())
"""Function words, and words that are in every other sentence of a talk."""


def terms(text: str, *, opens: bool, known: frozenset[str] = frozenset()) -> Iterator[Term]:
    """The terms of a text, in order, with repeats.

    A word with a capital letter is a name, but for the first of a sentence (`opens`), which is one if it is in `known`.
    """
    for n, found in enumerate(_CHUNK.finditer(text)):
        chunk = found[0].lstrip(_LEADS).rstrip(_EDGES)
        if not chunk or len(chunk) > _LONGEST:
            continue
        if chunk.isalpha():
            yield from _word(chunk, first=opens and n == 0, known=known)
        elif _ODD.search(chunk) and (named := _odd(chunk)) is not None:
            yield named
        elif _NUMBER.match(chunk):
            yield "number", plain(chunk)
        else:
            for inner in _INNER.findall(chunk):
                if inner[0].isdigit():
                    yield "number", inner
                else:
                    yield from _word(inner, first=opens and n == 0, known=known)


def plain(number: str) -> str:
    """A number without signs of currency and of thousands."""
    return _GROUPED.sub("", folded(number).lstrip("$€£₽~≈+"))


def _word(word: str, *, first: bool, known: frozenset[str]) -> tuple[Term, ...]:
    return _classed(word, not first or word.isupper() or folded(word) in known)


@lru_cache(maxsize=16384)
def _classed(word: str, may_name: bool) -> tuple[Term, ...]:
    if not word.isascii() and kind_of(word) in {"han", "hangul", "unspaced"}:
        return tuple(("word", left + right) for left, right in pairwise(word))
    lower = folded(word)
    if lower in cues.DATES:
        return (("date", lower[:_BEGINNING]),)
    if lower in cues.NEAR_DATES:
        return (("near", lower),)
    if len(lower) < 2 or lower in _DULL:
        return ()
    return (("name", lower) if may_name and word[0].isupper() else ("word", beginning(lower)),)


@lru_cache(maxsize=8192)
def beginning(lower: str) -> str:
    """The part of a folded word by which it is compared."""
    return lower.rstrip("s")[:_BEGINNING] if len(lower) > 3 else lower


@lru_cache(maxsize=2048)
def _odd(chunk: str) -> Term | None:
    """A path, address or identifier, in its one spelling; None for prose with signs in it."""
    if _MAIL.match(chunk):
        return "file", chunk.casefold()
    for anchor in anchors(chunk):
        if anchor.kind != "error" and anchor.stop - anchor.start >= len(chunk) - 1:
            return "file", anchor.value
    return None
