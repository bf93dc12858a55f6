"""A process dies while it makes a store or brings one to this release's schema: the next one opens it and goes on."""

from __future__ import annotations

import sqlite3
import time
from contextlib import closing
from importlib import resources
from pathlib import Path
from typing import Literal

import pytest
from tests.crash.failpoints import Point
from tests.crash.station import Station, whole
from tests.crash.story import SOON
from tests.crash.victims import StartVictim

from agora.stores.sqlite import migrations

OPENING: list[tuple[str, Literal["new", "older"], Point]] = [
    ("creation: marked, no table yet", "new", Point(".*CREATE TABLE")),
    ("creation: half of the tables", "new", Point(".*CREATE TABLE", when="after", nth=7)),
    ("creation: the schema without a profile", "new", Point("INSERT INTO encoders")),
    ("creation: about to commit", "new", Point("COMMIT")),
    ("creation: committed", "new", Point("COMMIT", when="after")),
    ("migration: the first statement", "older", Point(".*CREATE ", when="after")),
    ("migration: has its number", "older", Point("PRAGMA user_version = ", when="after")),
    ("migration: about to commit", "older", Point("COMMIT")),
    ("migration: committed", "older", Point("COMMIT", when="after")),
]


def made_older(path: Path) -> None:
    """Take the newest migration back: what it made goes, what it dropped is there, and the number is the one before."""
    with closing(sqlite3.connect(":memory:")) as before, closing(sqlite3.connect(path, isolation_level=None)) as store:
        for number, name in migrations._FILES:
            script = resources.files(migrations).joinpath(name).read_text("utf-8")
            if number < migrations.LATEST:
                before.executescript(script)
        known = before.execute("SELECT type, name FROM sqlite_master").fetchall()
        for kind, name, made_by_hand in store.execute("SELECT type, name, sql FROM sqlite_master").fetchall():
            if (kind, name) not in known and made_by_hand:
                store.execute(f"DROP {kind} IF EXISTS {name}")
        there = store.execute("SELECT type, name FROM sqlite_master").fetchall()
        for kind, name, made_by_hand in before.execute("SELECT type, name, sql FROM sqlite_master").fetchall():
            if (kind, name) not in there and made_by_hand:
                store.execute(made_by_hand)
        store.execute(f"PRAGMA user_version = {migrations.LATEST - 1}")


@pytest.mark.parametrize(("store", "point"), [each[1:] for each in OPENING], ids=[each[0] for each in OPENING])
def test_a_death_while_a_store_is_opened_leaves_one_that_opens(
    start: StartVictim, tmp_path: Path, store: Literal["new", "older"], point: Point
) -> None:
    kept = []
    if store == "older":
        station = Station(tmp_path)
        kept = [station.save(f"alpha number {number}").id for number in range(3)]
        station.close()
        made_older(tmp_path / "agora.db")
    victim = start()
    victim.ask("listen")
    victim.dies(point, "open")
    for _ in range(2):
        began = time.monotonic()
        station = Station(tmp_path)
        kept.append(station.save(f"alpha number {len(kept)}").id)
        assert time.monotonic() - began < SOON
        whole(station)
        for mode in ("lexical", "semantic"):
            assert sorted(station.found("alpha", mode)) == sorted(kept)
        assert station.sql("PRAGMA user_version") == [(migrations.LATEST,)]
        assert station.sql("SELECT count(*), min(state) FROM encoders") == [(1, "active")]
        station.close()
