"""Stores in files, made once and copied for each test, and what may be asked of one that nobody uses."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path

from tests.conftest import Desk
from tests.unit.exchange.ferry import take, version, write

from agora.stores.sqlite.checks import find_problems

SOME, MANY = 150, 12_000
FREE = 40_000_000


def made(folder: Path, notes: int) -> Path:
    """A closed store; what is kept in a file here is made once and copied for each test."""
    desk = Desk(folder)
    for start in range(0, notes, 1000):
        numbers = range(start, min(notes, start + 1000))
        file = write(folder / "x.jsonl", [version(n, f"word{n % 397} common {n}") for n in numbers])
        assert take(desk, file).counts == {"created": len(numbers)}
    desk.close()
    return folder / "agora.db"


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
