"""A process dies while it repairs a store: the notes are as they were, and the next repair ends what it began."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path

import pytest
from tests.crash.acts import Acts
from tests.crash.failpoints import Point
from tests.crash.station import Station, whole
from tests.crash.story import acknowledged
from tests.crash.victims import StartVictim

from agora.stores.sqlite.examine import examine

REPAIR = "agora.stores.sqlite.repairing"
LOST = {
    "full text": "DELETE FROM fulltext",
    "vectors": "DELETE FROM vectors WHERE id % 2",
    "passages": "DELETE FROM passages WHERE n > 0",
}
CANONICAL = ("items", "texts", "savers", "item_tags", "journal_payload", "agents", "namespaces")

POINTS = {
    "repair: the copy is made": ("full text", Point(function=f"{REPAIR}.mending:mend")),
    "repair: the full text is gone": ("full text", Point("DROP TABLE .*fulltext", when="after")),
    "repair: some of the full text is there": ("full text", Point("INSERT INTO fulltext ", nth=5)),
    "repair: about to commit": ("full text", Point(function=f"{REPAIR}.mending:record", when="after")),
    "repair: committed, before the index": ("full text", Point(function="agora.app.repairing:_Repairing._index")),
    "repair: vectors are made, not kept": ("vectors", Point(function=f"{REPAIR}.mending:fill")),
    "repair: vectors are kept": ("vectors", Point(function=f"{REPAIR}.mending:fill", when="after")),
    "repair: orphans are gone": ("passages", Point(function=f"{REPAIR}.derived:orphans", when="after")),
}


def rows(path: Path) -> dict[str, list[tuple[object, ...]]]:
    """What a repair never changes."""
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        return {table: connection.execute(f"SELECT * FROM {table}").fetchall() for table in CANONICAL}  # noqa: S608 - names from the schema


@pytest.mark.parametrize(("lost", "point"), POINTS.values(), ids=POINTS)
def test_a_repair_that_dies_changes_no_note_and_the_next_one_ends_it(
    start: StartVictim, tmp_path: Path, lost: str, point: Point
) -> None:
    path = tmp_path / "agora.db"
    acts = Acts(tmp_path, "ann")
    victim = start()
    victim.ask("listen")
    victim.ask("open")
    cast = acknowledged(victim)
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        connection.execute(LOST[lost])
    before = rows(path)
    victim.dies(point, "repair")
    found = rows(path)
    # Who repaired may be among the agents, and what the journal tells of it among its payloads.
    assert all(found[table][: len(before[table])] == before[table] for table in CANONICAL)
    acts.open()
    # Another process may write in between.
    after = acts.save("alpha beta words of after the accident")
    assert acts.repair() == []
    assert examine(path) == []
    acts.close()
    station = Station(tmp_path)
    whole(station)
    for mode in ("semantic", "lexical"):
        assert {*cast.kept, after} <= set(station.found("alpha beta words", mode))
    station.close()
    for copy in tmp_path.glob("agora.db.*"):
        # Whatever copies it made are stores of their own.
        with closing(sqlite3.connect(copy)) as connection:
            assert connection.execute("PRAGMA integrity_check").fetchone() == ("ok",)
