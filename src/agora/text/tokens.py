from __future__ import annotations

import re
import unicodedata

_BYTES_PER_TOKEN = 4
_CUT = "…"
_CUT_BYTES = len(_CUT.encode())

_SENTENCE_END = re.compile(r"[.!?…]+[\"')\]»”’]*(?=\s)|[。！？]+|(?=\n)")
_BLANK = re.compile(r"\s")
_WORD_REACH = 40
"""Characters looked through for the end of a word; further away there are no blanks, as in Chinese."""

_ZWJ = "\u200d"
_VIRAMA = 9
"""Canonical combining class of the sign that joins two Indic consonants into one letter."""


def cost(text: str) -> int:
    """Tokens that `text` is counted as: its UTF-8 bytes divided by four, rounded up.

    No tokenizer is shared by all clients. Four bytes is the usual rate for English prose; it counts Cyrillic
    and CJK, which take two and three bytes a character, about as high as tokenizers do, and code too low.
    """
    return -(-len(text.encode()) // _BYTES_PER_TOKEN)


def window(text: str, span_start: int, span_stop: int, max_tokens: int) -> str:
    """The part of `text` around a span of characters that costs at most `max_tokens`, "…" where it was cut.

    Contains the whole span where that fits, with about as much before it as after it; otherwise the span's
    beginning. Cuts between sentences, else between words, else between characters as a reader sees them: a
    letter keeps its marks, a flag or a family its parts. A span outside the text is moved inside. Never
    empty when `text` is not and `max_tokens` is at least 1: at worst it is "…".
    """
    if cost(text) <= max_tokens:
        return text
    if max_tokens < 1:
        return ""
    start = _before(text, max(0, min(span_start, len(text))))
    stop = _after(text, max(start, min(span_stop, len(text))))
    room = max_tokens * _BYTES_PER_TOKEN - 2 * _CUT_BYTES
    needed = len(text[start:stop].encode())
    if needed > room:
        stop = _end(text, start, _reach(text, start, 1, room))
    else:
        start, stop = _widen(text, start, stop, room - needed)
    kept = text[start:stop].strip()
    return f"{_CUT if start else ''}{kept}{_CUT if stop < len(text) else ''}" if kept else _CUT


def _widen(text: str, start: int, stop: int, spare: int) -> tuple[int, int]:
    """The span with up to `spare` bytes of what surrounds it, half on each side unless one side is short."""
    first = _reach(text, start, -1, spare // 2)
    last = _reach(text, stop, 1, spare - len(text[first:start].encode()))
    if last == len(text):
        first = _reach(text, start, -1, spare - len(text[stop:last].encode()))
    return _beginning(text, first, start), _end(text, stop, last)


def _reach(text: str, place: int, step: int, room: int) -> int:
    """How far from `place` one gets in the direction of `step` within `room` bytes."""
    if room < 1:
        return place
    # A character has at least one byte, so no more of them are looked at than there are bytes; a character that is
    # cut by the limit does not decode and is left out.
    if step > 0:
        return place + len(text[place : place + room].encode()[:room].decode(errors="ignore"))
    return place - len(text[max(0, place - room) : place].encode()[-room:].decode(errors="ignore"))


def _beginning(text: str, first: int, start: int) -> int:
    """The best place from `first` to `start` to begin at."""
    if first == 0:
        return 0
    half = first + (start - first) // 2
    if found := _SENTENCE_END.search(text, first, half + 1):
        return found.end()
    if found := _BLANK.search(text, first - 1, min(start, first + _WORD_REACH)):
        return found.end()
    return min(_after(text, first), start)


def _end(text: str, stop: int, last: int) -> int:
    """The best place from `stop` to `last` to end at."""
    if last == len(text):
        return last
    half = stop + (last - stop) // 2
    ends = [found.end() for found in _SENTENCE_END.finditer(text, half, last + 1) if found.end() <= last]
    if ends:
        return ends[-1]
    for place in range(last, max(stop, last - _WORD_REACH), -1):
        if text[place].isspace():
            return place
    return max(_before(text, last), stop)


def _before(text: str, place: int) -> int:
    while _inside(text, place):
        place -= 1
    return place


def _after(text: str, place: int) -> int:
    while _inside(text, place):
        place += 1
    return place


def _inside(text: str, place: int) -> bool:
    """Whether `place` lies within one user-perceived character; the rules of UAX #29 that texts here meet."""
    if not 0 < place < len(text) or text[place].isascii():
        return False
    left, right = text[place - 1], text[place]
    if unicodedata.category(right)[0] == "M" or _extends(right) or left == _ZWJ:
        return True
    if _is_flag_letter(right):
        return _flag_letters_before(text, place) % 2 == 1
    return unicodedata.combining(left) == _VIRAMA


def _extends(character: str) -> bool:
    """Whether a character that is no mark belongs to the one before it."""
    return (
        character in "\u200c\u200d\u0e33\u0eb3"
        or "\U0001f3fb" <= character <= "\U0001f3ff"  # skin tones
        or "\U000e0020" <= character <= "\U000e007f"  # tags of regional flags
        or "\u1160" <= character <= "\u11ff"  # Hangul vowels and finals written apart
        or "\ud7b0" <= character <= "\ud7fb"
    )


def _is_flag_letter(character: str) -> bool:
    return "\U0001f1e6" <= character <= "\U0001f1ff"


def _flag_letters_before(text: str, place: int) -> int:
    first = place
    while first and _is_flag_letter(text[first - 1]):
        first -= 1
    return place - first
