"""A process dies while it writes a backup or puts one in place: the file is whole or none, the store old or new."""

from __future__ import annotations

import sys
import time
from pathlib import Path

import pytest
from tests.crash.acts import Acts
from tests.crash.failpoints import Point
from tests.crash.station import Station, tables_agree, whole
from tests.crash.story import SOON
from tests.crash.victims import StartVictim, Victim

COPY = "agora.stores.sqlite.backup"
PUT = "agora.stores.sqlite.restore"
TOLD = "tests.crash.acts:told"


def two_moments(victim: Victim) -> tuple[set[str], set[str]]:
    """Ids that a backup has, and those that the store has afterwards; what is newer is in the index and the cache."""
    victim.ask("listen")
    victim.ask("open")
    then = [victim.ask("save", f"alpha words of then {number}") for number in range(6)]
    assert victim.ask("backup", "kept.db") == 6
    now = [
        victim.ask("save", f"alpha words of now {number}, " + "long enough for passages " * 40) for number in range(4)
    ]
    victim.ask("forget", then[:2])
    victim.ask("compact")
    victim.ask("query", "alpha words")
    victim.ask("settle")
    return set(then), {*then[2:], *now}


def holds(station: Station, ids: set[str]) -> None:
    """The store has these notes and finds no others, by meaning and by words."""
    whole(station)
    for mode in ("semantic", "lexical"):
        assert set(station.found("alpha", mode)) == ids


BACKUPS = {
    "backup: about to copy": (Point(function=f"{COPY}:copy_pages"), False),
    "backup: copied, not checked": (Point(function=f"{COPY}:copy_pages", when="after"), False),
    "backup: about to get its name": (Point(function="pathlib:Path.replace"), False),
    "backup: has its name": (Point(function="pathlib:Path.replace", when="after"), True),
}


@pytest.mark.parametrize(("point", "named"), BACKUPS.values(), ids=BACKUPS)
def test_a_backup_that_dies_leaves_no_file_of_its_name_or_a_whole_one(
    start: StartVictim, tmp_path: Path, point: Point, named: bool
) -> None:
    victim = start()
    _, now = two_moments(victim)
    victim.dies(point, "backup", "new.db")
    assert (tmp_path / "new.db").exists() == named
    assert (tmp_path / "kept.db").exists()
    if named:
        tables_agree(tmp_path / "new.db")
    station = Station(tmp_path)
    holds(station, now)
    station.close()


RESTORES = {
    "restore: checked, nothing written": (Point(function=f"{PUT}:Backup.put_in_place_of"), False),
    "restore: has the turn": (Point(function=f"{PUT}:_into"), False),
    "restore: about to keep what was there": (Point(function=f"{PUT}:_keep"), False),
    "restore: kept what was there": (Point(function=f"{PUT}:_keep", when="after"), False),
    # Hears of the check, then of each copied page or more.
    "restore: half of the pages": (Point(function=TOLD, nth=3), False),
    "restore: committed": (Point("PRAGMA busy_timeout = 500"), True),
    "restore: the log is cut": (Point(r"PRAGMA wal_checkpoint\(TRUNCATE\)", when="after"), True),
    "restore: verified": (Point(function=f"{PUT}:_verify", when="after"), True),
}
TORN = {
    "restore: in the first page of the log": (
        Point(written="agora.db-wal", at="PRAGMA synchronous = FULL", beyond=10),
        False,
    ),
    "restore: in a later page of the log": (
        Point(written="agora.db-wal", at="PRAGMA synchronous = FULL", beyond=30_000),
        False,
    ),
    "restore: in the checkpoint": (
        Point(written="agora.db", at=r"PRAGMA wal_checkpoint\(TRUNCATE\)", beyond=-8192),
        True,
    ),
}


def put_back(start: StartVictim, folder: Path, point: Point, copy: str | None, *, restored: bool, peer: bool) -> None:
    victim = start()
    then, now = two_moments(victim)
    witness = Station(folder) if peer else None
    if witness is not None:
        holds(witness, now)
    victim.dies(point, "restore_backup", "kept.db", copy)
    station = witness or Station(folder)
    holds(station, then if restored else now)
    began = time.monotonic()
    after = station.save("alpha the next one").id
    assert time.monotonic() - began < SOON
    holds(station, {*(then if restored else now), after})
    station.close()
    if copy is not None and restored:
        tables_agree(folder / copy)
    # Done again, it is done.
    acts = Acts(folder, "ann")
    acts.open()
    acts.restore_backup("kept.db", "again.db")
    holds(acts.station, then)
    acts.close()
    tables_agree(folder / "again.db")


@pytest.mark.parametrize(("point", "restored"), RESTORES.values(), ids=RESTORES)
def test_a_restore_that_dies_leaves_the_old_store_or_the_new_one(
    start: StartVictim, tmp_path: Path, point: Point, restored: bool
) -> None:
    put_back(start, tmp_path, point, "copy.db", restored=restored, peer=False)


@pytest.mark.parametrize(("point", "restored"), list(RESTORES.values())[1::3], ids=list(RESTORES)[1::3])
def test_a_restore_that_dies_under_a_process_that_goes_on_leaves_it_the_old_store_or_the_new_one(
    start: StartVictim, tmp_path: Path, point: Point, restored: bool
) -> None:
    put_back(start, tmp_path, point, "copy.db", restored=restored, peer=True)


@pytest.mark.skipif(sys.platform == "win32", reason="no limit for the size of files that ends a process")
@pytest.mark.parametrize(("point", "restored"), TORN.values(), ids=TORN)
def test_a_restore_that_dies_within_a_page_leaves_the_old_store_or_the_new_one(
    start: StartVictim, tmp_path: Path, point: Point, restored: bool
) -> None:
    put_back(start, tmp_path, point, None, restored=restored, peer=False)
