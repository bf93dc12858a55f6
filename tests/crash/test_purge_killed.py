"""A process dies in the middle of a purge: whole notes went or stayed, and the next purge takes the last byte away."""

from __future__ import annotations

import os
import random
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.crash.failpoints import Point
from tests.crash.station import PATIENCE, Station, whole
from tests.crash.victims import StartVictim, Victim, victims
from tests.sentinels import looked_for

from agora.app.purging import make_purger
from agora.maintenance.purge import Purger
from agora.model.deadline import Deadline
from agora.model.purge import Condemned, Unwanted
from agora.testing import SilentLog

GOING = "alpha zephyrine xylographic words that nobody else uses, long enough for several passages of it"
WORDS = {"first": b"wolframite", "second": b"zephyrine", "other": b"xylographic", "tag": b"ytagged", "key": b"ukeyed"}


@pytest.fixture
def start(tmp_path: Path) -> Iterator[StartVictim]:
    with victims(tmp_path) as begin:
        yield begin


def prepared(victim: Victim) -> tuple[list[str], str]:
    """Ids of notes that stay, and of the current version of one that was forgotten."""
    victim.ask("listen")
    victim.ask("open")
    kept = [victim.ask("save", f"alpha beta words of number {n}", {"tags": ["red"]}) for n in range(6)]
    victim.ask("save", "alpha wolframite words, the first of two versions", {"key": "ukeyed"})
    gone = victim.ask("save", GOING, {"key": "ukeyed", "tags": ["ytagged"]})
    assert victim.ask("query", "alpha words")
    victim.ask("settle")
    assert victim.ask("forget", [gone]) == 1
    return kept, gone


def purger(station: Station, folder: Path) -> Purger:
    store = station.store.purging()
    return make_purger(store, station.cache, folder / "cache.db", station.clock, SilentLog())


POINTS = {
    "before its first transaction": Point(statement="BEGIN IMMEDIATE"),
    "with one row half deleted": Point(statement="DELETE FROM texts", when="after"),
    "with the journal half written": Point(statement="INSERT INTO journal_payload", nth=2),
    "before the commit": Point(statement="COMMIT"),
    "after the commit": Point(statement="COMMIT", when="after"),
    "while the full text is merged": Point(statement="INSERT INTO fulltext .*optimize", when="after"),
    "before the file is written anew": Point(statement="VACUUM"),
    "after the file is written anew": Point(statement="VACUUM", when="after"),
    "before the log is cut": Point(statement="PRAGMA wal_checkpoint"),
    "after the log is cut": Point(statement="PRAGMA wal_checkpoint", when="after"),
    "before the index is purged": Point(function="agora.stores.sqlite.purging:SqlitePurging._purge_index"),
    "before the cache is emptied": Point(statement="DELETE FROM entries"),
    "before the files are looked through": Point(function="agora.maintenance.residue:found_in"),
    "before it is called finished": Point(function="agora.stores.sqlite.purging:SqlitePurging.finished"),
}


@pytest.mark.parametrize("name", POINTS)
def test_a_purge_that_dies_leaves_a_whole_store_and_the_next_one_finishes_it(
    start: StartVictim, tmp_path: Path, name: str
) -> None:
    victim = start()
    kept, gone = prepared(victim)
    assert looked_for(tmp_path, WORDS).keys() == WORDS.keys()
    victim.dies(POINTS[name], "purge", "p", gone)
    station = Station(tmp_path)
    try:
        whole(station)
        assert len(station.notes.get(kept, station.caller(), Deadline(PATIENCE)).notes) == len(kept)
        again = purger(station, tmp_path)
        got = station.notes.get([gone], station.caller(), Deadline(PATIENCE))
        # Both versions are gone or neither is, and what is gone is known to be unfinished.
        assert (got.forgotten, got.purged) in {((gone,), ()), ((), (gone,))}
        assert station.sql("SELECT count(*) FROM items WHERE purged_at > 0") == [(2 if got.purged else 0,)]
        assert (again.unfinished(Deadline(PATIENCE)) is not None) == bool(got.purged)
        done = again.purge(again.condemn(Unwanted(("p",)), Deadline(PATIENCE)), station.caller(), Deadline(PATIENCE))
        assert [each for each in done.places if each.problem] == []
        assert again.unfinished(Deadline(PATIENCE)) is None
        assert looked_for(tmp_path, WORDS) == {}
        whole(station)
    finally:
        station.close()


@pytest.mark.skipif(os.name == "nt", reason="the limit of a file's size is Unix's")
def test_a_file_that_was_written_anew_by_half_is_the_old_one(start: StartVictim, tmp_path: Path) -> None:
    victim = start()
    kept, gone = prepared(victim)
    victim.dies(Point(written="agora.db-wal", beyond=40_000, at="VACUUM"), "purge", "p", gone)
    station = Station(tmp_path)
    try:
        whole(station)
        assert len(station.notes.get(kept, station.caller(), Deadline(PATIENCE)).notes) == len(kept)
        done = purger(station, tmp_path).purge(Condemned(()), station.caller(), Deadline(PATIENCE))
        assert not done.unfinished
        assert looked_for(tmp_path, WORDS) == {}
    finally:
        station.close()


@pytest.mark.slow
def test_purges_that_are_killed_at_random_lose_nothing_else_and_are_finished(
    start: StartVictim, tmp_path: Path
) -> None:
    chance = random.Random(11)  # noqa: S311 - repeatable
    kept: list[str] = []
    for number in range(12):
        victim = start()
        victim.ask("open")
        kept += [victim.ask("save", f"alpha kept words {number} {n}") for n in range(3)]
        gone = [victim.ask("save", f"alpha zephyrine words {number} {n} " * 3, {"tags": ["ytagged"]}) for n in range(4)]
        victim.ask("forget", gone)
        victim.tell("purge", "p", gone[0])
        threading.Event().wait(chance.uniform(0, 0.12))
        victim.kill()
        station = Station(tmp_path)
        try:
            whole(station)
            assert len(station.notes.get(kept, station.caller(), Deadline(PATIENCE)).notes) == len(kept)
            if number % 3 == 2:
                again = purger(station, tmp_path)
                wanted = again.condemn(Unwanted(("p",)), Deadline(PATIENCE))
                assert not again.purge(wanted, station.caller(), Deadline(PATIENCE)).unfinished
                assert looked_for(tmp_path, {"text": b"zephyrine", "tag": b"ytagged"}) == {}
        finally:
            station.close()
