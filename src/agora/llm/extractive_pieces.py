"""Messages cut into pieces that can be quoted: sentences, parts of long ones, commands and errors in code and logs."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime
from typing import Literal

from agora.model.message import Role

Section = Literal["decisions", "open", "facts"]

HEAD, TAIL = 6_000, 2_000
"""Characters of a message that are read, at its beginning and at its end: what lies between is data."""

LONG = 180
"""Characters beyond which a sentence is taken in parts, each of which may be quoted without the others."""

_LEAST = 60
"""Characters that a part has before it ends at a comma."""

# The ends that `str.splitlines` knows: a quote is one line, and a summary is read back by lines.
_LINE = re.compile("[^\n\r\x0b\x0c\x1c-\x1e\x85\u2028\u2029]+")
_FENCE = re.compile(r"\s*(?:```|~~~)")
_MARKER = re.compile(r"\s*(?:(?:[-*+•>]|\d{1,3}[.)]|\[[ x]\])\s+)*")
_HEADING = re.compile(
    r"\s*(?:#{1,6}\s|[|=_*-]{3,}\s*$|\||(?:[-*+•]\s+|\d{1,3}[.)]\s+)?\*\*[^*]{1,80}\*\*:?\s*$)|.{0,24}:\s*$"
)
_LOG = re.compile(
    r"\s*(?:\d{4}-\d\d-\d\d[T ]\d\d:\d\d|\[?\d\d:\d\d:\d\d\b|\[?(?:DEBUG|INFO|WARN|WARNING|TRACE|ERROR|FATAL)\b[\]: ]"
    r"|File \"|at [\w.$<>]+\()"
)
_CODE = re.compile(
    r"(?:\t| {4,})(?![-*+•\d])\S|\s*(?:import |from \S+ import |def |class \w+[:(]|return\b|const |let \w+ =|var "
    r"|function\b|#include|\\[\[(]|</?\w|@\w+(?:\(|$)|public |private |(?:if|for|while) ?\(.{0,120}\{)"
    r"|.{0,120}\\(?:frac|text|times|sqrt|cdot)\b"
)
_CODE_END = re.compile(r"(?:[{}]|[=(].*;|=>|\):)\s*$")
_ERROR = re.compile(
    r"\b[A-Z]\w*(?:Error|Exception)\b(?=:|$)|\b(?:error|fatal|panic)(?:\[\w+\])?: |\b(?:FAILED|ERROR|FATAL|CRITICAL)\b"
    r"|^\s*E  "
)
_COMMAND = re.compile(
    r"\s*\$ \S|\s*(?:git|pip|uv|npm|npx|yarn|pnpm|docker|make|cargo|go|kubectl|helm|terraform|curl|ssh|pytest|python3?"
    r"|sudo|apt|brew|systemctl|psql|agora) \S"
)
# Each run of full stops is tried once, from its first: a million of them take no longer than other text.
_END = re.compile(r"(?:(?<![.!?…])[.!?…]+[\"')\]»”’*_]*|;)\s+|[。！？]+\s*")
_SHORTENED = re.compile(
    r"(?:^|[\s(])(?:\w|[Dd]r|[Mm]rs?|Ms|[Ss]t|[Pp]rof|[Ss]ig|[Dd]ott|[Ii]ng|vs|etc|e\.g|i\.e|[Nn]o|p\.es|г|ул|т\.[еп]"
    r"|др|им)$"
)
_CLAUSE = re.compile(r"[,;:)]\s+|\s[–—-]\s+|[，、；：]")
_BLANK = re.compile(r"\s+")


@dataclass(frozen=True, slots=True)
class Source:
    """A text that may be quoted: a message, or a line of the summary before, which is in place of its message.

    `seq` and `who` are None for a line that names no message. `cut_left`, `cut_right`: the line is a part of its
    sentence. `section`: where the summary before had it.
    """

    text: str
    seq: int | None
    who: str | None
    role: Role
    at: datetime | None = None
    section: Section | None = None
    cut_left: bool = False
    cut_right: bool = False


@dataclass(frozen=True, slots=True)
class Piece:
    """A slice of a source's text. `place` counts its pieces; `follows`: it goes on where the piece before ends.

    `opens` and `closes` say whether it begins and ends where a sentence does.
    """

    place: int
    start: int
    stop: int
    kind: Literal["prose", "command", "error"] = "prose"
    follows: bool = False
    opens: bool = True
    closes: bool = True


def pieces(text: str) -> list[Piece]:
    """What of a message can be quoted, in order. Linear; of a long message only `HEAD` and `TAIL` are read."""
    found: list[Piece] = []
    for start, stop in _read(text):
        code = False
        for line in _LINE.finditer(text, start, stop):
            raw = line[0]
            if _FENCE.match(raw):
                code = not code
            elif code or _LOG.match(raw) or _is_code(raw):
                _add_code(raw, line.start(), found)
            elif not _HEADING.match(raw):
                _add_prose(text, line.start() + _marked(raw), line.end(), found)
    return found


def prose(line: str) -> list[Piece]:
    """The same of a text that is one line of prose, whatever it looks like."""
    found: list[Piece] = []
    _add_prose(line, 0, min(len(line), HEAD), found)
    return found


def _read(text: str) -> Iterator[tuple[int, int]]:
    if len(text) <= HEAD + TAIL:
        yield 0, len(text)
    else:
        yield 0, HEAD
        # From the next line on: half a line reads like something else.
        end = text.find("\n", len(text) - TAIL)
        yield (end if end >= 0 else len(text) - TAIL), len(text)


def _marked(raw: str) -> int:
    found = _MARKER.match(raw)
    return found.end() if found else 0


def _is_code(raw: str) -> bool:
    return _CODE.match(raw) is not None or (len(raw) <= LONG and _CODE_END.search(raw) is not None)


def _add_code(raw: str, start: int, found: list[Piece]) -> None:
    shown = raw[: 2 * LONG]
    kind: Literal["command", "error"] | None = (
        "error" if _ERROR.search(shown) else "command" if _COMMAND.match(shown) else None
    )
    if kind is not None:
        first, last = start + len(raw) - len(raw.lstrip()), start + len(shown.rstrip())
        stop = min(last, first + LONG)
        found.append(Piece(len(found), first, stop, kind, closes=stop == start + len(raw.rstrip())))


def _add_prose(text: str, start: int, stop: int, found: list[Piece]) -> None:
    follows = False
    for first, last in _sentences(text, start, stop):
        parts = list(_parts(text, first, last))
        for n, (a, b) in enumerate(parts):
            found.append(Piece(len(found), a, b, follows=follows, opens=n == 0, closes=n == len(parts) - 1))
            follows = True


def _sentences(text: str, start: int, stop: int) -> Iterator[tuple[int, int]]:
    """Where the sentences of a line are, without the blanks around them."""
    begin = start
    for end in _END.finditer(text, start, stop):
        if end[0][0] == "." and _goes_on(text, begin, end):
            continue
        yield from _stripped(text, begin, end.end())
        begin = end.end()
    yield from _stripped(text, begin, stop)


def _goes_on(text: str, begin: int, end: re.Match[str]) -> bool:
    """Whether a full stop is that of an abbreviation: a small letter follows, or a short form ends there."""
    after = text[end.end() : end.end() + 1]
    return after.islower() or _SHORTENED.search(text, max(begin, end.start() - 8), end.start()) is not None


def _parts(text: str, start: int, stop: int) -> Iterator[tuple[int, int]]:
    """A sentence, or a long one in parts that end at a clause, else at a blank, else anywhere."""
    while stop - start > LONG:
        limit = start + LONG
        ends = [found.end() for found in _CLAUSE.finditer(text, start + _LEAST, limit)]
        if not ends:
            ends = [found.end() for found in _BLANK.finditer(text, start + _LEAST, limit)][-1:]
        cut = ends[0] if ends else limit
        yield from _stripped(text, start, cut)
        start = cut
    yield from _stripped(text, start, stop)


def _stripped(text: str, start: int, stop: int) -> Iterator[tuple[int, int]]:
    raw = text[start:stop]
    first = start + len(raw) - len(raw.lstrip())
    last = start + len(raw.rstrip())
    if first < last:
        yield first, last
