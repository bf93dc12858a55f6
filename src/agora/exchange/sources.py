from __future__ import annotations

import contextlib
import gzip
import io
import sys
import zipfile
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO, cast

from agora.errors import InvalidInput

HEAD = 1 << 20
"""Bytes at the start of a file by which its format is recognised."""

LINE = 1 << 27
"""The longest line that is read: more than any note may have, and far less than a machine's memory."""

_CHUNK = 1 << 16
_DAMAGE = (EOFError, zlib.error, gzip.BadGzipFile, zipfile.BadZipFile)


class Source:
    """One file on its way in: its name, its first bytes, and then all of it, once.

    `damage` says after reading why the end was not reached, if a compressed file is broken.
    """

    def __init__(self, name: str, raw: io.BufferedIOBase, counted: _Counted, size: int | None) -> None:
        """`name` is shown and kept as the source of what was in it; `size` is in bytes as on the disk."""
        self.name = name
        self.size = size
        self.damage: str | None = None
        self._raw = raw
        self._counted = counted
        parts: list[bytes] = []
        while sum(map(len, parts)) < HEAD and (part := self._some(_CHUNK)):
            parts.append(part)
        self.head = b"".join(parts)
        self._left: bytes = self.head

    @property
    def position(self) -> int:
        """How many bytes of the file on the disk have been read."""
        return self._counted.done

    def chunks(self) -> Iterator[bytes]:
        """The bytes from the start, in pieces."""
        if self._left:
            left, self._left = self._left, b""
            yield left
        while part := self._some(_CHUNK):
            yield part

    def lines(self) -> Iterator[tuple[int, bytes]]:
        """Each line with its line feed and its number from 1; one that is longer than `LINE` comes as its start."""
        number, parts, length = 1, list[bytes](), 0
        for chunk in self.chunks():
            start = 0
            while (end := chunk.find(b"\n", start)) >= 0:
                parts.append(chunk[start : end + 1])
                yield number, b"".join(parts)
                number, parts, length, start = number + 1, [], 0, end + 1
            if length <= LINE:
                parts.append(chunk[start:])
            length += len(chunk) - start
        if any(parts):
            yield number, b"".join(parts)

    def _some(self, most: int) -> bytes:
        if self.damage is not None:
            return b""
        try:
            # What can be read of a damaged file comes before the error does.
            return self._raw.read1(most)
        except _DAMAGE as error:
            self.damage = f"the compressed file is damaged: {str(error) or 'it ends too early'}"
            return b""


@contextlib.contextmanager
def opened(path: str) -> Iterator[list[Source]]:
    """What a file holds: itself, or the conversations in a zip archive; `-` is standard input.

    Raises: InvalidInput if it cannot be read.
    """
    with contextlib.ExitStack() as stack:
        if path == "-":
            counted = _Counted(sys.stdin.buffer)
            name, size = "standard input", None
        else:
            try:
                counted = _Counted(stack.enter_context(Path(path).open("rb")))
                size = Path(path).stat().st_size
            except OSError as error:
                hint = "Name the files in it." if Path(path).is_dir() else None
                raise InvalidInput("file", f"cannot be read: {error.strerror}", path, hint=hint) from error
            name = _shown(Path(path))
        buffered = io.BufferedReader(counted, _CHUNK)
        start = buffered.peek(4)[:4]
        if start == b"PK\x03\x04":
            yield _archive(path, name, stack)
        elif start[:2] == b"\x1f\x8b":
            yield [Source(name, gzip.GzipFile(fileobj=buffered), counted, size)]
        else:
            yield [Source(name, buffered, counted, size)]


def _archive(path: str, name: str, stack: contextlib.ExitStack) -> list[Source]:
    if path == "-":
        raise InvalidInput("file", "a zip archive cannot come from standard input", path, hint="Name the file.")
    try:
        archive = stack.enter_context(zipfile.ZipFile(path))
        found = [
            (info.filename, info.file_size, stack.enter_context(archive.open(info)))
            for info in sorted(archive.infolist(), key=lambda info: info.filename)
            if Path(info.filename).match("conversations*.json")
        ]
    except (zipfile.BadZipFile, RuntimeError, NotImplementedError) as error:
        raise InvalidInput("file", f"is a zip archive that cannot be read: {error}", path) from error
    if not found:
        raise InvalidInput("file", "is a zip archive without a conversations.json", path)
    sources = []
    for member, size, opened_member in found:
        counted = _Counted(cast("BinaryIO", opened_member))
        sources.append(Source(f"{name}/{member}", io.BufferedReader(counted, _CHUNK), counted, size))
    return sources


def _shown(path: Path) -> str:
    """The path below the current folder if it is there, else the name alone: it is kept, and must not tell too much."""
    with contextlib.suppress(ValueError):
        return path.resolve().relative_to(Path.cwd()).as_posix()
    return path.name


class _Counted(io.RawIOBase):
    """A stream that counts what was read of it."""

    def __init__(self, inner: BinaryIO) -> None:
        self._inner = inner
        self.done = 0

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: memoryview) -> int:  # type: ignore[override]  # the base class takes any buffer
        part = self._inner.read1(len(buffer)) if hasattr(self._inner, "read1") else self._inner.read(len(buffer))
        buffer[: len(part)] = part
        self.done += len(part)
        return len(part)
