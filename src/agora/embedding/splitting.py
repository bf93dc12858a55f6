"""Cuts a long text into overlapping passages that the model can read, at sentence ends where it can."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable, Sequence

from agora.model.deadline import Deadline
from agora.model.profile import Span

Offsets = Sequence[tuple[int, int]]

WINDOW = 128
"""Word pieces of a passage at most, when a text does not fit into one: what the model was trained on.

On XQuAD English, notes of two and of six paragraphs, a question finds its note at the first place in .85
and .83 with 128, in .76 and .76 with 200, in .73 and .73 with 254 (ADR 2)."""

WHOLE = 148
"""Word pieces of a text, or of the rest of one, that stays whole: what follows a full passage is more than
its overlap. A whole passage up to 254 found its note in .79 of the cases, not .85."""

EARLIEST = 90
"""A passage may end from here on, if a sentence, a line or at least a word ends."""

OVERLAP = (20, 40)
"""Word pieces that a passage shares with the next one, at least and at most: a sentence or two."""

LONGEST = 8192
"""Code points of a passage at most, unless all but a few are white space. Only words of over 100
characters, which WordPiece reads as one unknown piece, come near it."""

_FIRST_READ, _LEAST_READ = 2048, 256
_OVERLAP_CHARACTERS = 1024
_GRAPHEME = 64
_ENDS = (
    re.compile(r"\n[^\S\n]*\n\s*"),
    re.compile(r"\n\s*"),
    re.compile(r"[.!?…][\"'”’»)\]]*\s+|[。！？｡]+[”』」）]*"),
    re.compile(r"\s+"),
)
"""Where a passage may end, best first: paragraph, line, sentence, word."""

_JOINERS = frozenset("\N{ZERO WIDTH JOINER}\N{VARIATION SELECTOR-15}\N{VARIATION SELECTOR-16}")
_SKIN_TONES = range(0x1F3FB, 0x1F400)


def split(text: str, pieces: Callable[[str], Offsets], room: int, deadline: Deadline) -> tuple[Span, ...]:
    """Passages that cover `text`, in order, each but the last overlapping the next; at least one.

    `pieces` gives the offsets of the word pieces of a text; each passage, taken alone, has at most `room`
    and at most `WHOLE` of them, so that nothing of it is cut off when it is encoded. Memory does not grow
    with the text: it is tokenised a passage at a time, with a look ahead.

    Raises: DeadlineExceeded, Cancelled.
    """
    spans: list[Span] = []
    room = min(room, WHOLE)
    start, reach = 0, _FIRST_READ
    # White space behind the last word makes no passage of its own.
    end = len(text.rstrip())
    while True:
        deadline.check()
        found = pieces(text[start : start + reach])
        last = start + reach >= end
        if len(found) <= room:
            if last:
                return (*spans, Span(start, len(text)))
            if not found:
                # Nothing to read so far, and what is nothing may be as long as it likes.
                reach *= 2
                continue
            if reach < LONGEST:
                reach = min(LONGEST, 2 * reach)
                continue
        stop, own = _passage(text, start, start + reach, found, pieces, room)
        spans.append(Span(start, stop))
        if stop >= end:
            return (*spans[:-1], Span(start, len(text)))
        # A look ahead of half a passage shows that there are more pieces than fit.
        reach = min(LONGEST, max(_LEAST_READ, (stop - start) * 3 // 2))
        start = _next_start(text, start, stop, own)


def _passage(
    text: str, start: int, ahead: int, found: Offsets, pieces: Callable[[str], Offsets], room: int
) -> tuple[int, Offsets]:
    """Where the passage that begins at `start` stops, and the offsets of its pieces."""
    if len(found) > room:
        window = min(WINDOW, room)
        earliest, latest = start + found[window * EARLIEST // WINDOW][0], start + found[window][0]
    else:
        # Few pieces in many characters.
        earliest, latest = (start + ahead) // 2, ahead
    stop = max(start + 1, _end_between(text, earliest, latest))
    own = pieces(text[start:stop])
    # A word of over 100 characters is one piece, its first half may be a hundred.
    while len(own) > room and stop > start + 1:
        stop = max(start + 1, _whole(text, start, start + own[min(WINDOW, room)][0]))
        own = pieces(text[start:stop])
    return stop, own


def _next_start(text: str, start: int, stop: int, own: Offsets) -> int:
    least, most = OVERLAP
    if len(own) > 2 * most:
        earliest, latest = start + own[-most][0], start + own[-least][0]
        earliest = max(earliest, stop - _OVERLAP_CHARACTERS)
    else:
        characters = min(_OVERLAP_CHARACTERS, (stop - start) // 4)
        earliest, latest = stop - characters, stop - characters // 2
    found = _end_between(text, earliest, max(earliest, latest))
    # Always onwards, even when many pieces stand for one character.
    return found if start < found < stop else stop


def _end_between(text: str, earliest: int, latest: int) -> int:
    """The last position in (earliest, latest] where a paragraph ends, else a line, a sentence, a word, a grapheme."""
    for pattern in _ENDS:
        best = 0
        for match in pattern.finditer(text, earliest, latest):
            best = match.end()
        if best:
            return best
    return _whole(text, earliest, latest)


def _whole(text: str, earliest: int, position: int) -> int:
    """`position`, or a little before it, so that marks, joined emoji and skin tones stay with their base."""
    at = position
    while at > max(earliest, position - _GRAPHEME) and at < len(text) and _joined(text[at - 1], text[at]):
        at -= 1
    return at if at > earliest else position


def _joined(before: str, after: str) -> bool:
    return (
        after in _JOINERS
        or before == "\N{ZERO WIDTH JOINER}"
        or ord(after) in _SKIN_TONES
        or unicodedata.category(after).startswith("M")
    )
