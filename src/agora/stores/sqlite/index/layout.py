"""Where everything is in a segment file.

    header                    4,096 bytes
        0  8s   "AGORASEG"
        8  u32  format, 1
       12  u32  dimension
       16  u64  n, number of passages
       24  u64  m, number of namespaces that occur
       32  u64  bytes of the whole file
       40  128s identity of store and encoder, UTF-8, filled up with zeros
      168  u32  CRC-32 of bytes 0 to 167
    rows        int64[n]      ascending; the passages of a row are side by side, by number
    numbers     int32[n]      which passage of its row
    places      uint16[n]     which of `namespaces`
    namespaces  int64[m]      ascending
    codes       uint8[n, c]   one bit a dimension, filled up to a multiple of 64 bits
    vectors     float32[n, dimension]

Each section begins at the next multiple of 4,096 bytes, a page. All numbers are little-endian. The CRC-32 of the whole
file is in SQLite, with its name.
"""

from __future__ import annotations

import struct
import zlib
from dataclasses import dataclass

import numpy as np

from agora.errors import StoreCorrupt
from agora.stores.sqlite.index.columns import Columns, code_bytes

PAGE = 4096
MOST = 65_536
"""Passages in a segment, unless a single row has more: what a place in `namespaces` can tell apart."""

_MAGIC = b"AGORASEG"
_FORMAT = 1
_HEADER = struct.Struct("<8sIIQQQ128s")
_SUM = struct.Struct("<I")


@dataclass(frozen=True, slots=True)
class Named:
    """A segment as SQLite names it."""

    file: str
    passages: int
    size: int
    crc: int


@dataclass(frozen=True, slots=True)
class Layout:
    """The sections of a file of `count` passages in `namespaces` namespaces."""

    count: int
    namespaces: int
    dimension: int

    def offsets(self) -> tuple[int, ...]:
        """Where each section begins, in the order of the head of this module, and where the file ends."""
        found = [PAGE]
        sizes = (8 * self.count, 4 * self.count, 2 * self.count, 8 * self.namespaces)
        for size in (*sizes, self.count * code_bytes(self.dimension)):
            found.append(_up(found[-1] + size))
        return *found, found[-1] + 4 * self.count * self.dimension

    def header(self, identity: str) -> bytes:
        """The first page."""
        name = identity.encode()
        assert len(name) <= 128
        size = self.offsets()[-1]
        start = _HEADER.pack(_MAGIC, _FORMAT, self.dimension, self.count, self.namespaces, size, name)
        return (start + _SUM.pack(zlib.crc32(start))).ljust(PAGE, b"\0")

    def columns(self, file: memoryview) -> Columns:
        """The sections of a whole file, not copied."""
        rows, numbers, places, namespaces, codes, vectors, _ = self.offsets()
        n = self.count
        return Columns(
            np.frombuffer(file, "<i8", n, rows),
            np.frombuffer(file, "<i4", n, numbers),
            np.frombuffer(file, "<u2", n, places),
            np.frombuffer(file, "<i8", self.namespaces, namespaces),
            np.frombuffer(file, np.uint8, n * code_bytes(self.dimension), codes).reshape(n, -1),
            np.frombuffer(file, "<f4", n * self.dimension, vectors).reshape(n, self.dimension),
        )


def read_header(page: bytes, length: int, named: Named, identity: str, dimension: int) -> Layout:
    """The layout that the first page of a file of `length` bytes tells of, once it agrees with what SQLite says.

    Raises: StoreCorrupt, which says what is wrong.
    """
    if length != named.size:
        raise StoreCorrupt(f"the index file {named.file} has {length:,} bytes instead of {named.size:,}")
    if len(page) < PAGE or page[:8] != _MAGIC:
        raise StoreCorrupt(f"the file {named.file} is no index file")
    start, (sum_,) = page[: _HEADER.size], _SUM.unpack_from(page, _HEADER.size)
    _, version, width, count, namespaces, size, name = _HEADER.unpack(start)
    if zlib.crc32(start) != sum_:
        raise StoreCorrupt(f"the header of the index file {named.file} is damaged")
    if version != _FORMAT:
        raise StoreCorrupt(f"the index file {named.file} has format {version}, this release knows {_FORMAT}")
    if name.rstrip(b"\0") != identity.encode():
        raise StoreCorrupt(f"the index file {named.file} belongs to another store or model")
    found = Layout(count, namespaces, width)
    if (count, width, size) != (named.passages, dimension, named.size) or found.offsets()[-1] != size:
        raise StoreCorrupt(f"the index file {named.file} is not the one that the store names")
    return found


def _up(size: int) -> int:
    return (size + PAGE - 1) // PAGE * PAGE
