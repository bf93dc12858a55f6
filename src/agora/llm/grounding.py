"""Whether a summary tells numbers, paths and ids that nothing it was made from has."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Final

from agora.text.anchors import anchors
from agora.text.normal import folded, visible

READ: Final = 20_000
"""Characters of a summary that are checked: many times what one may have. Its sources are read whole."""

MOST: Final = 50
"""Findings that are listed: whoever corrects a summary with more of them starts again."""

_TRIES: Final = 200
"""Places of a source where an id is looked at: in data made of nothing but its beginning there is no end of them."""

_SHORT: Final = 8
"""Letters and digits of a word such as Q3 or IPv6, whose number may also stand by itself."""

_SHORTEST_HASH: Final = 7

_RANGE = re.compile(r"^[ \t]*Messages? (\d{1,12}) (?:to|-|–) (\d{1,12}):?[ \t]*$", re.MULTILINE | re.IGNORECASE)
_LISTED = re.compile(r"^[ \t]*(?:[-*+•>][ \t]+)*\d{1,3}[.)](?=[ \t])", re.MULTILINE)
_REFERENCE = re.compile(r"(?<![\w/&#])#(\d{1,12})(?!\w|-\w|[.,]\d)")
_TOKEN = re.compile(r"[A-Za-z][A-Za-z0-9+.-]{1,15}://[^\s<>\"'`“”«»]+|(?:[^\s\"`“”«»()\[\]{}<>|=;*,≈~→]|,(?=\d))+")
_EDGES = ".,:;!?…'\"`_’‘-–—/\\"
_LEADS = ":;!?…'\"`‘-–—,"
_MAIL = re.compile(r"[\w.+-]+@[\w-]+(?:\.[\w-]+)+$")
_UUID = re.compile(r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}$", re.IGNORECASE)
_ID = re.compile(r"(?=[\w-]*[A-Za-z])(?=[\w-]*\d)[\w-]{16,}$")
_OPAQUE = re.compile(
    r"(?<![\w-])(?=[\w-]*[a-z])(?=[\w-]*\d)(?:\w{12,}|[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12})(?![\w-])"
)
_NUMBER = re.compile(r"\d+(?:[.,:'’]\d+)*(?:[kKM](?!\w))?")
_GROUPS = re.compile(r"\d{1,3}(?:([,.'’])\d{3})(?:\1\d{3})*$")
_SPACED = re.compile(r"(?<![\d.,])\d{1,3}(?:[ _]\d{3})+(?![\d_])")
_DATE = re.compile(r"(?<!\d)(\d{4})-(\d\d)-(\d\d)(?!\d)")
_LETTERED = re.compile(r"[^\W\d_]+\d[\w]*$")
_MONTHS: Final = tuple(
    tuple(line.split())
    for line in (
        "jan genn янв",
        "feb febb фев",
        "mar мар",
        "apr апр",
        "may mag мая май",
        "jun giu июн",
        "jul lug июл",
        "aug ago авг",
        "sep set сен",
        "oct ott окт",
        "nov ноя",
        "dec dic дек",
    )
)
_MULTIPLES: Final = {"k": "000", "K": "000", "M": "000000"}


def unfounded(text: str, sources: Sequence[str], covers: tuple[int, int] | None = None) -> tuple[str, ...]:
    """The numbers, paths and ids of a summary that none of its sources has, as it writes them, in order, each once.

    Ids are commits, ULIDs and UUIDs, tickets, versions, e-mail addresses and URLs. Not held against a summary are
    other spellings of a number (1,000 and 1000, 1,5 and 1.5, 5k, 3rd), a date written in digits whose month has its
    name in a source, a shorter form of a version or commit, the last parts of a path, the numbers of a list, and
    references such as `#12` to a message of the range that the summary covers: `covers`, or else what its own first
    line says.
    At most `MOST`. Linear in the sources' length.
    """
    shown = visible(text[:READ])[:READ]
    haystack = _slashed(folded("\n".join(sources)))
    known = frozenset(_source_numbers(haystack))
    stated = _RANGE.search(shown)
    first, last = covers or ((int(stated[1]), int(stated[2])) if stated else (1, 0))
    shown = _RANGE.sub(lambda found: _own(found, covers), shown)
    shown = _LISTED.sub(" ", shown)
    shown = _REFERENCE.sub(lambda found: " " if first <= int(found[1]) <= last else found[0], shown)
    shown = _SPACED.sub(lambda found: " " if re.sub(r"\D", "", found[0]) in known else found[0], shown)
    found: dict[str, None] = {}
    tokens = dict.fromkeys(match[0].rstrip(_EDGES).lstrip(_LEADS) for match in _TOKEN.finditer(shown))
    for token in tokens:
        for wrong in _wrong(token, haystack, known):
            found.setdefault(wrong)
            if len(found) >= MOST:
                return tuple(found)
    return tuple(found)


def _own(line: re.Match[str], covers: tuple[int, int] | None) -> str:
    """Nothing in place of a range line that tells the truth."""
    return " " if covers is None or covers == (int(line[1]), int(line[2])) else line[0]


def _wrong(token: str, haystack: str, known: frozenset[str]) -> Iterator[str]:
    if (name := _name(token)) is not None:
        if not _occurs(name, haystack):
            yield token
    elif any(map(str.isdigit, token)):
        rest = token
        for date in _DATE.finditer(token):
            rest = rest.replace(date[0], " ")
            if not _is_dated(date, haystack, known):
                yield date[0]
        for part in re.split(r"[/–—+\s-]|(?<=\d)x(?=\d)", rest):
            if any(map(str.isdigit, part)) and not _is_known(part, haystack, known):
                yield part.strip(_EDGES)


def _name(token: str) -> str | None:
    """A path or an id as it is looked for; None if the token is neither."""
    if "://" in token or _MAIL.match(token) or _UUID.match(token) or _ID.match(token):
        return _slashed(folded(token)).rstrip("/")
    for anchor in anchors(token):
        if anchor.kind in {"path", "commit", "issue"} and anchor.stop - anchor.start >= len(token) - 1:
            # "#7" is a number like others; "/etc/hosts:3" is known by the path.
            return None if token.startswith("#") else folded(anchor.value)
    return None


def _occurs(name: str, haystack: str) -> bool:
    """Whether a name stands in the sources whole; of a commit also as the beginning of the full one."""
    short = len(name) >= _SHORTEST_HASH and all(character in "0123456789abcdef" for character in name)
    place = -1
    for _ in range(_TRIES):
        place = haystack.find(name, place + 1)
        if place < 0:
            return False
        before, after = haystack[place - 1 : place], haystack[place + len(name) : place + len(name) + 1]
        if not _goes_on(before) and (short or not _goes_on(after)):
            return True
    return False


def _goes_on(character: str) -> bool:
    return character.isalnum() or character == "_"


def _is_known(part: str, haystack: str, known: frozenset[str]) -> bool:
    word = part.strip(_EDGES)
    if _LETTERED.match(word):
        return _occurs(folded(word), haystack) or (len(word) <= _SHORT and _all_known(word, known))
    return _all_known(word, known)


def _all_known(word: str, known: frozenset[str]) -> bool:
    return all(any(known.issuperset(reading) for reading in _readings(number[0])) for number in _NUMBER.finditer(word))


def _is_dated(date: re.Match[str], haystack: str, known: frozenset[str]) -> bool:
    if date[0] in haystack:
        return True
    year, month, day = (str(int(part)) for part in date.groups())
    if not 1 <= int(month) <= 12 or not {year, day} <= known:
        return False
    return month in known or any(re.search(rf"(?<!\w){name}", haystack) for name in _MONTHS[int(month) - 1])


def _source_numbers(haystack: str) -> Iterator[str]:
    # Every digit is in some hash: what stands in one is no number.
    haystack = _OPAQUE.sub(" ", haystack)
    for found in _NUMBER.finditer(haystack):
        for reading in _readings(found[0]):
            yield from reading
        if found[0].count(".") > 1:
            parts = found[0].split(".")
            # What is 3.11.4 may be called 3.11.
            yield from (_canonical(".".join(parts[:count])) for count in range(2, min(len(parts), 5)))
    for found in _SPACED.finditer(haystack):
        yield re.sub(r"\D", "", found[0])


def _readings(raw: str) -> Iterator[Sequence[str]]:
    """The numbers that a writing may mean: "1.000" is a thousand, or one; "1,2" is one and a fifth, or one and two."""
    bare = raw.rstrip("kKM")
    yield (_canonical(bare),)
    if zeros := _MULTIPLES.get(raw[-1]):
        yield (_multiplied(bare, len(zeros)),)
    grouped = _GROUPS.match(bare) is not None
    if grouped:
        yield (_canonical(re.sub(r"\D", "", bare)),)
    if bare.count(",") == 1 and not grouped:
        yield (_canonical(re.sub(r"[.'’]", "", bare).replace(",", ".")),)
    if bare.count(".") == 1 and "," in bare:
        yield (_canonical(bare.replace(",", "")),)
    if ":" in bare:
        yield (_canonical(bare.replace(":", ".")),)
        hour, *rest = bare.split(":")
        if not any(part.strip("0") for part in rest):
            yield (_canonical(hour),)
    if not grouped and ("," in bare or ":" in bare):
        yield tuple(_canonical(part) for part in re.split("[,:]", bare))


def _multiplied(bare: str, zeros: int) -> str:
    whole, _, part = bare.replace(",", ".").partition(".")
    return _canonical(whole + part[:zeros].ljust(zeros, "0")) if part.isdigit() or not part else bare


def _canonical(number: str) -> str:
    """Without zeros that do not count."""
    whole, dot, part = number.partition(".")
    if dot and part.isdigit():
        part = part.rstrip("0")
    whole = whole.lstrip("0") or "0" if whole.isdigit() else whole
    return f"{whole}.{part}" if part else whole


def _slashed(text: str) -> str:
    return re.sub(r"[\\/]+", "/", text)
