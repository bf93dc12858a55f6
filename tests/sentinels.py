"""Words and vectors that occur nowhere else, and a look for them in every byte of a data folder."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterable, Mapping
from pathlib import Path

_LOOK = """
import json, sys
from pathlib import Path
folder, given = json.load(sys.stdin)
wanted = {name: bytes.fromhex(needle) for name, needle in given.items()}
found, FEW = {}, 60

def few(data):
    return [name for name, needle in wanted.items() if needle in data]

def many(data):
    # One pass for all: where three bytes stand that a needle has in its middle, the needle is looked for.
    import numpy
    middles = {}
    for name, needle in wanted.items():
        assert len(needle) >= 3
        middles.setdefault(needle[len(needle) // 2 - 1 :][:3], []).append(name)
    marked = numpy.zeros(1 << 24, bool)
    for middle in middles:
        marked[int.from_bytes(middle, "little")] = True
    there = set()
    for start in range(0, len(data), 1 << 22):
        piece = numpy.frombuffer(data[start : start + (1 << 22) + 2], numpy.uint8).astype(numpy.uint32)
        threes = piece[:-2] | piece[1:-1] << 8 | piece[2:] << 16
        for place in numpy.flatnonzero(marked[threes]).tolist():
            for name in middles[data[start + place : start + place + 3]]:
                begins = start + place - len(wanted[name]) // 2 + 1
                if name not in there and begins >= 0 and data.startswith(wanted[name], begins):
                    there.add(name)
    return [name for name in wanted if name in there]

for path in sorted(Path(folder).rglob("*")):
    try:
        data = path.read_bytes() if path.is_file() else b""
    except (PermissionError, FileNotFoundError):
        # Windows locks parts of the file that holds locks alone; a file may go away meanwhile.
        continue
    for name in (many if len(wanted) > FEW else few)(data):
        found.setdefault(name, []).append(path.relative_to(folder).as_posix())
json.dump(found, sys.stdout)
"""


def looked_for(folder: Path, needles: Mapping[str, bytes]) -> dict[str, list[str]]:
    """The files below `folder` that hold each of `needles`; those that no file holds are left out.

    Read by another process: closing a file of SQLite's in this one would let go of its locks.
    """
    wanted = {name: needle.hex() for name, needle in needles.items()}
    done = subprocess.run(
        [sys.executable, "-c", _LOOK],
        input=json.dumps([str(folder), wanted]),
        capture_output=True,
        text=True,
        check=True,
        timeout=60,
    )
    found: dict[str, list[str]] = json.loads(done.stdout)
    return found


def files_below(folder: Path) -> set[str]:
    """Names of all files below `folder`, as paths from there."""
    return {path.relative_to(folder).as_posix() for path in folder.rglob("*") if path.is_file()}


def raw(words: Iterable[str]) -> dict[str, bytes]:
    """Needles that are words, by themselves."""
    return {word: word.encode() for word in words}
