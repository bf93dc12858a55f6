"""Samples looked for in the raw bytes of files."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterable, Iterator
from pathlib import Path

from agora.model.purge import Sample
from agora.ports.places import Place

_BLOCK = 16 * 1024 * 1024
_POSIX = os.name == "posix"

_HELD: dict[tuple[int, int], int] = {}
"""Descriptors that are never closed, by file: closing one would let go of every lock that SQLite holds on the file."""


def found_in(folder: Path, place: Place, samples: Iterable[Sample]) -> dict[Sample, str]:
    """Those of `samples` that a file of `place` in `folder` holds, each with the name of the first such file.

    Reads every byte. A file that goes away meanwhile holds nothing.

    Raises: OSError for one that cannot be read.
    """
    found: dict[Sample, str] = {}
    for path in files_of(folder, place):
        left = [sample for sample in samples if sample not in found]
        if left:
            with contextlib.suppress(FileNotFoundError):
                found |= dict.fromkeys(
                    _found(path, left, held=place.locked and _POSIX), path.relative_to(folder).as_posix()
                )
    return found


def files_of(folder: Path, place: Place) -> list[Path]:
    """The files of a place that there are, sorted."""
    return sorted({path for pattern in place.files for path in folder.glob(pattern) if path.is_file()})


def size_of(folder: Path, places: Iterable[Place]) -> int:
    """Bytes of all files of these places."""
    size = 0
    for path in {path for place in places for path in files_of(folder, place)}:
        with contextlib.suppress(FileNotFoundError):
            size += path.stat().st_size
    return size


def _found(path: Path, samples: Iterable[Sample], *, held: bool) -> set[Sample]:
    missing, found = set(samples), set[Sample]()
    # A sample may lie across the border of two blocks.
    overlap = max((len(sample.data) for sample in missing), default=1) - 1
    tail = b""
    for block in _blocks(path, held=held):
        piece = tail + block
        found |= {sample for sample in missing if sample.data in piece}
        missing -= found
        if not missing:
            break
        tail = piece[-overlap:] if overlap else b""
    return found


def _blocks(path: Path, *, held: bool) -> Iterator[bytes]:
    if not held:
        with path.open("rb") as file:
            while block := file.read(_BLOCK):
                yield block
        return
    descriptor, place = _held(path), 0
    while block := _read(descriptor, place):
        yield block
        place += len(block)


def _held(path: Path) -> int:
    state = path.stat()
    identity = state.st_dev, state.st_ino
    if identity not in _HELD:
        _HELD[identity] = os.open(path, os.O_RDONLY | getattr(os, "O_BINARY", 0))
    return _HELD[identity]


def _read(descriptor: int, place: int) -> bytes:
    # The place of a descriptor is shared by all who read it.
    os.lseek(descriptor, place, os.SEEK_SET)
    return os.read(descriptor, _BLOCK)
