"""A process dies while facts are purged: what they had replaced never comes back, and the next purge takes the rest."""

from __future__ import annotations

from contextlib import closing
from pathlib import Path

import pytest
from tests.conftest import Desk
from tests.crash.failpoints import Point
from tests.crash.victims import StartVictim
from tests.sentinels import looked_for
from tests.unit.stores.statements import tell, values
from tests.unit.stores.test_purge import clean, purge

from agora.testing import FakeEncoder

WORDS = {"value": b"wolframite", "key": b"zephyrine", "subject": b"xylographic"}


def desk_on(folder: Path) -> Desk:
    """A desk with the encoder that the victims have."""
    return Desk(folder, encoder=FakeEncoder(16, piece=40))


POINTS = {
    "with a value taken away": Point(statement="UPDATE facts SET value", when="after"),
    "with its text deleted": Point(statement="DELETE FROM texts", when="after"),
    "before the name is deleted": Point(statement="DELETE FROM fact_slots"),
    "after the name is deleted": Point(statement="DELETE FROM fact_slots", when="after"),
    "after the commit": Point(statement="COMMIT", when="after"),
}


@pytest.mark.parametrize("name", POINTS)
def test_a_purge_of_facts_that_dies_brings_nothing_back(start: StartVictim, tmp_path: Path, name: str) -> None:
    with closing(desk_on(tmp_path)) as desk:
        desk.clock.advance(seconds=-10)
        tell(desk, 5432)
        desk.clock.advance(seconds=1)
        shared = tell(desk, "wolframite 1").id
        alone = tell(desk, "wolframite 2", key="zephyrine", subject="xylographic").id
        desk.forget(shared, alone)
    gone = alone if "name" in name else shared
    victim = start()
    victim.ask("listen")
    victim.ask("open")
    victim.dies(POINTS[name], "purge", "p", gone)
    with closing(desk_on(tmp_path)) as desk:
        assert values(desk) == []
        assert desk.problems() == []
        assert clean(purge(desk))
        assert looked_for(tmp_path, WORDS) == {}
        assert values(desk) == []
        assert desk.sql("SELECT count(*) FROM facts WHERE value IS NOT NULL") == [(1,)]
        assert desk.problems() == []
