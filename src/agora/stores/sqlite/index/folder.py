from __future__ import annotations

import contextlib
import os
import uuid
from pathlib import Path
from typing import BinaryIO

SEGMENT = ".seg"
STATE = ".state"
_READ = os.O_RDONLY | getattr(os, "O_BINARY", 0)
_NEW = os.O_RDWR | os.O_CREAT | os.O_EXCL | getattr(os, "O_BINARY", 0)


class Folder:
    """The folder of index files, readable by its owner alone.

    A name is never used twice and a file, once named in SQLite, never changes: other processes have it mapped.
    """

    def __init__(self, path: Path) -> None:
        self.path = path

    def make(self) -> None:
        """See to it that the folder is there."""
        self.path.mkdir(parents=True, mode=0o700, exist_ok=True)

    def open(self, name: str) -> int:
        """A descriptor to read a file by. Raises: OSError."""
        return os.open(self.path / name, _READ)

    def create(self, ending: str) -> tuple[str, BinaryIO]:
        """A new file to write and read back, and its name. Raises: OSError."""
        name = uuid.uuid4().hex + ending
        return name, os.fdopen(os.open(self.path / name, _NEW, 0o600), "w+b")

    def settle(self) -> None:
        """Make sure that the names of new files outlive a power cut, where the platform can. Raises: OSError."""
        if os.name == "nt":
            return
        folder = os.open(self.path, os.O_RDONLY)
        try:
            os.fsync(folder)
        finally:
            os.close(folder)

    def names(self) -> set[str]:
        """Every file that is, or was to be, part of an index."""
        with contextlib.suppress(FileNotFoundError):
            return {name for name in os.listdir(self.path) if name.endswith((SEGMENT, STATE))}  # noqa: PTH208 - names
        return set()

    def remove(self, names: set[str]) -> set[str]:
        """Delete files; those that could not be deleted now, as Windows refuses while another process maps them."""
        left = set()
        for name in sorted(names):
            try:
                (self.path / name).unlink(missing_ok=True)
            except OSError:
                left.add(name)
        return left


def places(folder: Path) -> list[Path]:
    """Every file in an index's folder, whatever it is: what a purge has to look into."""
    return sorted(path for path in folder.rglob("*") if path.is_file()) if folder.is_dir() else []
