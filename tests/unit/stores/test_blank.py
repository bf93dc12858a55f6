"""The copies that most tests begin with are what the store itself makes."""

from __future__ import annotations

import os
import re
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tests.blank import lay

if TYPE_CHECKING:
    from tests.conftest import Desk, MakeDesk

PRAGMAS = ("application_id", "user_version", "page_size", "auto_vacuum", "journal_mode", "encoding")


def content(path: Path) -> list[Any]:
    """Schema, rows and what the header says; the store's identity, which is random, by its form."""
    with closing(sqlite3.connect(path)) as connection:
        tables = connection.execute("SELECT * FROM sqlite_master ORDER BY name").fetchall()
        names = [row[1] for row in tables if row[0] == "table"]
        rows = [(name, connection.execute(f"SELECT * FROM {name}").fetchall()) for name in names]  # noqa: S608 - names from the schema
        said = [connection.execute(f"PRAGMA {name}").fetchone() for name in PRAGMAS]
    return [said, tables, re.sub(r"\bs_[0-9A-Z]{26}\b", "s_", repr(rows))]


def identity(desk: Desk) -> str:
    [[found]] = desk.sql("SELECT value FROM meta WHERE key = 'store'")
    return str(found)


def test_a_copy_is_in_every_row_what_the_store_makes(make_desk: MakeDesk, tmp_path: Path) -> None:
    made, copied = make_desk(tmp_path / "made", laid=False), make_desk(tmp_path / "copied")
    for desk in (made, copied):
        desk.close()
    assert content(made.path) == content(copied.path)
    if os.name == "posix":
        assert [path.stat().st_mode & 0o777 for path in (copied.folder, copied.path)] == [0o700, 0o600]


def test_each_copy_is_a_store_of_its_own(make_desk: MakeDesk, tmp_path: Path) -> None:
    first, second = make_desk(tmp_path / "first"), make_desk(tmp_path / "second")
    assert identity(first) != identity(second)
    assert identity(first)[:12] == identity(make_desk(tmp_path / "made", laid=False))[:12], "of the clock's time"


def test_what_is_there_already_stays(desk: Desk) -> None:
    kept = desk.save("a text").id
    lay(desk.path, desk.encoder.fingerprint, desk.clock)
    assert desk.found("a text") == [kept]
