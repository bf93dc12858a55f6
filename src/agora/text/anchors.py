"""What two texts can have in common exactly: paths, symbols, commits, URLs, errors and issues, each in one spelling."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Literal
from urllib.parse import urlsplit, urlunsplit

from agora.text import codewords
from agora.text.normal import folded, visible

Kind = Literal["path", "symbol", "commit", "url", "error", "issue"]

READ = 20_000
"""Characters of a text that are looked through: beyond it lies data, and every caller reads many texts."""

_MOST = 200
"""Anchors of one text that are kept, in the order in which they stand."""

_HEAD_WORDS = 8
"""Words of an error's message that tell it from others; what follows is mostly the case at hand."""

# A word may start here. None of these signs is part of a path, so that each token is tried once.
_LEFT = r"(?<![^\s\"'`“”«»(\[{<=,;:|])"
_SEGMENT = r"[\w.@+%$-]+"
_WINDOWS = r"[^\\/:*?\"<>|\s]+"

_URL = re.compile(r"[A-Za-z][A-Za-z0-9+.-]{1,15}://[^\s<>\"'`“”«»]+")
_EXCEPTION = re.compile(
    r"(?<![\w.])(?:[A-Za-z_]\w*\.)*(?P<name>[A-Z]\w+(?:Error|Exception|Warning|Interrupt))\b"
    # Looked at and not taken: the next exception may stand in this one's message.
    r"(?=(?::[ \t]+(?P<head>[^\n]{1,200}))?)"
)
_HEAD_END = re.compile(r"[.!?](?:\s|$)|[;\"`“”]")
_CODE = re.compile(
    r"\b(?:ERR_[A-Z0-9_]+|[A-Z0-9_]*_ERR(?:OR)?(?:_[A-Z0-9_]*)?|ORA-\d{5}|(?:TS|CS)\d{4}|E\d{4}|0x[0-9A-Fa-f]{8}"
    rf"|{'|'.join(codewords.ERRNO)}|SIG(?:ABRT|BUS|FPE|ILL|KILL|SEGV|TERM))\b"
)
_STATUS = re.compile(
    r"\bHTTP(?:/\d(?:\.\d)?)?[ -](?:status )?(?:code )?(?P<a>[1-5]\d\d)\b"
    r"|\bstatus(?: code)?[ :=]{1,3}(?P<b>[1-5]\d\d)\b"
    rf"|\b(?P<c>[1-5]\d\d) (?:{'|'.join(codewords.STATUS)})\b",
    re.IGNORECASE,
)
_DRIVE = re.compile(
    rf"(?<![\w\\/])(?:[A-Za-z]:[\\/]+|\\\\{_WINDOWS}\\+)"
    rf"(?:{_WINDOWS}(?: [A-Z(][^\\/:*?\"<>|\s]*)*[\\/]+)*(?:{_WINDOWS})?"
)
_PATH = re.compile(rf"{_LEFT}(?:~[\\/]|/)?(?:{_SEGMENT}[\\/]+)+(?:{_SEGMENT})?(?!#\d)|{_LEFT}[~/]/?{_SEGMENT}")
_FILE = re.compile(
    rf"{_LEFT}[\w.-]+\.(?:{'|'.join(codewords.EXTENSIONS)})(?![\w/\\])|{_LEFT}(?:Dockerfile|Makefile|Jenkinsfile)\b"
)
_LINE = re.compile(r"(?::\d{1,6}){1,2}\b")
_EXTENSION = re.compile(r"[^.]\.[A-Za-z][A-Za-z0-9]{0,7}$")
_HOST = re.compile(r"[\w-]+(?:\.[\w-]+)*\.(?:com|org|net|io|dev|app|edu|gov|ai)$", re.IGNORECASE)
_REPOSITORY = re.compile(r"(?<![\w./-])[\w.-]+/[\w.-]+#\d{1,7}\b")
_TICKET = re.compile(r"(?<![\w/&#-])(?:CVE-\d{4}-\d{4,7}|(?P<project>[A-Z][A-Z0-9]{1,9})-\d{1,7})(?![\w-])")
_NUMBER = re.compile(
    r"(?P<word>\b(?:issue|bug|pr|pull request|ticket|fix|fixes|fixed|closes) )?(?<![\w/&#])#[1-9]\d{0,5}(?!\w)",
    re.IGNORECASE,
)
_COMMIT = re.compile(r"(?<![\w-])(?=\d*[a-f])(?=[a-f]*\d)(?:[0-9a-f]{7,40}|[0-9A-F]{7,40})(?![\w-])", re.IGNORECASE)
_EXPONENT = re.compile(r"\d+[eE]\d+$")
_NAME = re.compile(r"(?<![\w.@])[^\W\d]\w*(?:(?:\.|::)[^\W\d]\w*)*(?P<call>\(\))?(?!@)")
_SNAKE = re.compile(r"[^\W_]_[^\W_]")
_CAMEL = re.compile(r"(?:[A-Z]+[a-z0-9]+|[a-z][a-z0-9]+)(?:[A-Z]+[a-z0-9]*)+$")
_HEAD_EDGE = ".,;:!?)]}*"
_EDGE = _HEAD_EDGE + "'"


