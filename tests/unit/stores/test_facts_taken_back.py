"""Facts forgotten, restored, pinned, and taken back with all that a writer said: what holds then is the timeline's."""

from __future__ import annotations

import json
import tempfile
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.conftest import PATIENCE, Desk
from tests.unit.stores.statements import everything, recall, tell, values
from tests.unit.stores.test_audit import planned, reverted

from agora.model.caller import Origin, rank
from agora.model.deadline import Deadline
from agora.model.instants import NEVER, to_micros
from agora.model.selection import Selection
from agora.model.timeline import Statement, outcome
from agora.stores.sqlite.facts import settling
from agora.text.sameness import same


def live(desk: Desk) -> list[str]:
    """Values of the facts that queries may find."""
    now = to_micros(desk.clock.now())
    found = desk.sql(
        "SELECT f.value FROM facts f JOIN items i ON i.id = f.item_id WHERE i.superseded_by IS NULL"
        " AND i.forgotten_at IS NULL AND ifnull(i.expires_at, ?) > ? ORDER BY 1",
        now + 1,
        now,
    )
    return [value for (value,) in found]


def test_a_forgotten_fact_brings_nothing_back_and_a_restored_one_holds_again(desk: Desk) -> None:
    tell(desk, 1)
    desk.clock.advance(seconds=10)
    told = tell(desk, 2)
    desk.forget(told.id)
    assert (values(desk), live(desk)) == ([], [])
    assert desk.restore(told.id).restored == (told.id,)
    assert (values(desk), live(desk)) == ([2], ["2"])
    assert desk.problems() == []


def test_facts_are_forgotten_with_everything_else_of_an_agent_or_of_a_time(desk: Desk) -> None:
    tell(desk, 1, "mal", key="a")
    note = desk.save("a note", "mal").id
    tell(desk, 2, "mal", key="b")
    tell(desk, 2, "ann", key="b")
    tell(desk, 3, "ann", key="c", since=-100)
    assert {each.id for each in desk.forget(agent="mal", dry_run=True).notes} >= {note}
    assert desk.forget(agent="mal").count == 2
    assert values(desk) == [2, 3]
    assert desk.forget(before=desk.clock.now() - timedelta(seconds=50)).count == 1
    assert values(desk) == [2]


def test_a_fact_of_a_notes_words_is_no_duplicate_of_it_when_it_comes_back(desk: Desk) -> None:
    told = tell(desk, 5432, quote="the port is 5432")
    desk.forget(told.id)
    desk.save("the port is 5432")
    assert desk.restore(told.id).restored == (told.id,)
    assert values(desk) == [5432]


def test_what_made_way_while_it_was_forgotten_comes_back_as_history(desk: Desk) -> None:
    first = tell(desk, 1)
    desk.forget(first.id)
    desk.clock.advance(seconds=10)
    tell(desk, 2)
    assert desk.restore(first.id).superseded == (first.id,)
    assert (values(desk), live(desk)) == ([2], ["2"])
    assert values(desk, as_of=desk.clock.now() - timedelta(seconds=5)) == [1]
    assert desk.problems() == []


def test_a_pinned_fact_has_no_expiry_and_ends_when_it_was_said_to(desk: Desk) -> None:
    told = tell(desk, 1, origin="user", lives=10, until=100)
    assert desk.pin(told.id).changed == (told.id,)
    assert desk.problems() == []
    desk.clock.advance(seconds=50)
    assert (values(desk), live(desk)) == ([1], ["1"])
    assert recall(desk).facts[0].fact.pinned_at is not None
    desk.clock.advance(seconds=100)
    assert (values(desk), live(desk)) == ([], [])
    assert desk.pin(told.id, pinned=False).changed == (told.id,)
    assert desk.problems() == []


def test_a_corroboration_is_taken_back_with_its_authority(desk: Desk) -> None:
    tell(desk, 1, "ann")
    desk.clock.advance(seconds=1)
    tell(desk, 1, "uma", origin="user", lives=1000)
    desk.clock.advance(seconds=1)
    assert tell(desk, 2, "bob").status == "contested"
    assert values(desk) == [1]
    reverted(desk, agent="uma")
    assert (values(desk), live(desk)) == ([2], ["2"])
    [fact] = [each.fact for each in recall(desk, include_history=True).history]
    assert [saver.agent for saver in fact.savers] == ["ann"]
    assert desk.problems() == []
    # By its session the revert is undone, and the authority is there again.
    reverted(desk, session="s-eve")
    assert values(desk) == [1]
    assert desk.problems() == []


def test_what_a_writer_alone_stated_counts_as_never_said(desk: Desk) -> None:
    tell(desk, 1, "ann")
    desk.clock.advance(seconds=10)
    wrong = tell(desk, 2, "mal").id
    hidden = tell(desk, 3, "ann", key="hidden").id
    desk.notes.forget(Selection(("p",), (hidden,)), desk.caller("mal"), Deadline(PATIENCE), dry_run=False)
    plan = planned(desk, agent="mal")
    assert {(step.undoing, step.id) for step in plan.steps} == {("forget", wrong), ("restore", hidden)}
    assert reverted(desk, agent="mal").done == plan.steps
    assert (values(desk), live(desk)) == ([1, 3], ["1", "3"])
    assert wrong not in str(everything(desk))
    # No copies: there are as many statements as were made.
    assert desk.sql("SELECT count(*) FROM items") == [(3,)]
    assert reverted(desk, agent="mal").done == ()
    assert desk.found("port")[0] == recall(desk, "port").facts[0].fact.id
    assert desk.problems() == []


