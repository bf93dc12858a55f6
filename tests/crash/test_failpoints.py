"""A process dies at a named point with a change in flight: the change is there wholly or not at all, all else is there.

Each point is reached for certain: a process that outlives its command fails the test.
"""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
from tests.crash.failpoints import Point
from tests.crash.station import PATIENCE, Station
from tests.crash.story import SAME, Cast, Doing, Outcome, Told, named, outlived
from tests.crash.victims import StartVictim

from agora.model.deadline import Deadline

NEW = "alpha the new text that is in flight, long enough for several passages of it, each with a vector"
CHANGED = "alpha is another value under the same key"


def _current(station: Station, cast: Cast) -> object:
    """Text and version of each version of the key, oldest first."""
    got = station.notes.get((cast.old,), station.caller(), Deadline(PATIENCE))
    return [(note.content, note.version) for note in got.history[cast.old]]


def _savers(station: Station, cast: Cast) -> object:
    (note,) = station.notes.get((cast.same,), station.caller(), Deadline(PATIENCE)).notes
    return [saver.agent for saver in note.savers]


def _hidden(station: Station, ids: list[str]) -> int:
    got = station.notes.get(ids, station.caller(), Deadline(PATIENCE))
    assert len(got.notes) + len(got.forgotten) == len(ids)
    # Hidden means hidden everywhere.
    for mode in ("semantic", "lexical"):
        assert set(station.found("alpha words", mode)) & set(ids) == {note.id for note in got.notes}
    return len(got.forgotten)


DOINGS = {
    "save": Doing(
        lambda _: ("save", NEW),
        lambda station, _: len(station.ids_of(NEW)),
        0,
        1,
        lambda station, _: station.save(NEW, agent="bob"),
    ),
    "update": Doing(
        lambda _: ("save", CHANGED, {"key": "setting"}),
        _current,
        [("alpha is the value", 1)],
        [("alpha is the value", 1), (CHANGED, 2)],
        lambda station, _: station.save(CHANGED, key="setting"),
    ),
    "merge": Doing(
        lambda _: ("save", SAME, {"agent": "bob"}),
        _savers,
        ["ann"],
        ["ann", "bob"],
        lambda station, _: station.save(SAME, agent="bob"),
    ),
    "forget": Doing(
        lambda cast: ("forget", cast.going),
        lambda station, cast: _hidden(station, cast.going),
        0,
        2,
        lambda station, cast: station.forget(*cast.going),
    ),
    "restore": Doing(
        lambda cast: ("restore", cast.hidden),
        lambda station, cast: _hidden(station, cast.hidden),
        2,
        0,
        lambda station, cast: station.restore(*cast.hidden),
    ),
    # These change nothing that anybody could see.
    "read": Doing(
        lambda _: ("read", "beta"),
        lambda station, _: bool(station.found("beta", "lexical")),
        before=True,
        after=True,
        again=lambda station, _: station.settle(),
    ),
    "close": Doing(lambda _: ("close",), lambda *_: None, None, None, lambda *_: None),
}

