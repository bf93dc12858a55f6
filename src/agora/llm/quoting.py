"""Which of the facts that a model gives stand in the text that it had."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

from agora.model.fact import Extracted, Value
from agora.text.normal import folded

_LONGEST_QUOTE, _LONGEST_NAME = 1_000, 128
"""Characters of a quote, and of a key or a subject, at most."""

_SPEAKER = frozenset({"", "user", "the user", "speaker", "the speaker", "i", "me", "myself", "null", "none"})
"""What models call whoever speaks, whatever they are told."""

_BLANKS = re.compile(r"<[^<>]*>|\[[^\[\]]*\]|\{[^{}]*\}|%\w+%|_{3,}|\.{3}|…")
"""Something to be filled in: `<name>`, `{{port}}`, `${HOST}`, `[REDACTED:password]`, `___`."""

_EMPTY = frozenset({"value", "string", "number", "null", "none", "n/a", "unknown", "todo", "tbd", "placeholder", "xxx"})
_LETTERS = frozenset("NXYZ")
"""Capitals that stand for something else, as in "call me X"."""

_SCHEMA_WORDS = frozenset({"fact", "facts", "key", "quote", "string", "subject", "value"})

_NUMBER = re.compile(r"\d+(?:[.,]\d+)*")
_THOUSANDS = re.compile(r"\d{1,3}(?:,\d{3})+(?:\.\d+)?")


def quoted(told: Sequence[Mapping[str, Any]], text: str, about: Mapping[str, Any]) -> tuple[Extracted, ...]:
    """Those facts whose quote is a slice of `text` that holds the value, in the order of the text, each once.

    A quote is found whatever its white space; what is kept is the slice. A subject stands in the text too.
    """
    found: dict[tuple[str | None, str, str], tuple[int, Extracted]] = {}
    for each in told:
        key = "_".join(folded(each["key"]).split())
        subject = each["subject"]
        if subject is not None:
            subject = None if folded(subject.strip()) in _SPEAKER else " ".join(subject.split())
        place = _place(each["quote"], text)
        if place is None or not _is_name(key) or key in _SCHEMA_WORDS or not _stands(subject, text):
            continue
        value, quote = _trimmed(each["value"]), text[place[0] : place[1]]
        if _is_template(str(value)) or _is_template(key) or not _holds(quote, value):
            continue
        fact = Extracted(subject, key, value, quote, ended=each["ended"], multi=each["multi"], about=about)
        found.setdefault((subject, key, str(value)), (place[0], fact))
    return tuple(fact for _, fact in sorted(found.values(), key=lambda pair: pair[0]))


def _place(quote: str, text: str) -> tuple[int, int] | None:
    """Where `quote` stands in `text`, white space aside."""
    words = quote.split()
    if not words or len(quote) > _LONGEST_QUOTE:
        return None
    match = re.search(r"\s+".join(map(re.escape, words)), text)
    return match.span() if match else None


def _is_name(name: str) -> bool:
    return 0 < len(name) <= _LONGEST_NAME


def _stands(subject: str | None, text: str) -> bool:
    return subject is None or (_is_name(subject) and folded(subject) in folded(" ".join(text.split())))


def _trimmed(value: Value) -> Value:
    return " ".join(value.split()) if isinstance(value, str) else value


def _is_template(value: str) -> bool:
    return bool(_BLANKS.search(value)) or value in _LETTERS or value.casefold() in _EMPTY or not value


def _holds(quote: str, value: Value) -> bool:
    """Whether the value stands in the quote as a word of its own; a number in any of its usual forms."""
    if isinstance(value, int | float) and not isinstance(value, bool):
        return any(_same(number, value) for number in _NUMBER.findall(quote))
    words = r"\s+".join(map(re.escape, folded(str(value)).split()))
    return re.search(rf"(?<!\w){words}(?!\w)", folded(quote)) is not None


def _same(written: str, value: float) -> bool:
    plain = written.replace(",", "") if _THOUSANDS.fullmatch(written) else written.replace(",", ".")
    try:
        return float(plain) == value or float(written.replace(",", ".")) == value
    except ValueError:
        return False
