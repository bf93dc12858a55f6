from __future__ import annotations

import mmap
import os
import weakref
import zlib

import numpy as np
from numpy.typing import NDArray

from agora.errors import StoreCorrupt
from agora.model.deadline import Deadline
from agora.ports.vector_index import Rows
from agora.stores.sqlite.index import columns
from agora.stores.sqlite.index.columns import Columns
from agora.stores.sqlite.index.folder import Folder
from agora.stores.sqlite.index.layout import PAGE, Layout, Named, read_header
from agora.stores.sqlite.index.verified import mark

_BLOCK = 1 << 20


class Segment:
    """An immutable file of passages; implements `agora.stores.sqlite.index.columns.Body`.

    It stays open, so that a snapshot that uses it outlives its deletion. `resident`: it stays mapped too; else it is
    mapped for each use, and what was read leaves this process's memory when the use ends.
    """

    def __init__(self, fd: int, named: Named, layout: Layout, *, resident: bool) -> None:
        """Take over the descriptor of a file that was found whole."""
        self.named = named
        self.resident = resident
        self.count = layout.count
        self._fd = fd
        self._layout = layout
        # Closed exactly once, also if the lines below raise; a map has a descriptor of its own.
        closing = weakref.finalize(self, os.close, fd)
        self._held = self._mapped() if resident else None
        if resident:
            closing()
        self.single = _is_single(self.columns().rows)

    def columns(self) -> Columns:
        """As `Body.columns`."""
        return self._held or self._mapped()

    def spans(self, rows: Rows) -> tuple[Rows, Rows]:
        """As `Body.spans`."""
        return columns.spans(self.columns().rows, rows)

    def among(self, rows: Rows) -> Rows:
        """As `Body.among`."""
        return columns.among(self.columns().rows, rows, single=self.single)

    def _mapped(self) -> Columns:
        try:
            # The map ends with the last array over it: nothing is ever unmapped under a search.
            return self._layout.columns(memoryview(mmap.mmap(self._fd, self.named.size, access=mmap.ACCESS_READ)))
        except ValueError as error:
            raise StoreCorrupt(
                f"the index file {self.named.file} was cut short while it was in use",
                hint="Run `agora reindex`: it makes the index anew from the notes, which are whole.",
            ) from error


class Loaded:
    """Passages held in memory, sorted; implements `agora.stores.sqlite.index.columns.Body`."""

    def __init__(self, held: Columns) -> None:
        self.count = len(held.rows)
        self.single = _is_single(held.rows)
        self._held = held

    def columns(self) -> Columns:
        """As `Body.columns`."""
        return self._held

    def spans(self, rows: Rows) -> tuple[Rows, Rows]:
        """As `Body.spans`."""
        return columns.spans(self._held.rows, rows)

    def among(self, rows: Rows) -> Rows:
        """As `Body.among`."""
        return columns.among(self._held.rows, rows, single=self.single)


def open_segment(folder: Folder, named: Named, identity: str, dimension: int, *, resident: bool) -> Segment:
    """The file that SQLite names, once its length and header agree. Its content is for `summed` to check.

    Raises: StoreCorrupt, which says what is wrong; FileNotFoundError, OSError.
    """
    fd = folder.open(named.file)
    try:
        layout = read_header(os.read(fd, PAGE), os.fstat(fd).st_size, named, identity, dimension)
    except BaseException:
        os.close(fd)
        raise
    return Segment(fd, named, layout, resident=resident)


def check_sum(folder: Folder, named: Named, known: set[str], deadline: Deadline) -> str | None:
    """Read a file in full and compare it with its CRC, unless its mark is `known`; a mark that is to be remembered.

    Raises: StoreCorrupt, FileNotFoundError, OSError; DeadlineExceeded, Cancelled between two blocks.
    """
    fd = folder.open(named.file)
    try:
        found = mark(named.file, named.crc, fd)
        if found in known:
            return None
        if sum_of(fd, deadline) != named.crc:
            raise StoreCorrupt(f"the index file {named.file} is damaged")
        return found
    finally:
        os.close(fd)


def sum_of(fd: int, deadline: Deadline) -> int:
    """CRC-32 of a whole open file. Raises: OSError; DeadlineExceeded, Cancelled between two blocks."""
    os.lseek(fd, 0, os.SEEK_SET)
    room, sum_ = memoryview(bytearray(_BLOCK)), 0
    with os.fdopen(fd, "rb", buffering=0, closefd=False) as file:
        while size := file.readinto(room):
            sum_ = zlib.crc32(room[:size], sum_)
            deadline.check()
    return sum_


def _is_single(rows: NDArray[np.int64]) -> bool:
    return bool((rows[1:] != rows[:-1]).all())
