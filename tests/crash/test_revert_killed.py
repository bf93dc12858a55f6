"""A process dies in the middle of a revert: each note is as it was or undone, and the next revert does the rest."""

from __future__ import annotations

from collections import Counter
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from tests.crash.acts import Acts
from tests.crash.failpoints import Point
from tests.crash.station import Station, whole
from tests.crash.victims import StartVictim

from agora.stores.sqlite.audit import verify

REVERT = "agora.stores.sqlite.audit_revert:_Deed"
DONE = {"withdraw": 4, "forget": 4, "take back": 4, "restore": 1}
"""What there is to undo; with three in a transaction it takes seven of them."""


def prepared(folder: Path) -> dict[str, Any]:
    """A store in which mal has done harm of every kind; what a query finds with whose names without it."""
    with closing(Station(folder)) as station:
        for number in range(4):
            station.save(f"alpha value {number} of ann", key=f"k{number}", tags=("red",))
            station.save(f"alpha words {number} of ann")
        forgotten = station.save("alpha words that mal forgets").id
        before = found(station)
        for number in range(4):
            station.save(f"alpha poison {number}", key=f"k{number}", agent="mal")
            station.save(f"alpha words {number} of ann", agent="mal", tags=("evil",))
            station.save(f"alpha junk {number}", agent="mal")
        station.agent = "mal"
        station.forget(forgotten)
        assert found(station) != before
        return before


def found(station: Station) -> dict[str, Any]:
    """Savers and tags of everything that can be found, by its text."""
    ids = station.found("alpha words value poison junk", "lexical")
    rows = station.sql(
        "SELECT i.public_id, t.content, (SELECT group_concat(a.name) FROM savers s JOIN agents a ON a.id = s.agent_id"
        " WHERE s.item_id = i.id), (SELECT group_concat(tag) FROM item_tags g WHERE g.item_id = i.id) FROM items i"
        " JOIN texts t ON t.item_id = i.id"
    )
    return {content: given for public_id, content, *given in rows if public_id in ids}


POINTS = {
    "before it looks": Point(function="agora.stores.sqlite.audit_plan:plan"),
    "before its first transaction": Point("BEGIN IMMEDIATE"),
    "with a saver gone and its note not renumbered": Point("DELETE FROM savers", when="after"),
    "with metadata deleted and not put back": Point("DELETE FROM item_metadata", nth=2, when="after"),
    "with the journal half written": Point("INSERT INTO journal_payload", nth=5),
    "after the first commit": Point("COMMIT", when="after"),
    "before the second commit": Point("COMMIT", nth=2),
    "after the third commit": Point("COMMIT", nth=3, when="after"),
    "with a note hidden and out of the full text": Point("INSERT INTO journal VALUES", nth=6),
    "with a version hidden and the one before it not back": Point(function=f"{REVERT}._put", nth=2),
    "with the version before it back and not findable": Point(
        function="agora.stores.sqlite.arriving:Arriving.finish", nth=2
    ),
    "when the version before it is back": Point(function=f"{REVERT}._put", nth=2, when="after"),
    "before a note is restored": Point(function=f"{REVERT}._restore"),
    "after the last commit": Point("COMMIT", nth=7, when="after"),
}


@pytest.mark.parametrize("name", POINTS)
def test_a_revert_that_dies_leaves_whole_notes_and_the_next_one_does_the_rest(
    start: StartVictim, tmp_path: Path, name: str
) -> None:
    before = prepared(tmp_path)
    victim = start()
    victim.ask("listen")
    victim.ask("open")
    victim.dies(POINTS[name], "revert", "mal")
    acts = Acts(tmp_path, "ann")
    acts.open()
    with closing(acts):
        station = acts.station
        whole(station)
        assert verify(station.path).broken is None
        undone = Counter(
            {
                "withdraw": station.sql("SELECT count(*) FROM journal WHERE operation = 'withdraw'")[0][0],
                "forget": station.sql(
                    "SELECT count(*) FROM journal j JOIN items i ON i.id = j.item_id JOIN texts t ON t.item_id = i.id"
                    " WHERE j.operation = 'forget' AND t.content LIKE '%junk%'"
                )[0][0],
                "take back": station.sql(
                    "SELECT count(*) FROM items WHERE key IS NOT NULL AND version = 3 AND superseded_by IS NULL"
                )[0][0],
                "restore": station.sql("SELECT count(*) FROM journal WHERE operation = 'restore'")[0][0],
            }
        )
        # Nothing was done twice, and nothing half.
        assert Counter(acts.revert("mal")) + undone == Counter(DONE)
        assert found(station) == before
        whole(station)
        sequence = station.sql("SELECT max(sequence) FROM journal")
        assert acts.revert("mal") == {}
        assert station.sql("SELECT max(sequence) FROM journal") == sequence
