from __future__ import annotations

import contextlib
import os
import re
import sqlite3
import threading
import zlib
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

from agora.errors import ConfigError, IndexUnavailable
from agora.stores.boot import boot_id
from agora.stores.chroma.lock import ProcessLock
from agora.stores.chroma.mark import File, Mark

DATABASE = "chroma.sqlite3"
_MARK = "agora-index.json"
_LOCK = "agora-index.lock"
_SEGMENT = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}")
_IN_SEGMENT = ("data_level0.bin", "header.bin", "index_metadata.pickle", "length.bin", "link_lists.bin")
_BESIDE = ("-journal", "-wal", "-shm")
_BLOCK = 1 << 20
_TRIES, _PAUSE = (50, 0.02) if os.name == "nt" else (0, 0.0)


class Folder:
    """The folder of one Chroma index: its lock, its mark, and the files that Chroma makes in it.

        chroma.sqlite3          ids, filters, and the newest vectors
        <segment>/*.bin         the graph of vectors, rewritten in place
        agora-index.json        the mark: which changes of which store these files hold
        agora-index.lock        held by the process that uses them; its number is inside

    Chroma reads damaged graphs without a doubt: it then crashes the process, or finds a part of what there was. So
    the files are compared with the mark before Chroma sees them.
    """

    def __init__(self, path: Path, *, owned: bool) -> None:
        """`owned`: whatever Chroma left in the folder is Agora's, since nobody else has business there.

        Raises: ConfigError for a folder with a Chroma database that Agora did not make.
        """
        self.path = path
        self.lock = ProcessLock(path / _LOCK)
        self._owned = owned
        self.require_ours()

    def require_ours(self) -> None:
        """Raises: ConfigError if there is a database that Agora must not touch."""
        if not self._owned and (self.path / DATABASE).exists() and not (self.path / _MARK).exists():
            raise ConfigError(
                f"index.url: the folder {self.path} holds a Chroma database that Agora did not make",
                hint="Name a folder for Agora alone: it deletes and rebuilds what is there. If this one is Agora's,"
                f" delete {DATABASE} in it.",
            )

    def make(self) -> None:
        """Make the folder, for its owner alone."""
        self.path.mkdir(mode=0o700, parents=True, exist_ok=True)

    def read(self) -> Mark | None:
        """The mark; None if there is none, or none that can be used."""
        try:
            return Mark.from_text((self.path / _MARK).read_text("utf-8"))
        except FileNotFoundError:
            return None
        except ValueError:
            # No UTF-8.
            return None

    def write(self, mark: Mark) -> None:
        """Put the mark in the place of the one before."""
        new = self.path / f"{_MARK}.new"
        descriptor = os.open(new, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
        with os.fdopen(descriptor, "w", encoding="utf-8") as file:
            file.write(replace(mark, boot=boot_id()).as_text())
        _put(new, self.path / _MARK)

    def graphs(self, known: dict[str, File]) -> dict[str, File]:
        """The files of the graphs as they are now; what has not changed keeps the checksum it has in `known`."""
        found = {}
        for segment in self.segments():
            for file in segment.iterdir():
                with contextlib.suppress(FileNotFoundError):
                    found[f"{segment.name}/{file.name}"] = _looked_at(file)
        return {name: known[name] if _same(file, known.get(name)) else file for name, file in found.items()}

    def closed(self, known: dict[str, File]) -> dict[str, File]:
        """Every file as it is now, with its checksum."""
        found = self.graphs(known) | {DATABASE: _looked_at(self.path / DATABASE)}
        return {
            name: replace(file, crc=_checksum(self.path / name)) if file.crc is None else file
            for name, file in found.items()
        }

    def damage(self, mark: Mark) -> str | None:
        """What is not as the mark says; None if Chroma may read the files. Ends a compaction that was cut short."""
        # In another run of the machine only what has a checksum is known to be as it was.
        if (found := self.unlike(mark, every_byte=mark.boot != boot_id())) is not None:
            return found
        if mark.keep is not None:
            self.clear([segment for segment in self.segments() if segment.name not in mark.keep])
        # What was closed is as it was, byte by byte. Where a process died, SQLite must look whether it still can read.
        return None if mark.state == "closed" else _unreadable(self.path / DATABASE)

    def unlike(self, mark: Mark, *, every_byte: bool = False) -> str | None:
        """Which file is not as the mark says; None if none is. Changes nothing.

        A file of the size and the time that it had counts as it was, unless `every_byte` of those with a checksum is
        to be read.
        """
        if mark.state == "opening":
            return "the last process that opened it did not get through"
        if mark.state != "closed" and mark.boot != boot_id():
            return "the machine was started anew while it was open"
        if not (self.path / DATABASE).exists():
            return f"{DATABASE} is missing"
        found, left = self.graphs({}), mark.files
        if mark.state == "closed":
            found |= {DATABASE: _looked_at(self.path / DATABASE)}
        if mark.keep is not None:
            found, left = _of(mark.keep, found), _of(mark.keep, left)
        for name in sorted(found.keys() | left.keys()):
            now, then = found.get(name), left.get(name)
            if now is None:
                return f"{name} is missing"
            summed = then is not None and then.crc is not None
            if _same(now, then) and not (every_byte and summed):
                continue
            if then is None or not summed or now.size != then.size or _checksum(self.path / name) != then.crc:
                return f"{name} is not as it was left"
        return None

    def holds_anything(self) -> bool:
        """Whether there is anything that Chroma made."""
        return (self.path / DATABASE).exists() or bool(self.segments())

    def segments(self) -> list[Path]:
        """Folders of graphs."""
        if not self.path.is_dir():
            return []
        return [each for each in self.path.iterdir() if _SEGMENT.fullmatch(each.name) and each.is_dir()]

    def hide(self) -> None:
        """Take away what others may do with what Chroma made."""
        for path, mode in ((self.path / DATABASE, 0o600), *((each, 0o700) for each in self.segments())):
            with contextlib.suppress(FileNotFoundError):
                if path.stat().st_mode & 0o077:
                    path.chmod(mode)

    def clear(self, segments: list[Path] | None = None) -> None:
        """Delete what Chroma made, or only these of its graphs; nothing else in the folder is touched.

        Raises: IndexUnavailable if a file cannot be deleted, as on Windows while another program has it open.
        """
        try:
            for path in self._made(segments):
                path.unlink(missing_ok=True)
            for segment in self.segments() if segments is None else segments:
                with contextlib.suppress(FileNotFoundError):
                    segment.rmdir()
        except OSError as error:
            raise IndexUnavailable(
                f"the Chroma index in {self.path} cannot be deleted: {error}",
                hint="End the programs that use the folder, then ask again.",
            ) from error

    def _made(self, segments: list[Path] | None) -> Iterator[Path]:
        if segments is None:
            yield from (self.path / f"{DATABASE}{end}" for end in ("", *_BESIDE))
        for segment in self.segments() if segments is None else segments:
            yield from (segment / name for name in _IN_SEGMENT)


def _put(new: Path, path: Path) -> None:
    for _ in range(_TRIES):
        with contextlib.suppress(PermissionError):
            new.replace(path)
            return
        # On Windows a file that somebody reads at this moment cannot be replaced.
        threading.Event().wait(_PAUSE)
    new.replace(path)


def _of(segments: list[str], files: dict[str, File]) -> dict[str, File]:
    return {name: file for name, file in files.items() if name == DATABASE or name.partition("/")[0] in segments}


def _looked_at(path: Path) -> File:
    found = path.stat()
    return File(found.st_size, found.st_mtime_ns)


def _same(now: File, then: File | None) -> bool:
    return then is not None and (now.size, now.modified) == (then.size, then.modified)


def _unreadable(path: Path) -> str | None:
    try:
        with contextlib.closing(sqlite3.connect(path)) as connection:
            (found,) = connection.execute("PRAGMA quick_check(1)").fetchone()
    except sqlite3.DatabaseError as error:
        found = str(error)
    return None if found == "ok" else f"{path.name} is damaged: {found}"


def _checksum(path: Path) -> int:
    crc = 0
    with path.open("rb") as file:
        while block := file.read(_BLOCK):
            crc = zlib.crc32(block, crc)
    return crc
