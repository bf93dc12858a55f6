from __future__ import annotations

import threading
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from agora.config.backends import BackendTable
from agora.config.load import Loaded
from agora.errors import ConfigError
from agora.ports.log import Log


class TablesInFile:
    """The tables of the configuration file, read again when it changes; implements `agora.router.registry.Tables`.

    A version that cannot be used changes nothing: the last one that could goes on, and `trouble` says why.
    """

    def __init__(self, loaded: Loaded, log: Log) -> None:
        self._path = loaded.place
        self._log = log
        self._lock = threading.Lock()
        self._read_last = loaded.settings.backends
        self._next: tuple[BackendTable, ...] | None = loaded.settings.backends
        self._mark = _mark(self._path)
        self.trouble: dict[str, Any] | None = None

    def poll(self) -> tuple[BackendTable, ...] | None:
        """As `Tables.poll`."""
        with self._lock:
            self._look()
            found, self._next = self._next, None
            return found

    @property
    def names(self) -> tuple[str, ...]:
        """The names of the backends."""
        with self._lock:
            self._look()
            return tuple(table.name for table in self._read_last)

    def _look(self) -> None:
        mark = _mark(self._path)
        if mark != self._mark:
            # Before it is read: what changes meanwhile is read again.
            self._mark = mark
            self._read()

    def _read(self) -> None:
        from agora.config.backend_reading import reread  # noqa: PLC0415 - a file that never changes has no use for it

        try:
            self._next = self._read_last = reread(self._path)
        except ConfigError as error:
            self.trouble = error.details()
            self._log.warning("the tables of backends are not taken up", code=error.code, message=error.message)
        else:
            self.trouble = None
            self._log.info("the tables of backends were read again", backends=len(self._next))


def _mark(path: Path) -> tuple[int, int, int] | None:
    """What is another after a change of the file; None while there is none."""
    try:
        found = path.stat()
    except OSError:
        return None
    return found.st_mtime_ns, found.st_size, found.st_ino


@dataclass(frozen=True, slots=True)
class Reach:
    """What there is of other servers before the store is open: their tables, and the variables that these name."""

    tables: TablesInFile
    env: Mapping[str, str]
