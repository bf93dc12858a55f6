"""Bytes to lines: newline-delimited framing without any input or output of its own."""

from __future__ import annotations

from dataclasses import dataclass, field

BOM = b"\xef\xbb\xbf"

# Twice the largest text that a tool accepts, escaped at six bytes a character, with room for the rest.
MAX_LINE_BYTES = 16 * 1024 * 1024

ENDS = 1_000
"""Bytes at either end of a line by which somebody may know what it was."""


@dataclass(frozen=True, slots=True)
class Oversized:
    """A line longer than `limit` bytes: it was read to its end, of which `head` and `tail` were kept."""

    limit: int
    head: bytes = field(default=b"", repr=False, compare=False)
    """Its first `ENDS` bytes."""
    tail: bytes = field(default=b"", repr=False, compare=False)
    """Its last `ENDS` bytes."""


Line = bytes | Oversized


class LineSplitter:
    r"""Cuts a stream of chunks into lines without their ends.

    Lines end with `\n` or `\r\n`. Blank lines are left out, and so is a UTF-8 byte order mark at the very
    start. Of a line longer than `max_line_bytes` only its two ends are kept: it comes out as one `Oversized`.
    """

    def __init__(self, max_line_bytes: int = MAX_LINE_BYTES) -> None:
        self._limit = max_line_bytes
        self._parts: list[bytes] = []
        self._size = 0
        self._too_long = False
        self._head = self._tail = b""
        self._at_start = True

    def feed(self, chunk: bytes) -> list[Line]:
        """The lines that `chunk` completes, in order."""
        *ends, rest = chunk.split(b"\n")
        found: list[Line] = []
        for end in ends:
            self._keep(end)
            self._finish_line(found)
        self._keep(rest)
        return found

    def finish(self) -> list[Line]:
        """The last line if the stream ended without a newline, else nothing."""
        found: list[Line] = []
        self._finish_line(found)
        return found

    def _keep(self, part: bytes) -> None:
        self._size += len(part)
        # Two more than the limit: the carriage return is not part of the line, nor is the mark.
        if self._too_long or self._size > self._limit + 1 + len(BOM):
            if not self._too_long:
                self._too_long = True
                for kept in self._parts:
                    self._keep_ends(kept)
                self._parts.clear()
            self._keep_ends(part)
        elif part:
            self._parts.append(part)

    def _keep_ends(self, part: bytes) -> None:
        if len(self._head) < ENDS:
            self._head += part[: ENDS - len(self._head)]
        self._tail = (self._tail + part[-ENDS:])[-ENDS:]

    def _finish_line(self, found: list[Line]) -> None:
        line = b"".join(self._parts)
        too_long = self._too_long
        head, tail = self._head, self._tail
        self._parts.clear()
        self._size = 0
        self._too_long = False
        self._head = self._tail = b""
        if self._at_start:
            self._at_start = False
            line = line.removeprefix(BOM)
        line = line.removesuffix(b"\r")
        if too_long:
            found.append(Oversized(self._limit, head, tail))
        elif len(line) > self._limit:
            found.append(Oversized(self._limit, line[:ENDS], line[-ENDS:]))
        elif line.strip():
            found.append(line)
