"""What a text says a value is: "src/db.py listens on port 5432", "timeout = 30 s". Few claims, and none in doubt."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from decimal import Decimal
from typing import Literal

from agora.text import claimwords as words
from agora.text.anchors import READ, Anchor, anchors
from agora.text.languages import STOP_WORDS
from agora.text.normal import folded, visible

_FIRST, _LAST = 0xE000, 0xF8FF
"""Private characters: each stands for one anchor of a sentence while its words are looked at."""

_PRIVATE = re.compile(f"[{chr(_FIRST)}-{chr(_LAST)}]")
_SENTENCE = re.compile(r"(?P<end>[.!?;]+(?=\s|$)|[。！？；]|\n)")
_CLAUSE = re.compile(r",(?=\s)|\s(?:and|but|while|whereas|e|ed|ma|und|aber|et|mais|y|pero|и|а|но)\s|\s[–—-]\s|[()]")
_TOKEN = re.compile(
    rf"{_PRIVATE.pattern}|=(?![=>])|:(?=\s|\d)|[=<>≤≥≈~!]+|[^\s=<>≤≥≈~!:\"'`“”{chr(_FIRST)}-{chr(_LAST)}]+"
)
_VALUE = re.compile(r"(?P<number>-?\d{1,18}(?:\.\d{1,9})?)(?P<unit>[A-Za-z%µ]{0,8})$")
_VERSION = re.compile(r"v?\d{1,9}(?:\.\d{1,9}){2,4}$|v\d{1,9}(?:\.\d{1,9})?$", re.IGNORECASE)
_PLAIN = re.compile(r"[\w.+/@-]{1,64}$")
_EDGE = ".,;!?'*"

_REACH = 4
"""Words that may stand between a link and its value: "is now set to the"."""

Comparison = Literal["equal", "differ", "unclear"]


@dataclass(frozen=True, slots=True)
class Value:
    """A value as it was written, and in the form in which values of the same `dimension` are compared."""

    text: str
    dimension: str
    plain: str


@dataclass(frozen=True, slots=True)
class Claim:
    """That an attribute has a value. `attribute`: the folded words that say which, sorted.

    `anchor` is what it is said of; None if the sentence names nothing.
    """

    anchor: Anchor | None
    attribute: tuple[str, ...]
    value: Value


def claims(text: str) -> tuple[Claim, ...]:
    """The claims of a text, in order.

    A clause makes one if it has exactly one value and nothing that puts it in doubt: no negation, condition, guess,
    question, comparison, or word about another time. All its other words of content are part of the attribute, so
    that "the read timeout" and "the timeout in staging" are other things than "the timeout".
    """
    shown = visible(text[:READ])[:READ]
    named = anchors(text)
    return tuple(claim for start, stop in _sentences(shown, named) for claim in _read(shown, start, stop, named))


def compare(one: Value, other: Value) -> Comparison:
    """Whether two values of the same attribute are the same; `unclear` if one may be a shorter form of the other."""
    if one.dimension != other.dimension:
        return "unclear"
    if one.plain == other.plain:
        return "equal"
    if one.dimension in {"number", "version"}:
        a, b = one.plain.split("."), other.plain.split(".")
        if one.dimension == "number" and Decimal(one.plain) == Decimal(other.plain):
            return "equal"
        # 3.11 is no other version than 3.11.4.
        if "." in one.plain + other.plain and a[: len(b)] == b[: len(a)]:
            return "unclear"
    return "differ"


def _sentences(text: str, named: Sequence[Anchor]) -> Iterator[tuple[int, int]]:
    """Where the sentences are; the dot inside or at the end of an anchor ends none. Questions are left out."""
    inside = {place for anchor in named for place in range(anchor.start, anchor.stop)}
    start = 0
    for end in _SENTENCE.finditer(text):
        if end.start() in inside:
            continue
        if not set(end["end"]) & {"?", "？"}:
            yield start, end.start()
        start = end.end()
    yield start, len(text)


def _read(text: str, start: int, stop: int, named: Sequence[Anchor]) -> Iterator[Claim]:
    here = [anchor for anchor in named if start <= anchor.start and anchor.stop <= stop][: _LAST - _FIRST]
    parts, place = [], start
    for n, anchor in enumerate(here):
        parts += [_PRIVATE.sub(" ", text[place : anchor.start]), f" {chr(_FIRST + n)} "]
        place = anchor.stop
    sentence = "".join((*parts, _PRIVATE.sub(" ", text[place:stop])))
    bare = {folded(token.strip(_EDGE)) for token in re.split(r"[\s,:()\"`]+", sentence)}
    if bare & words.DOUBTS or any(word.endswith(("n't", "n’t")) for word in bare):
        return
    subject: Anchor | None = None
    for clause in _CLAUSE.split(sentence):
        tokens = [_bare(token) for token in _TOKEN.findall(clause)]
        if (found := _claim(tokens, here, subject)) is not None:
            yield found
        subject = next((here[ord(t) - _FIRST] for t in reversed(tokens) if _PRIVATE.match(t)), subject)


def _bare(token: str) -> str:
    # "!=" is no "=" in exclamation.
    return token.strip(_EDGE) if any(c.isalnum() for c in token) else token


def _claim(tokens: list[str], here: Sequence[Anchor], subject: Anchor | None) -> Claim | None:
    found = [each for place in range(len(tokens)) if (each := _linked(tokens, place)) is not None]
    if len(found) != 1:
        return None
    back, first, after, value = found[0]
    rest = [*tokens[:first], *tokens[after:]]
    if any(token[0].isdigit() or token[0] in "<>≤≥≈~!" or token[:2] == "==" for token in rest):
        return None
    inside = [token for token in rest if _PRIVATE.match(token)]
    before = [token for token in tokens[:first] if _PRIVATE.match(token)]
    if not before and len(inside) > 1:
        return None
    chosen = (before or inside or [""])[-1]
    anchor = here[ord(chosen) - _FIRST] if chosen else subject
    attribute = {_word(token, here) for token in rest if token != chosen} - words.FILLERS - STOP_WORDS - {""}
    if not attribute:
        # "X is 5": the value of X itself.
        if folded(tokens[back]) not in words.COPULAS or not before or tokens[back - 1] != chosen:
            return None
        attribute = {"value"}
    if tokens[back] == ":" and chosen and tokens[back - 1] == chosen and here[ord(chosen) - _FIRST].kind != "symbol":
        # "src/db.py: 3 tests" says what follows about the file, and not that it is 3.
        return None
    if value.dimension == "number" and any("version" in word for word in attribute):
        value = replace(value, dimension="version")
    return Claim(anchor, tuple(sorted(attribute)), value)


def _word(token: str, here: Sequence[Anchor]) -> str:
    if _PRIVATE.match(token):
        return here[ord(token) - _FIRST].value
    word = folded(token)
    return "" if word in words.COPULAS or not any(c.isalnum() for c in word) else word


def _linked(tokens: Sequence[str], place: int) -> tuple[int, int, int, Value] | None:
    """The value at `place`, with its link and its first and last token, if what stands before it makes it one."""
    back = place - 1
    while place - back <= _REACH and back >= 0 and folded(tokens[back]) in words.BETWEEN:
        back -= 1
    link = folded(tokens[back]) if back >= 0 else ""
    if link not in words.COPULAS and link not in words.NOUNS:
        return None
    last = place == len(tokens) - 1
    # After an equals sign any single word is a value; prose after "is" or a colon is none.
    value, length = _value(tokens, place, free=link == "=" and back == place - 1 and last)
    if value is None:
        return None
    if value.dimension == "switch" and (link in words.NOUNS or (value.text.casefold() == "on" and not last)):
        # "is on port 80" switches nothing.
        return None
    return back, place, place + length, value


def _value(tokens: Sequence[str], place: int, *, free: bool) -> tuple[Value | None, int]:
    token = tokens[place]
    if _VERSION.match(token):
        return Value(token, "version", token.casefold().removeprefix("v")), 1
    if match := _VALUE.match(token):
        unit, length = match["unit"], 1
        if not unit and place + 1 < len(tokens) and tokens[place + 1].casefold() in words.UNITS:
            unit, length = tokens[place + 1], 2
        return _measured(match["number"], unit), length
    if (side := words.SWITCHES.get(folded(token))) is not None:
        return Value(token, "switch", side), 1
    if free and _PLAIN.match(token) and not token[0].isdigit():
        return Value(token, "word", token), 1
    return None, 1


def _measured(number: str, unit: str) -> Value:
    text = f"{number} {unit}".strip()
    if not unit:
        return Value(text, "number", number)
    known = words.UNITS.get(unit.casefold())
    if known is None:
        return Value(text, f"unit {unit}", number)
    dimension, factor = known
    return Value(text, dimension, str((Decimal(number) * factor).normalize()))
