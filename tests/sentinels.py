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
folder, wanted = json.load(sys.stdin)
found = {}
for path in sorted(Path(folder).rglob("*")):
    try:
        data = path.read_bytes() if path.is_file() else b""
    except (PermissionError, FileNotFoundError):
        # Windows locks parts of the file that holds locks alone; a file may go away meanwhile.
        continue
    for name, needle in wanted.items():
        if bytes.fromhex(needle) in data:
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