WRITERS: dict[str, Origin] = {"ann": "agent", "uma": "user", "mal": "agent", "eva": "tool"}
BAD = {"mal", "eva"}
SAY = st.tuples(
    st.just("say"),
    st.sampled_from(sorted(WRITERS)),
    st.sampled_from([1, 2, "one"]),
    st.sampled_from([None, None, -25, -5, 8]),
    st.sampled_from([None, None, None, 6, 40]),
    st.sampled_from([None, None, True, False]),
)
FORGET = st.tuples(st.just("forget"), st.sampled_from(sorted(BAD)), st.integers(0, 9))
RESTORE = st.tuples(st.just("restore"), st.sampled_from(["ann", "mal"]), st.integers(0, 9))


class Told:
    """A store in which all of it was said, with who stands behind what."""

    def __init__(self, folder: Path, acts: list[tuple[Any, ...]]) -> None:
        self.desk = Desk(folder)
        self.savers: dict[str, dict[str, int]] = {}
        self.forgotten: dict[str, bool] = {}
        for act, agent, *how in acts:
            self.desk.clock.advance(seconds=1)
            if act == "say":
                value, since, until, multi = how
                until = None if until is None else max(until, since or 0)
                told = tell(self.desk, value, agent, since=since, until=until, multi=multi, origin=WRITERS[agent])
                now = to_micros(self.desk.clock.now())
                self.savers.setdefault(told.id, {}).setdefault(agent, now)
                self.forgotten.setdefault(told.id, False)
            elif self.savers:
                self.change(act, agent, list(self.savers)[how[0] % len(self.savers)])

    def change(self, act: str, agent: str, public_id: str) -> None:
        """Forget or restore a statement, if the agent may."""
        caller, patience = self.desk.caller(agent, origin=WRITERS[agent]), Deadline(PATIENCE)
        if act == "forget":
            self.desk.notes.forget(Selection(("p",), (public_id,)), caller, patience, dry_run=False)
        else:
            self.desk.notes.restore((public_id,), caller, patience)

    def expected(self) -> list[Statement]:
        """What is left of it without the writers that are reverted."""
        found = []
        for row, public_id, value, multi, start, stop, recorded in self.desk.sql(
            "SELECT i.id, i.public_id, f.value, f.multi, f.valid_from, f.valid_to, i.created_at"
            " FROM facts f JOIN items i ON i.id = f.item_id"
        ):
            voices = tuple(
                (rank(WRITERS[agent]), since) for agent, since in self.savers[public_id].items() if agent not in BAD
            )
            gone = not voices
            found.append(
                Statement(
                    *(row, same(json.loads(value)), bool(multi), start, stop, None, recorded, gone, gone),
                    voices or ((1, recorded),),
                )
            )
        return found

    def seen(self) -> list[list[str]]:
        """Values that hold, at several instants and for queries."""
        now = self.desk.clock.now()
        instants = [now + timedelta(seconds=seconds) for seconds in (-30, -6, -2, 0, 5, 20)]
        return [*([str(each) for each in values(self.desk, as_of=at)] for at in instants), live(self.desk)]


@settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(st.lists(st.one_of(SAY, SAY, SAY, FORGET, RESTORE), min_size=2, max_size=9))
def test_two_writers_reverted_one_after_the_other_are_both_gone_at_once(acts: list[tuple[Any, ...]]) -> None:
    seen = []
    for order in (("mal", "eva"), ("eva", "mal")):
        with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder:
            told = Told(Path(folder), acts)
            try:
                for writer in order:
                    reverted(told.desk, agent=writer)
                now = to_micros(told.desk.clock.now())
                holds = outcome(told.expected(), now, now)
                current = told.desk.sql("SELECT item_id, value FROM facts")
                held = sorted(str(value) for row, value in current if row in holds.holding)
                assert sorted(map(repr, values(told.desk))) == sorted(each.replace('"', "'") for each in held)
                ends, _ = settling.ends(told.expected(), now)
                found = {
                    row for row, end in ends.items() if end.superseded_by is None and (end.expires_at or NEVER) > now
                }
                found -= {each.row for each in told.expected() if each.reverted}
                assert live(told.desk) == sorted(str(value) for row, value in current if row in found)
                assert told.desk.problems() == []
                seen.append(told.seen())
            finally:
                told.desk.close()
    assert seen[0] == seen[1]


@pytest.mark.parametrize("order", [("mal", "eva"), ("eva", "mal")])
def test_what_one_had_hidden_of_the_other_stays_gone(desk: Desk, order: tuple[str, str]) -> None:
    tell(desk, 1, "ann")
    desk.clock.advance(seconds=10)
    wrong = tell(desk, 2, "mal").id
    desk.notes.forget(Selection(("p",), (wrong,)), desk.caller("eva"), Deadline(PATIENCE), dry_run=False)
    for writer in order:
        reverted(desk, agent=writer)
    assert (values(desk), live(desk)) == ([1], ["1"])
    assert desk.problems() == []