@dataclass(frozen=True, slots=True)
class Anchor:
    """Something a text names, in the one spelling that all texts are compared in.

    `start` and `stop` are where it stands in `visible(text)`; of an error with its message, where the name stands.
    """

    kind: Kind
    value: str
    start: int
    stop: int


def anchors(text: str) -> tuple[Anchor, ...]:
    """What the first `READ` characters of `text` name, in the order in which it stands there.

    Equal things are equal pairs of kind and value. Windows paths are folded and written with slashes, URLs lose
    fragment, credentials and last slash, exceptions their module. Prose that only looks like a name (and/or, UTF-8,
    GitHub) is none. Linear in the text's length.
    """
    shown = visible(text[:READ])[:READ]
    taken = bytearray(len(shown))
    found: list[Anchor] = []
    for kind, pattern, spell in _RULES:
        for match in pattern.finditer(shown):
            start, stop, value = spell(match)
            if value and not any(taken[start:stop]):
                taken[start:stop] = b"\1" * (stop - start)
                found.append(Anchor(kind, value, start, stop))
    return tuple(sorted(found, key=lambda anchor: anchor.start)[:_MOST])


def joined(named: Iterable[tuple[Kind, str]]) -> dict[tuple[Kind, str], tuple[Kind, str]]:
    """Each anchor and the anchor that it is: a short commit is the long one, a cut message the whole one.

    A beginning that fits two different ones stands for itself: nobody can say which of them it is.
    """
    by_kind: dict[Kind, set[str]] = {}
    for kind, value in named:
        by_kind.setdefault(kind, set()).add(value)
    found: dict[tuple[Kind, str], tuple[Kind, str]] = {}
    for kind, values in by_kind.items():
        begins = _BEGINS.get(kind)
        for value, whole in _wholes(sorted(values), begins) if begins else ((each, each) for each in values):
            found[kind, value] = (kind, whole)
    return found


def _wholes(values: list[str], begins: Callable[[str, str], bool]) -> Iterator[tuple[str, str]]:
    # Sorted, everything that starts with a value follows it at once.
    for place, value in enumerate(values):
        longer = []
        for other in values[place + 1 :]:
            if not other.startswith(value):
                break
            if begins(value, other):
                longer.append(other)
        ends = [one for one in longer if not any(other != one and begins(one, other) for other in longer)]
        yield value, ends[0] if len(ends) == 1 else value


def _begins_message(short: str, long: str) -> bool:
    # One word of a message is not enough to know it again.
    return long.startswith(short + " ") and short.count(" ") >= 2


_BEGINS: dict[Kind, Callable[[str, str], bool]] = {
    "commit": lambda short, long: long.startswith(short),
    "error": _begins_message,
}
_Spelt = tuple[int, int, str]


def _url(match: re.Match[str]) -> _Spelt:
    raw = match[0].rstrip(_EDGE)
    if raw.count("(") > raw.count(")") and match[0][len(raw) : len(raw) + 1] == ")":
        raw += ")"
    stop = match.start() + len(raw)
    try:
        parts = urlsplit(raw)
    except ValueError:
        return match.start(), stop, ""
    host = parts.netloc.rpartition("@")[2].casefold()
    default = {"http": ":80", "https": ":443"}.get(parts.scheme)
    host = host.removesuffix(default) if default else host
    return (
        match.start(),
        stop,
        urlunsplit((parts.scheme, host, parts.path.rstrip("/"), parts.query, "")) if host else "",
    )


