"""Stores in files, made once and copied for each test, and what may be asked of one that nobody uses."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path

from tests.conftest import Desk
from tests.unit.exchange.ferry import version

from agora.memory.passages import embed
from agora.model.deadline import Deadline
from agora.ports.transfer import Arrival
from agora.stores.sqlite.checks import find_problems

SOME, MANY = 150, 12_000
FREE = 40_000_000


def made(folder: Path, notes: int) -> Path:
    """A closed store; what is kept in a file here is made once and copied for each test."""
    desk = Desk(folder)
    add(desk, [arrival(desk, n, f"word{n % 397} common {n}") for n in range(notes)])
    desk.close()
    return folder / "agora.db"


def arrival(desk: Desk, number: int, content: str) -> Arrival:
    """A text with its vectors, as an import brings it."""
    return Arrival(version(number, content), embed(desk.encoder, None, content, Deadline(60)))


def add(desk: Desk, arrivals: list[Arrival]) -> None:
    """Save many texts in few transactions, which takes a quarter of the time that an import from a file takes."""
    caller = desk.caller()
    for start in range(0, len(arrivals), 500):
        batch = arrivals[start : start + 500]
        added = desk.store.transfer().add(batch, caller, {}, desk.clock.now(), Deadline(120))
        assert len(added) == len(batch)


def whole(file: Path) -> dict[str, int]:
    """Notes and sequence of a store without problems that nobody uses."""
    with closing(sqlite3.connect(f"{file.as_uri()}?mode=ro&immutable=1", uri=True)) as connection:
        assert find_problems(connection) == []
        notes = connection.execute("SELECT count(*) FROM items WHERE forgotten_at IS NULL").fetchone()[0]
        return {"notes": notes, "sequence": connection.execute("SELECT max(sequence) FROM journal").fetchone()[0]}


def in_store(home: Path) -> int:
    """Rows of a store without problems that others may use."""
    with closing(sqlite3.connect(home / "agora.db", isolation_level=None, timeout=20)) as connection:
        connection.execute("BEGIN")
        assert find_problems(connection) == []
        return int(connection.execute("SELECT count(*) FROM items").fetchone()[0])


def copies(home: Path) -> list[Path]:
    return sorted(home.glob("agora.db.before-restore-*"))


def ids_in(file: Path) -> set[str]:
    with closing(sqlite3.connect(f"{file.as_uri()}?mode=ro&immutable=1", uri=True)) as connection:
        return {row[0] for row in connection.execute("SELECT public_id FROM items")}
