"""A process dies while it writes what the store keeps of other servers: each is there wholly or not at all."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.crash.failpoints import Point
from tests.crash.station import PATIENCE, Station, whole
from tests.crash.victims import StartVictim

from agora.model.deadline import Deadline
from agora.stores.sqlite.audit import verify_calls

CALLS = "SELECT count(*) FROM calls WHERE operation = ?"
POINTS = [
    ("call", Point(statement="INSERT INTO calls"), "before"),
    ("call", Point(statement="INSERT INTO calls", when="after"), "before"),
    ("call", Point(statement="COMMIT"), "before"),
    ("call", Point(statement="COMMIT", when="after"), "after"),
    ("approve", Point(statement="INSERT INTO tool_pins", when="after"), "before"),
    ("approve", Point(statement="INSERT INTO calls", when="after"), "before"),
    ("approve", Point(statement="COMMIT", when="after"), "after"),
]


@pytest.mark.parametrize(("what", "point", "outcome"), POINTS)
def test_a_death_in_a_call_or_an_approval_leaves_both_records_whole(
    start: StartVictim, tmp_path: Path, what: str, point: Point, outcome: str
) -> None:
    victim = start()
    victim.ask("listen")
    victim.ask("open")
    victim.ask("save", "alpha is here before")
    victim.ask("sight", "one")
    victim.ask("sight", "two")
    victim.ask("call")
    victim.dies(point, what)
    station = Station(tmp_path)
    try:
        whole(station)
        found = verify_calls(station.path)
        assert found.broken is None
        (pin,) = station.store.tool_pins().known("files", "x", Deadline(PATIENCE)).values()
        calls, approvals = (station.sql(CALLS, kind)[0][0] for kind in ("call", "approve"))
        done = outcome == "after"
        assert calls == (2 if what == "call" and done else 1)
        assert approvals == (1 if what == "approve" and done else 0)
        # What was approved and that somebody approved it are one.
        assert (pin.status == "approved") == (approvals == 1)
        assert (pin.approved.description == "two") == (approvals == 1)
    finally:
        station.close()
    after = start()
    after.ask("open")
    after.ask("call")
    after.ask("close")
    assert verify_calls(tmp_path / "agora.db").rows == calls + approvals + 1
    assert verify_calls(tmp_path / "agora.db").broken is None