def _exception(match: re.Match[str]) -> _Spelt:
    head = match["head"] or ""
    end = _HEAD_END.search(head)
    words = folded(head[: end.start()] if end else head).rstrip(_HEAD_EDGE).split()[:_HEAD_WORDS]
    return match.start(), match.end("name"), f"{match['name']}{': ' if words else ''}{' '.join(words)}"


def _status(match: re.Match[str]) -> _Spelt:
    return *match.span(), f"HTTP {match['a'] or match['b'] or match['c']}"


def _drive(match: re.Match[str]) -> _Spelt:
    raw, stop = _bare(match)
    unc = raw.startswith("\\\\")
    return match.start(), stop, ("//" if unc else "") + _slashes(raw).lstrip("/").casefold()


def _path(match: re.Match[str]) -> _Spelt:
    raw, stop = _bare(match)
    return match.start(), stop, _slashes(raw) if _is_path(re.sub(r"[\\/]+", "/", raw)) else ""


def _file(match: re.Match[str]) -> _Spelt:
    return *match.span(), "" if match[0].casefold() in codewords.BRANDS else match[0].removeprefix("./")


def _bare(match: re.Match[str]) -> tuple[str, int]:
    raw = match[0].rstrip(_EDGE)
    line = _LINE.match(match.string, match.start() + len(raw))
    return raw, line.end() if line else match.start() + len(raw)


def _slashes(raw: str) -> str:
    """A path with single slashes, no last one, and no step into the folder where it is."""
    whole = re.sub(r"[\\/]+", "/", raw)
    parts = [part for place, part in enumerate(whole.split("/")) if part != "." and (part or place == 0)]
    return "/".join(parts)


def _is_path(raw: str) -> bool:
    parts = [part for part in raw.split("/") if part]
    if not parts or not any(part.strip(".-_+%$@~") for part in parts):
        return False
    if raw[0] in "~." or _EXTENSION.search(parts[-1]):
        return raw[0] == "/" or (len(parts) > 1 and not _HOST.match(parts[0]))
    if raw[0] == "/":
        return len(parts) > 1
    return len(parts) > 1 and parts[0] in codewords.FOLDERS


def _ticket(match: re.Match[str]) -> _Spelt:
    return *match.span(), "" if match["project"] in codewords.STANDARDS else match[0]


def _number(match: re.Match[str]) -> _Spelt:
    start = match.start() + len(match["word"] or "")
    value = match.string[start : match.end()]
    # "Our #1 priority" is no issue.
    return start, match.end(), value if match["word"] or len(value) > 2 else ""


def _commit(match: re.Match[str]) -> _Spelt:
    return *match.span(), "" if _EXPONENT.match(match[0]) else match[0].lower()


def _name(match: re.Match[str]) -> _Spelt:
    raw = match[0].removesuffix("()")
    if raw.casefold() in codewords.BRANDS:
        return *match.span(), ""
    parts = re.split(r"\.|::", raw)
    code = match["call"] or "::" in raw or any(_SNAKE.search(part) or _is_camel(part) for part in parts)
    return *match.span(), raw if code else ""


def _is_camel(word: str) -> bool:
    return word.casefold() not in codewords.BRANDS and _CAMEL.match(word) is not None


def _plain(match: re.Match[str]) -> _Spelt:
    return *match.span(), match[0]


def _repository(match: re.Match[str]) -> _Spelt:
    return *match.span(), match[0].casefold()


_RULES: tuple[tuple[Kind, re.Pattern[str], Callable[[re.Match[str]], _Spelt]], ...] = (
    ("url", _URL, _url),
    ("error", _EXCEPTION, _exception),
    ("error", _CODE, _plain),
    ("error", _STATUS, _status),
    ("path", _DRIVE, _drive),
    ("issue", _REPOSITORY, _repository),
    ("path", _PATH, _path),
    ("path", _FILE, _file),
    ("issue", _TICKET, _ticket),
    ("issue", _NUMBER, _number),
    ("commit", _COMMIT, _commit),
    ("symbol", _NAME, _name),
)
"""In this order: what an earlier rule has taken, a later one leaves."""
