from __future__ import annotations

import re
from collections.abc import Iterator

LONGEST = 400
"""Characters of a sentence that is read: plain statements are short, and every rule is bounded by it."""

_FENCE = re.compile(r"\s{0,3}(```|~~~)")
_BULLET = re.compile(r"\s*(?:[-*•+]|\d{1,3}[.)])\s+(?:\[[ xX]\]\s+)?")
_NOT_PROSE = re.compile(
    r"\s*(?:>|\||#{1,6}\s|\$\s|%\s|@@|\+\+\+|---|<[/!a-zA-Z]|//|/\*|at\s\S+\(|File\s\"|Traceback|"
    r"\[?\d{4}[-/]\d\d[-/]\d\d[T ]\d\d:|\[?\d\d:\d\d:\d\d|\[?(?:TRACE|DEBUG|INFO|NOTICE|WARN|WARNING|ERROR|FATAL|"
    r"CRITICAL)\b)|(?:\t|\s{4})"
)
"""Quotations, tables, headings, commands, differences, markup, stack traces, log lines, indented code."""

_CELLS = re.compile(r"\s\|\s|\t")
_FULL, _WRAPPED = 50, 110
"""A line of such a length may go on in the next one; a shorter or a longer one was ended on purpose."""

_PLACEHOLDER = re.compile(
    r"<[A-Za-zА-Яа-я_][^<>\n]{0,60}>|\{\{|\{%|\$\{|\$[A-Z_]{2,}\b|\$\(|\{[A-Za-z_]\w{0,40}\}|%[sd]\b|%\(|"
    r"\[[^\W\d][^\[\]\n]{0,60}\](?!\()|\b(?:YOUR|MY)_[A-Z]|\b[Ll]orem ipsum\b|_{3,}|\bx{3,}\b|\.\.\.\s*\w+\s*\.\.\."
)
_END = re.compile(r"[.!?…]+[\"'”’»)\]*]*(?=\s|$)|\n")
_INITIAL = re.compile(r"(?:^|[\s.(])(?:[^\W\d_]|Mr|Mrs|Ms|Dr|St|Prof|Sig|vs|No|approx|ca|art|pag|ул|г|им|e\.g|i\.e)$")
_WHOLE = re.compile(r"(?<=\s)(?!approx|circa)[^\W\d_A-ZА-Я]{4,11}$")
_OPENING = re.compile(r"(?:(?<=\s)|^)['‘](?=\w)")
_CLOSING = re.compile(r"(?<=[\w.,!?…])['’](?=[\s.,;:!?)]|$)")
_SPOKEN = re.compile(r"[\"“«][^\"“”«»]{1,400}[\"”»]|(?:(?<=\s)|^)['‘][^'‘’]{1,400}['’](?!\w)")


def sentences(text: str) -> Iterator[str]:
    """The sentences of `text` that state something in prose, in order, each as it stands there.

    Left out: questions, code, quotations, tables, headings, logs, template text, speech of others in quotation marks,
    and what is longer than `LONGEST`.
    """
    for start, stop in _blocks(text):
        inside = False
        for first, last in _cut(text, start, stop):
            sentence = text[first:last]
            was, inside = inside, _still_inside(sentence, inside=inside)
            if (
                was
                or inside
                or len(sentence) > LONGEST
                or sentence.rstrip("\"'”’»)]* ").endswith(("?", "…", "...", ":"))
            ):
                continue
            if _PLACEHOLDER.search(sentence) or _quotes_speech(sentence):
                continue
            yield sentence


def _blocks(text: str) -> Iterator[tuple[int, int]]:
    """Where lines of prose that belong together begin and end."""
    fenced = False
    start = stop = place = 0
    for line in text.splitlines(keepends=True):
        begin, place = place, place + len(line)
        bullet = _BULLET.match(line)
        if _FENCE.match(line):
            fenced = not fenced
            prose = False
        else:
            prose = not fenced and bool(line.strip()) and not _CELLS.search(line.strip())
            prose = prose and (bullet is not None or not _NOT_PROSE.match(line))
        if stop > start and (not prose or bullet):
            yield start, stop
            start = stop = place
        if prose:
            if stop <= start:
                start = begin + (bullet.end() if bullet else 0)
            stop = place
        else:
            start = stop = place
    if stop > start:
        yield start, stop


def _cut(text: str, start: int, stop: int) -> Iterator[tuple[int, int]]:
    first = line = start
    for end in _END.finditer(text, start, stop):
        if end.group() == "\n":
            full = _FULL <= end.start() - line <= _WRAPPED
            line = end.end()
            if full:
                continue
        elif not _ends(text, first, end, stop):
            continue
        yield from _trimmed(text, first, end.end())
        first = end.end()
    yield from _trimmed(text, first, stop)


def _ends(text: str, first: int, end: re.Match[str], stop: int) -> bool:
    after = text[end.end() : min(end.end() + 2, stop)].strip()
    if after and after[0].islower():
        # "Ahoy! was", "Acme Inc. was"; but "in use. npm runs".
        return end.group() == "." and bool(_WHOLE.search(text, max(first, end.start() - 12), end.start()))
    return not (end.group() == "." and after and _INITIAL.search(text, max(first, end.start() - 12), end.start()))


def _trimmed(text: str, first: int, last: int) -> Iterator[tuple[int, int]]:
    while first < last and text[first].isspace():
        first += 1
    while last > first and text[last - 1].isspace():
        last -= 1
    if last > first:
        yield first, last


def _still_inside(sentence: str, *, inside: bool) -> bool:
    """Whether speech that was opened in or before `sentence` is open at its end."""
    plain = sentence.count('"')
    opened = sum(map(sentence.count, "“«")) + len(_OPENING.findall(sentence))
    closed = sum(map(sentence.count, "”»")) + len(_CLOSING.findall(sentence))
    if inside:
        return not (plain % 2 or closed > opened)
    return bool(plain % 2) or opened > closed


def _quotes_speech(sentence: str) -> bool:
    return any(len(spoken.group().split()) > 3 for spoken in _SPOKEN.finditer(sentence))
