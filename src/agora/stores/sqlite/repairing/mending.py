from __future__ import annotations

import contextlib
import sqlite3
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import closing
from pathlib import Path

from agora.errors import StoreCorrupt, StoreUnavailable
from agora.model.profile import Fingerprint
from agora.ports.records import Embedded
from agora.stores.sqlite import fulltext
from agora.stores.sqlite.failures import translated
from agora.stores.sqlite.migrations import migrate
from agora.stores.sqlite.repairing import derived, structure, vectors
from agora.stores.sqlite.repairing.record import record
from agora.stores.sqlite.repairing.transplant import sweep, transplant
from agora.stores.sqlite.repairing.turn import in_turn
from agora.stores.sqlite.repairing.vectors import Lacking
from agora.stores.sqlite.rules import KINDS, RESTORE

_FULLTEXT = {
    *("missing_fulltext", "stray_fulltext", "fulltext_outdated", "fulltext_unlike_text", "namespace_statistics"),
    *("term_statistics", "fulltext_damaged", "schema_incomplete", "unreadable"),
}
_FILE = {"file_damaged", "unreadable"}
WAITS = 30.0
"""Seconds that a repair waits for another process's transaction."""


def repairable(codes: Collection[str]) -> set[str]:
    """Those of the kinds of damage about which `mend` or `fill` may do something."""
    return {code for code in codes if code in KINDS and KINDS[code].repair is not None}


def clear(path: Path) -> None:
    """Delete what a repair that was killed has left beside the store at `path`.

    Raises: StoreUnavailable.
    """
    sweep(path, WAITS)


def mend(path: Path, codes: Collection[str], choose: Callable[[], Fingerprint | None], now: int) -> list[str]:
    """Make what is derived anew, all but what needs the model; what was done, in words.

    `codes` is the damage that was found; `choose` gives the fingerprint of an encoder for a store that has none. In one
    transaction: the store is as it was or mended. Other processes may use it meanwhile; their writes wait.

    Raises: StoreCorrupt if notes cannot be read, StoreUnavailable, StoreVersion. Nothing is changed then.
    """
    job = _Job(set(codes), choose, now)
    with translated(path):
        sweep(path, WAITS)
        if not job.codes & _FILE:
            try:
                with writing(path) as connection:
                    return job.run(connection)
            except (sqlite3.DatabaseError, MemoryError) as error:
                if not _is_damage(error):
                    raise
        # Something does not let itself be changed, or even read, where it is.
        with _hopeless(path):
            transplant(path, WAITS, job.transplanted)
        return [f"made the file anew from what it holds: {path}", *job.done]


class _Job:
    def __init__(self, codes: set[str], choose: Callable[[], Fingerprint | None], now: int) -> None:
        self.codes = codes
        self.done: list[str] = []
        self._choose = choose
        self._now = now

    def transplanted(self, connection: sqlite3.Connection) -> None:
        """As `run`, on a fresh file that holds what could be read and has yet to get its full text."""
        self.codes |= {"fulltext_damaged", "file_damaged"}
        self.run(connection)

    def run(self, connection: sqlite3.Connection) -> list[str]:
        """Everything in the order in which one thing needs another."""
        self.done = []
        migrate(connection)
        self._tell("made {} anew", structure.missing_objects(connection))
        if "sql_index_damaged" in self.codes and structure.reindex(connection):
            self.done.append("built the SQL indexes anew")
        self._tell("set the next number of {}", structure.next_numbers(connection))
        self._count("deleted {} derived rows that belonged to nothing", derived.orphans(connection))
        if (encoder := derived.profile(connection, self._choose)) is not None:
            self.done.append(f"activated the encoder {encoder}")
        self._count("gave the store a new identity", derived.identity(connection, self._now))
        self._count("made {} hashes for likeness anew", derived.hashes(connection))
        self._count("made the index of metadata of {} notes anew", derived.metadata(connection))
        unused, drawn = derived.facts(connection)
        self._count("deleted {} subjects with keys of which nothing was stated", unused)
        self._count("drew the ends of {} facts anew", drawn)
        self._count("took the last change of {} namespaces from the journal", derived.sequences(connection))
        wrong = derived.vectors(connection)
        surplus, made = derived.passages(connection)
        self._count("deleted {} vectors that were wrong", wrong)
        self._count("deleted {} passages that were wrong", surplus)
        self._count("gave {} texts a passage", made)
        if self.codes & _FULLTEXT or surplus or made or encoder or drawn:
            self.done.append(f"built the full text anew: {fulltext.rebuild(connection)} passages")
        if self.done:
            touched = bool(wrong or surplus or made or encoder or drawn or "file_damaged" in self.codes)
            record(connection, {"done": self.done}, self._now, vectors=touched)
        return self.done

    def _tell(self, text: str, names: Sequence[str]) -> None:
        if names:
            self.done.append(text.format(", ".join(names)))

    def _count(self, text: str, number: int) -> None:
        if number:
            self.done.append(text.format(number))


def lacking(path: Path) -> int:
    """How many notes lack a vector."""
    with translated(path), _reading(path) as connection:
        return vectors.count_lacking(connection)


def next_lacking(path: Path, after: int, most: int) -> list[Lacking]:
    """The next notes that lack a vector, at most `most` of those beyond the row `after`."""
    with translated(path), _reading(path) as connection:
        return vectors.lacking(connection, after, most)


def fill(path: Path, batch: Sequence[tuple[Lacking, Embedded]], now: int) -> int:
    """Put in the passages and vectors that notes lack, in one transaction; how many vectors."""
    with translated(path), writing(path) as connection:
        encoder_id = vectors.encoder(connection, batch[0][1].fingerprint)
        if encoder_id is None:
            raise StoreUnavailable(f"the store {path} was moved to another encoder meanwhile", hint="Run it again.")
        made = sum(vectors.fill(connection, note, embedded, encoder_id) for note, embedded in batch)
        if made:
            record(connection, {"done": [f"made {made} vectors"]}, now, vectors=True)
        return made


@contextlib.contextmanager
def writing(path: Path) -> Iterator[sqlite3.Connection]:
    """A write transaction on a connection of its own, in turn with other writers; committed unless the block raises.

    Foreign keys are not enforced: what they are broken by is being repaired.
    """
    with in_turn(path, WAITS), closing(_connected(path)) as connection:
        connection.execute("BEGIN IMMEDIATE")
        yield connection
        connection.execute("COMMIT")


@contextlib.contextmanager
def _reading(path: Path) -> Iterator[sqlite3.Connection]:
    with closing(_connected(path)) as connection:
        connection.execute("BEGIN")
        yield connection


def _connected(path: Path) -> sqlite3.Connection:
    if not path.exists():
        raise StoreUnavailable(f"there is no store at {path}")
    connection = sqlite3.connect(path, isolation_level=None, timeout=WAITS)
    connection.execute("PRAGMA temp_store = MEMORY")
    return connection


def _is_damage(error: sqlite3.DatabaseError | MemoryError) -> bool:
    code = getattr(error, "sqlite_errorcode", sqlite3.SQLITE_ERROR) & 0xFF
    return code in {sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB, sqlite3.SQLITE_ERROR}


@contextlib.contextmanager
def _hopeless(path: Path) -> Iterator[None]:
    """A backup as the way out where SQLite cannot read enough of the file."""
    try:
        yield
    except (sqlite3.DatabaseError, MemoryError) as error:
        if not _is_damage(error):
            raise
        raise StoreCorrupt(f"the store {path} cannot be read: {error}; nothing was changed", hint=RESTORE) from error