SQL = "agora.stores.sqlite"
SAVES: list[Told] = [
    ("save: asked for the lock", "save", "before", Point("BEGIN IMMEDIATE")),
    ("save: has the lock", "save", "before", Point("BEGIN IMMEDIATE", when="after")),
    ("save: wrote the item", "save", "before", Point("INSERT INTO items", when="after")),
    ("save: wrote the text", "save", "before", Point("INSERT INTO texts", when="after")),
    ("save: wrote the saver", "save", "before", Point("INSERT INTO savers", when="after")),
    ("save: between two passages", "save", "before", Point("INSERT INTO passages", nth=2)),
    ("save: between two vectors", "save", "before", Point("INSERT INTO vectors", nth=2)),
    (
        "save: wrote passages and vectors",
        "save",
        "before",
        Point(function=f"{SQL}.saving:insert_passages", when="after"),
    ),
    ("save: inside the full text's own tables", "save", "before", Point("-- (REPLACE|INSERT) INTO .*fulltext_data")),
    ("save: wrote the full text", "save", "before", Point("INSERT INTO fulltext ", when="after")),
    ("save: wrote the statistics", "save", "before", Point("INSERT INTO namespace_stats", when="after")),
    ("save: wrote the journal", "save", "before", Point("INSERT INTO journal ", when="after")),
    ("save: wrote the journal's payload", "save", "before", Point("INSERT INTO journal_payload", when="after")),
    ("save: about to commit", "save", "before", Point("COMMIT")),
    ("save: committed", "save", "after", Point("COMMIT", when="after")),
    (
        "save: committed, before the writer tells",
        "save",
        "after",
        Point(function=f"{SQL}.connection:Database._transact", when="after"),
    ),
    ("save: before the acknowledgement", "save", "after", Point(function="agora.memory.notes:Notes._related")),
    ("update: the old version has left its place", "update", "before", Point("UPDATE items SET superseded_by = 0")),
    (
        "update: the old version has its successor",
        "update",
        "before",
        Point("UPDATE items SET superseded_by = [1-9]", when="after"),
    ),
    ("update: about to commit", "update", "before", Point("COMMIT")),
    ("update: committed", "update", "after", Point("COMMIT", when="after")),
    ("merge: added the saver", "merge", "before", Point("INSERT INTO savers", when="after")),
    ("merge: committed", "merge", "after", Point("COMMIT", when="after")),
]
OTHERS: list[Told] = [
    ("forget: hid one of two", "forget", "before", Point("UPDATE items SET forgotten_at", nth=2)),
    ("forget: took the first from the full text", "forget", "before", Point("DELETE FROM fulltext ", when="after")),
    ("forget: about to commit", "forget", "before", Point("COMMIT")),
    ("forget: committed", "forget", "after", Point("COMMIT", when="after")),
    ("restore: brought back one of two", "restore", "before", Point(function=f"{SQL}.fulltext:add", nth=2)),
    ("restore: committed", "restore", "after", Point("COMMIT", when="after")),
    ("reads: about to be written", "read", "after", Point(function=f"{SQL}.reads:write")),
    ("reads: being written", "read", "after", Point("INSERT OR REPLACE INTO reads", when="after")),
    ("reads: committed", "read", "after", Point("COMMIT", when="after")),
    ("cache: an answer about to be written down", "read", "after", Point("INSERT INTO entries")),
    ("close: about to let the files go", "close", "after", Point("PRAGMA optimize")),
]
TORN: list[Told] = [
    (
        "save: in the header of the log's first frame",
        "save",
        "before",
        Point(written="agora.db-wal", at="COMMIT", beyond=10),
    ),
    (
        "save: between two frames of the log",
        "save",
        "before",
        Point(written="agora.db-wal", at="COMMIT", beyond=8192 + 24),
    ),
    (
        "save: inside the third page of the log",
        "save",
        "before",
        Point(written="agora.db-wal", at="COMMIT", beyond=2 * (8192 + 24) + 3000),
    ),
    (
        "update: in the log",
        "update",
        "before",
        Point(written="agora.db-wal", at="COMMIT", beyond=4 * (8192 + 24) + 1),
    ),
    (
        "close: in the checkpoint",
        "close",
        "after",
        Point(written="agora.db", at="PRAGMA optimize", beyond=20 * 8192 + 5),
    ),
]


@named([*SAVES, *OTHERS])
def test_a_death_alone_on_the_folder_loses_nothing(
    start: StartVictim, tmp_path: Path, what: str, outcome: Outcome, point: Point
) -> None:
    outlived(start, tmp_path, DOINGS[what], outcome, point, peer=False)


@named([each for number, each in enumerate([*SAVES, *OTHERS]) if number % 4 == 1 and each[1] != "close"])
def test_a_death_beside_a_process_that_goes_on_loses_nothing(
    start: StartVictim, tmp_path: Path, what: str, outcome: Outcome, point: Point
) -> None:
    outlived(start, tmp_path, DOINGS[what], outcome, point, peer=True)


@pytest.mark.skipif(sys.platform == "win32", reason="no limit for the size of files that ends a process")
@named(TORN)
def test_a_death_in_the_middle_of_a_page_loses_nothing(
    start: StartVictim, tmp_path: Path, what: str, outcome: Outcome, point: Point
) -> None:
    outlived(start, tmp_path, DOINGS[what], outcome, point, peer=False)
