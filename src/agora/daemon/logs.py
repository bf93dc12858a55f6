"""The shared server's log as it grows, through the change of its file at the start of a server."""

from __future__ import annotations

import os
from pathlib import Path

from agora.shim.places import LOG, RUN

OLD = ".1"
"""What the name of the file before this one ends with; `agora.shim.starting` moves it there."""


class Followed:
    """The lines of a data folder's log, each once: from the last ones on, as they are written.

    A file is known by its number and not by its name, so that the end of one that has been moved is read too: a server
    may still be writing to it. No file is held open: on Windows it could not be moved then.
    """

    def __init__(self, home: Path, lines: int) -> None:
        """`lines` is how many of those that are there come first."""
        self._file = home / RUN / LOG
        self._first = lines
        self._read: dict[tuple[int, int], int] = {}
        self._rest: dict[tuple[int, int], bytes] = {}

    def fresh(self) -> list[str]:
        """The whole lines that have come since this was last called."""
        began = not self._read
        found = []
        for file in (self._file.with_name(LOG + OLD), self._file):
            try:
                with file.open("rb") as stream:
                    stat = os.fstat(stream.fileno())
                    key = (stat.st_dev, stat.st_ino)
                    if file != self._file and key not in self._read:
                        # It was full before anybody looked.
                        continue
                    at = self._read.get(key, 0)
                    if stat.st_size < at:
                        # Somebody emptied it.
                        at, self._rest[key] = 0, b""
                    stream.seek(at)
                    fresh = stream.read()
            except OSError:
                continue
            self._read[key] = at + len(fresh)
            *whole, self._rest[key] = (self._rest.get(key, b"") + fresh).split(b"\n")
            found += [line.decode("utf-8", "replace").removesuffix("\r") for line in whole]
        if began:
            return found[-self._first :]
        return found
