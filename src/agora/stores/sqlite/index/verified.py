"""Which files were read in full and found whole since the machine was started.

After a power cut a file may have holes, whatever was synced; while the machine is up, what the page cache gives is
what was written. So a file is summed up once for each start of the machine, not at each start of a process.
"""

from __future__ import annotations

import contextlib
import os
from pathlib import Path

_PREFIX = "verified-"
_SPARE = 100
"""Marks of files that are gone, beyond which the list is written anew."""


class Verified:
    """Remembers in the folder, for all processes, which files need not be summed up again.

    A file is known by its name, size, time of change and inode: touched by anybody, it is verified anew. Nothing is
    remembered where the platform does not tell one start of the machine from another, or the folder cannot be
    written.
    """

    def __init__(self, folder: Path, boot: str | None) -> None:
        self._folder = folder
        self._file = None if boot is None else folder / f"{_PREFIX}{boot}"

    def known(self) -> set[str]:
        """A mark for each file that is known to be whole."""
        if self._file is not None:
            with contextlib.suppress(OSError):
                return set(self._file.read_text("utf-8", "replace").split("\n"))
        return set()

    def remember(self, marks: list[str]) -> None:
        """Add marks; a line cut short by a dying process only means that its file is read once more."""
        if self._file is None or not marks:
            return
        with contextlib.suppress(OSError):
            fd = os.open(self._file, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
            try:
                os.write(fd, ("\n" + "\n".join(marks) + "\n").encode())
            finally:
                os.close(fd)

    def tidy(self, files: set[str]) -> None:
        """Forget all files but these, and what was remembered before the last start of the machine.

        A mark that another process adds meanwhile may be lost: its file is read once more.
        """
        with contextlib.suppress(OSError):
            for path in self._folder.glob(f"{_PREFIX}*"):
                if path != self._file:
                    path.unlink(missing_ok=True)
            known = self.known()
            kept = sorted(each for each in known if each.partition(" ")[0] in files)
            if self._file is not None and len(known) > 2 * len(kept) + _SPARE:
                fresh = self._file.with_name(f"{_PREFIX}new")
                fresh.unlink(missing_ok=True)
                fd = os.open(fresh, os.O_WRONLY | os.O_EXCL | os.O_CREAT, 0o600)
                try:
                    os.write(fd, ("\n".join(kept) + "\n").encode())
                finally:
                    os.close(fd)
                fresh.replace(self._file)


def mark(name: str, crc: int, fd: int) -> str:
    """What a file is known by."""
    found = os.fstat(fd)
    return f"{name} {crc} {found.st_size} {found.st_mtime_ns} {found.st_ino}"
