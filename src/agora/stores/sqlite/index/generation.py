"""One complete state of an index: which files it is made of, and a file with what changes about their passages.

The state file:

     0  8s   "AGORASTA"
     8  u32  format, 1
    12  u32  number of segments
    16  128s identity of store and encoder, UTF-8, filled up with zeros
   144  for each segment, in the order in which SQLite names them:
        64s  name of the file
        u64  n, number of passages
        u64  m, number of passages whose rows expire
        bits one for each passage, set while it is alive, filled up to a whole byte
        u32[m] slots, int64[m] the instants at which they expire, in microseconds

Little-endian. The CRC-32 of the whole file is in SQLite, with its name.
"""

from __future__ import annotations

import os
import sqlite3
import struct
import zlib
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from agora.errors import StoreCorrupt
from agora.model.instants import NEVER
from agora.stores.sqlite.index.folder import Folder
from agora.stores.sqlite.index.layout import Named
from agora.stores.sqlite.index.marks import Marks

_MAGIC = b"AGORASTA"
_FORMAT = 1
_HEADER = struct.Struct("<8sII128s")
_PART = struct.Struct("<64sQQ")


@dataclass(frozen=True, slots=True)
class Generation:
    """A generation as SQLite names it: the journal's sequence and hash that it holds, its files."""

    number: int
    sequence: int
    hash: bytes | None
    state: str
    state_crc: int
    segments: tuple[Named, ...]


def find(connection: sqlite3.Connection, encoder_id: int) -> Generation | None:
    """The newest generation of an encoder in the snapshot; None if it never had one."""
    found = connection.execute(
        "SELECT number, sequence, hash, state, state_crc FROM generations WHERE encoder_id = ?", (encoder_id,)
    ).fetchone()
    if found is None:
        return None
    number, sequence, hash_, state, state_crc = found
    segments = connection.execute(
        "SELECT file, passages, bytes, crc FROM segments WHERE encoder_id = ? ORDER BY id", (encoder_id,)
    ).fetchall()
    return Generation(number, sequence, hash_, state, state_crc, tuple(Named(*each) for each in segments))


def named(connection: sqlite3.Connection) -> set[str]:
    """Every file that any generation of any encoder is made of."""
    return {name for (name,) in connection.execute("SELECT file FROM segments UNION ALL SELECT state FROM generations")}


def register(connection: sqlite3.Connection, encoder_id: int, new: Generation, replaced: str | None, at: int) -> bool:
    """Make `new` the generation of the encoder, inside the caller's transaction.

    False, and nothing is written, unless `replaced` names the state of the present one (None: there is none) and the
    journal is still the one that `new` was made from.
    """
    present = find(connection, encoder_id)
    if (None if present is None else present.state) != replaced:
        return False
    past = connection.execute("SELECT hash FROM journal WHERE sequence = ?", (new.sequence,)).fetchone()
    if (None if past is None else past[0]) != new.hash:
        return False
    # What a store has moved on from stays named for those who read an older snapshot, but not longer.
    for table in ("segments", "generations"):
        connection.execute(f"DELETE FROM {table} WHERE encoder_id IN (SELECT id FROM encoders WHERE state = 'retired')")
    kept = {each.file for each in new.segments}
    known = set() if present is None else {each.file for each in present.segments}
    connection.executemany("DELETE FROM segments WHERE file = ?", [(file,) for file in sorted(known - kept)])
    connection.executemany(
        "INSERT INTO segments (encoder_id, file, passages, bytes, crc) VALUES (?, ?, ?, ?, ?)",
        [(encoder_id, e.file, e.passages, e.size, e.crc) for e in new.segments if e.file not in known],
    )
    connection.execute(
        "INSERT OR REPLACE INTO generations (encoder_id, number, sequence, hash, state, state_crc, at)"
        " VALUES (?, ?, ?, ?, ?, ?, ?)",
        (encoder_id, new.number, new.sequence, new.hash, new.state, new.state_crc, at),
    )
    return True


def pack_state(identity: str, parts: Sequence[tuple[str, Marks]]) -> bytes:
    """The content of a state file for the named segments with their marks."""
    pieces = [_HEADER.pack(_MAGIC, _FORMAT, len(parts), identity.encode())]
    for name, marks in parts:
        alive = np.ones(marks.count, dtype=np.bool_) if marks.alive is None else marks.alive
        ends = marks.ends()
        slots = np.flatnonzero(ends != NEVER)
        pieces += [
            _PART.pack(name.encode(), marks.count, len(slots)),
            np.packbits(alive).tobytes(),
            slots.astype("<u4").tobytes(),
            ends[slots].astype("<i8").tobytes(),
        ]
    return b"".join(pieces)


def read_state(folder: Folder, generation: Generation, identity: str) -> list[Marks]:
    """The marks of each segment of a generation, from its state file.

    Raises: StoreCorrupt, which says what is wrong; FileNotFoundError, OSError.
    """
    content = (folder.path / generation.state).read_bytes()
    if zlib.crc32(content) != generation.state_crc:
        raise StoreCorrupt(f"the index file {generation.state} is damaged")
    try:
        return _unpacked(content, generation, identity)
    except (struct.error, ValueError, IndexError) as error:
        raise StoreCorrupt(f"the file {generation.state} is no index file: {error}") from error


def _unpacked(content: bytes, generation: Generation, identity: str) -> list[Marks]:
    magic, version, count, owner = _HEADER.unpack_from(content)
    expected = (_MAGIC, _FORMAT, len(generation.segments), identity.encode())
    if (magic, version, count, owner.rstrip(b"\0")) != expected:
        raise StoreCorrupt(f"the index file {generation.state} belongs to another store or model")
    at, found = _HEADER.size, []
    for segment in generation.segments:
        name, n, m = _PART.unpack_from(content, at)
        if (name.rstrip(b"\0"), n) != (segment.file.encode(), segment.passages):
            raise StoreCorrupt(f"the index file {generation.state} is not of the segments that the store names")
        at += _PART.size
        bits = np.frombuffer(content, np.uint8, (n + 7) // 8, at)
        at += len(bits)
        slots = np.frombuffer(content, "<u4", m, at)
        at += 4 * m
        ends = np.full(n, NEVER)
        ends[slots] = np.frombuffer(content, "<i8", m, at)
        at += 8 * m
        found.append(Marks.of(n, np.unpackbits(bits, count=n).astype(np.bool_), ends))
    return found


def write_state(folder: Folder, identity: str, parts: Sequence[tuple[str, Marks]]) -> tuple[str, int]:
    """Write a state file; its name and CRC. Raises: OSError, and then nothing is left of it."""
    content = pack_state(identity, parts)
    name, file = folder.create(".state")
    try:
        with file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
    except BaseException:
        folder.remove({name})
        raise
    return name, zlib.crc32(content)
