"""A process dies in the middle of an import: each note came whole or not at all, and a second import completes it."""

from __future__ import annotations

import json
import random
import sqlite3
import subprocess
import threading
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from tests.crash.acts import Acts
from tests.crash.failpoints import Point
from tests.crash.station import Station, whole
from tests.crash.victims import StartVictim
from tests.integration.processes import AGORA, environment, run_command

ARRIVING = "agora.stores.sqlite.arriving:Arriving"
NOTES = 420
"""More than two batches."""


@pytest.fixture(scope="module")
def exported(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, list[str]]:
    """A file with notes of several savers, histories, forgotten ones, in two namespaces; its versions."""
    folder = tmp_path_factory.mktemp("elsewhere")
    acts = Acts(folder, "ann")
    acts.open()
    station = acts.station
    for number in range(NOTES):
        text = f"alpha words of number {number}, long enough for more than one passage of it"
        key = f"key {number % 20}" if number % 5 == 0 else None
        saved = station.save(text, "pq"[number % 2], key=key, tags=("red",) if number % 3 else ())
        if number % 7 == 0:
            station.save(text, "pq"[number % 2], key=key, agent="eve")
        if number % 11 == 0:
            station.forget(saved.id)
        station.clock.advance(seconds=1)
    lines = acts.export(str(folder / "all.jsonl"))
    acts.close()
    assert len(lines) == NOTES
    return folder / "all.jsonl", lines


POINTS = {
    "before its first transaction": Point("BEGIN IMMEDIATE"),
    "in the first batch": Point("INSERT INTO savers", nth=100, when="after"),
    "with an item and no text": Point("INSERT INTO texts", nth=230),
    "between two passages": Point("INSERT INTO vectors", nth=501),
    "with an old version out of its place": Point(function=f"{ARRIVING}._supersede", nth=5),
    "before a batch is made findable": Point(function=f"{ARRIVING}.finish", nth=2),
    "when a batch was made findable": Point(function=f"{ARRIVING}.finish", nth=2, when="after"),
    "before the second commit": Point("COMMIT", nth=2),
    "after the second commit": Point("COMMIT", nth=2, when="after"),
    "after the last commit": Point("COMMIT", nth=3, when="after"),
    "in the log, by half": Point(written="agora.db-wal", beyond=40_000, at="INSERT INTO items"),
}


@pytest.mark.parametrize("name", POINTS)
def test_an_import_that_dies_leaves_whole_notes_alone_and_a_second_one_completes_it(
    start: StartVictim, tmp_path: Path, exported: tuple[Path, list[str]], name: str
) -> None:
    file, lines = exported
    victim = start()
    victim.ask("listen")
    victim.ask("open")
    own = victim.ask("save", "alpha words that were here before")
    victim.dies(POINTS[name], "take_in", str(file))
    acts = Acts(tmp_path, "ann")
    acts.open()
    with closing(acts):
        whole(acts.station)
        there = {each["id"]: each for each in map(json.loads, acts.export(str(tmp_path / "half.jsonl")))}
        assert there.pop(own)
        there_is_only(there, lines)
        done = acts.take_in(str(file))
        assert sum(done.values()) == len(lines)
        assert done["duplicate"] == len(there)
        assert done["conflict"] == done["broken"] == 0
        complete(acts, lines, own)
        # Once more there is nothing to do.
        sequence = acts.station.sql("SELECT max(sequence) FROM journal")
        assert acts.take_in(str(file))["duplicate"] == len(lines)
        assert acts.station.sql("SELECT max(sequence) FROM journal") == sequence


def there_is_only(there: dict[str, Any], lines: list[str]) -> None:
    """What came is what was sent, whole; only a neighbour of its history may still be missing."""
    sent = {each["id"]: each for each in map(json.loads, lines)}
    for public_id, version in there.items():
        for field, value in sent[public_id].items():
            if field not in {"superseded_by", "supersedes", "replaces", "version"}:
                assert version[field] == value, (public_id, field)


def complete(acts: Acts, lines: list[str], own: str) -> None:
    """Everything is there as it was sent, once, and can be found."""
    station: Station = acts.station
    whole(station)
    now = acts.export(str(acts.folder / "whole.jsonl"))
    assert sorted(each for each in now if json.loads(each)["id"] != own) == sorted(lines)
    assert len(now) == len(lines) + 1
    found = station.found("alpha words", "lexical", top_k=2 * NOTES)
    assert (
        len(found)
        == len(set(found))
        == station.sql("SELECT count(*) FROM items WHERE superseded_by IS NULL AND forgotten_at IS NULL")[0][0]
    )


@pytest.fixture
def talk(tmp_path: Path) -> Path:
    """A transcript of another tool, whose messages have no ids of ours."""
    file = tmp_path / "talk.jsonl"
    said = [
        {
            "type": "user" if number % 2 == 0 else "assistant",
            "sessionId": "s1",
            "timestamp": f"2026-01-05T10:{number // 60:02}:{number % 60:02}Z",
            "uuid": f"u{number}",
            "message": {"role": "user" if number % 2 == 0 else "assistant", "content": f"message number {number}"},
        }
        for number in range(900)
    ]
    file.write_text("".join(json.dumps(each) + "\n" for each in said), "utf-8")
    return file


@pytest.mark.slow
def test_the_command_killed_at_random_brings_every_message_once(tmp_path: Path, talk: Path) -> None:
    chance, home = random.Random(5), tmp_path / "home"  # noqa: S311 - repeatable
    before = 0
    for _ in range(6):
        process = subprocess.Popen(
            [*AGORA, "import", str(talk)],
            env=environment(home, {}),
            cwd=tmp_path,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        threading.Event().wait(chance.uniform(0.8, 3.0))
        process.kill()
        process.wait(20)
        doctor = run_command(["doctor", "--json"], home, tmp_path)
        assert json.loads(doctor.stdout)["health"] == "ok", doctor.stdout
        if (home / "agora.db").exists() and sql(home, "SELECT 1 FROM sqlite_master WHERE name = 'texts'"):
            ((now,),) = sql(home, "SELECT count(*) FROM texts")
            # What was taken in stays.
            assert now >= before
            before = now
    done = json.loads(run_command(["import", str(talk), "--json"], home, tmp_path).stdout)
    [report] = done["files"]
    assert report["whole"]
    assert report["counts"]["created"] + report["counts"]["duplicate"] == 900
    assert report["counts"]["duplicate"] == before
    assert sql(home, "SELECT count(*), count(DISTINCT content) FROM texts") == [(900, 900)]
    assert json.loads(run_command(["doctor", "--json"], home, tmp_path).stdout)["health"] == "ok"


def sql(home: Path, statement: str) -> list[tuple[Any, ...]]:

    with closing(sqlite3.connect(home / "agora.db")) as connection:
        found: list[tuple[Any, ...]] = connection.execute(statement).fetchall()
        return found
