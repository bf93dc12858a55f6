"""Server-sent events, read from bytes as they come: https://html.spec.whatwg.org/multipage/server-sent-events.html."""

from __future__ import annotations

import re
from dataclasses import dataclass

LARGEST = 64 * 1024 * 1024
"""Bytes of one event at most."""

_LINE_END = re.compile(rb"\r\n|\n|\r")
_BOM = b"\xef\xbb\xbf"
_LONGEST_RETRY = 10**9
"""Milliseconds; who asks for more, or writes more than nine digits, gets this."""


class EventTooLarge(Exception):
    """One event is larger than the reader takes."""


@dataclass(frozen=True, slots=True)
class Event:
    """One event: its type, `message` where none was named, and its data."""

    kind: str
    data: str


class EventReader:
    """Events out of pieces of a stream, wherever it was cut.

    Lines are split before they are decoded: no byte of a line end is ever part of another character in UTF-8, and what
    is no UTF-8 is replaced without swallowing one. An event without the empty line after it is never given out.
    """

    def __init__(self, last_id: str = "", largest: int = LARGEST) -> None:
        self.last_id = last_id
        """The id of the last event that was complete; what a stream is resumed with. Empty if there was none."""
        self.retry: int | None = None
        """Milliseconds that the server asks to wait before a new connection."""
        self._largest = largest
        self._line = bytearray()
        self._first = True
        self._after_return = False
        self._id = last_id
        self._kind = ""
        self._data: list[bytes] = []
        self._size = 0

    def feed(self, piece: bytes) -> list[Event]:
        """The events that are complete with this piece.

        Raises: EventTooLarge.
        """
        events: list[Event] = []
        start = 0
        if self._after_return and piece:
            # The line ended with the return that came last; a line feed now is the rest of the same end.
            start = int(piece.startswith(b"\n"))
            self._after_return = False
        for end in _LINE_END.finditer(piece, start):
            self._line += piece[start : end.start()]
            start = end.end()
            event = self._ended()
            if event is not None:
                events.append(event)
        self._after_return = self._after_return or (start == len(piece) and piece.endswith(b"\r"))
        self._line += piece[start:]
        self._check()
        return events

    def _check(self) -> None:
        if self._size + len(self._line) > self._largest:
            raise EventTooLarge

    def _ended(self) -> Event | None:
        """A line is complete; the event, if that ends one."""
        self._check()
        line = bytes(self._line)
        self._line.clear()
        if self._first:
            line = line.removeprefix(_BOM)
            self._first = False
        if not line:
            return self._dispatched()
        name, _, value = line.partition(b":")
        value = value.removeprefix(b" ")
        match name:
            case b"data":
                self._data.append(value)
                self._size += len(value) + 1
            case b"event":
                self._kind = value.decode("utf-8", "replace")
            case b"id" if b"\0" not in value:
                self._id = value.decode("utf-8", "replace")
            case b"retry" if value.isdigit():
                self.retry = int(value) if len(value) <= 9 else _LONGEST_RETRY
        return None

    def _dispatched(self) -> Event | None:
        self.last_id = self._id
        kind, data = self._kind or "message", self._data
        self._kind, self._data, self._size = "", [], 0
        return Event(kind, b"\n".join(data).decode("utf-8", "replace")) if data else None
