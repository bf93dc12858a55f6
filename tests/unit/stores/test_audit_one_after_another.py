"""Two writers reverted one after the other: what they alone have said is never live again, whoever goes first."""

from __future__ import annotations

import tempfile
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st
from tests.conftest import PATIENCE, Desk, MakeDesk
from tests.unit.stores.test_audit import live, planned, reverted, sound

from agora.memory.passages import embed
from agora.model.deadline import Deadline
from agora.model.selection import Selection
from agora.ports.transfer import Arrival, Extract

ORDERS = pytest.mark.parametrize("order", [("mal", "eva"), ("eva", "mal")])


@ORDERS
def test_what_was_right_before_two_that_overwrote_each_other_is_right_again(desk: Desk, order: tuple[str, str]) -> None:
    desk.save("right", "ann", key="k")
    for number in range(2):
        desk.save(f"wrong by mal {number}", "mal", key="k")
        desk.save(f"wrong by eva {number}", "eva", key="k")
    for writer in order:
        plan = planned(desk, agent=writer)
        assert reverted(desk, agent=writer).done == plan.steps
    assert live(desk) == [("p", "k", "right")]
    sound(desk)
    for writer in order:
        assert reverted(desk, agent=writer).done == ()


@ORDERS
def test_what_one_had_hidden_of_the_other_does_not_come_back(desk: Desk, order: tuple[str, str]) -> None:
    desk.save("right", "ann", key="k")
    wrong = desk.save("wrong", "mal", key="k").id
    loose = desk.save("loose and wrong", "mal").id
    desk.notes.forget(Selection(("p",), (wrong, loose)), desk.caller("eva"), Deadline(PATIENCE), dry_run=False)
    for writer in order:
        reverted(desk, agent=writer)
    assert live(desk) == [("p", "k", "right")]
    sound(desk)
    assert desk.notes.restore((loose,), desk.caller("mal"), Deadline(PATIENCE)).protected == (loose,)


@ORDERS
def test_a_note_without_a_key_that_went_under_a_taken_one_goes_too(desk: Desk, order: tuple[str, str]) -> None:
    desk.save("right", "ann", key="k")
    kept = desk.save("right without a key", "ann").id
    desk.save("wrong by eva", "eva", key="k")
    desk.save("wrong by mal", "mal")
    desk.save("wrong by mal", "mal", key="k")
    desk.save("right without a key", "mal", key="k")
    desk.save("wrong by mal", "eva", key="k")
    for writer in order:
        reverted(desk, agent=writer)
    assert live(desk) == [("p", None, "right without a key"), ("p", "k", "right")]
    assert desk.note(kept).superseded_by is not None
    sound(desk)


def test_a_reason_that_reads_like_a_reverts_takes_no_version_out_of_the_way(desk: Desk) -> None:
    desk.save("old", "ann", key="k")
    right = desk.save("right", "ann", key="k").id
    selection = Selection(("p",), (right,), reason="reverted")
    desk.notes.forget(selection, desk.caller("eva"), Deadline(PATIENCE), dry_run=False)
    desk.save("wrong", "mal", key="k")
    reverted(desk, agent="mal")
    assert live(desk) == []
    sound(desk)


def test_what_the_user_has_forgotten_is_not_the_agents_to_bring_back_after_a_revert_by_one(desk: Desk) -> None:
    wrong = desk.save("wrong", "mal").id
    user = desk.caller("ann", origin="user")
    desk.notes.forget(Selection(("p",), (wrong,)), user, Deadline(PATIENCE), dry_run=False)
    assert [each.id for each in reverted(desk, agent="mal", origin="agent").left] == [wrong]
    assert desk.notes.restore((wrong,), desk.caller("mal"), Deadline(PATIENCE)).protected == (wrong,)


def test_a_note_of_somebody_elses_is_none_that_was_reverted(desk: Desk) -> None:
    right = desk.save("right", "ann", key="k").id
    desk.notes.forget(Selection(("p",), (right,)), desk.caller("ann"), Deadline(PATIENCE), dry_run=False)
    desk.notes.restore((right,), desk.caller("eva"), Deadline(PATIENCE))
    reverted(desk, agent="eva")
    desk.notes.restore((right,), desk.caller("ann", origin="user"), Deadline(PATIENCE))
    desk.save("wrong", "mal", key="k")
    reverted(desk, agent="mal")
    assert live(desk) == [("p", "k", "right")]


def test_a_version_that_was_hidden_when_a_file_brought_it_does_not_come_back(
    desk: Desk, make_desk: MakeDesk, tmp_path: Path
) -> None:
    desk.save("right", "ann", key="k")
    desk.save("wrong", "mal", key="k")
    desk.forget(desk.save("wrong, too", "mal", key="k").id)
    there = tmp_path / "there"
    there.mkdir()
    other = make_desk(there)
    with desk.store.transfer().outgoing(Extract(("p",), vectors=True), desk.clock.now(), Deadline(PATIENCE)) as out:
        arrivals = [
            Arrival(replace(each, passages=()), embed(desk.encoder, None, each.content or "", Deadline(PATIENCE)))
            for each in out.versions()
        ]
    other.store.transfer().add(arrivals, other.caller("importer"), {}, other.clock.now(), Deadline(PATIENCE))
    assert live(other) == []
    other.save("wrong again", "eva", key="k")
    reverted(other, agent="eva")
    assert live(other) == []
    sound(other)


SAID = {"ann": ("right", "both"), "mal": ("wrong by mal", "wrong", "both"), "eva": ("wrong by eva", "wrong", "both")}
ACT = st.tuples(
    st.sampled_from(("ann", "mal", "eva", "mal", "eva")),
    st.sampled_from(("agent", "agent", "tool")),
    st.sampled_from(("save", "save", "save", "forget", "restore")),
    st.sampled_from(("k", "k", "m", None)),
    st.integers(0, 29),
)


# A copy that the first revert made has savers of two notes, both of the second writer.
TAKEN_TOGETHER = [
    ("ann", "agent", "save", "k", 0),
    ("ann", "agent", "forget", "k", 0),
    ("mal", "agent", "save", None, 1),
    ("mal", "tool", "save", "k", 1),
    ("eva", "agent", "save", "k", 0),
    ("eva", "agent", "save", "k", 1),
]


@given(st.lists(ACT, min_size=3, max_size=12), st.booleans())
@example(acts=TAKEN_TOGETHER, eva_first=True)
@settings(max_examples=100, deadline=None, suppress_health_check=[HealthCheck.too_slow])
def test_nothing_that_the_reverted_alone_have_said_is_live(acts: list[tuple[Any, ...]], eva_first: bool) -> None:
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder:
        desk = Desk(Path(folder))
        try:
            ids, honest = list[str](), set[str]()
            for who, origin, what, key, number in acts:
                caller = desk.caller(who, origin=origin)
                if what == "save":
                    text = SAID[who][number % len(SAID[who])]
                    ids.append(desk.save(text, who, key=key, origin=origin).id)
                    honest |= {text} if who == "ann" else set()
                elif ids and what == "forget":
                    selection = Selection(("p",), (ids[number % len(ids)],))
                    desk.notes.forget(selection, caller, Deadline(PATIENCE), dry_run=False)
                elif ids:
                    desk.notes.restore((ids[number % len(ids)],), caller, Deadline(PATIENCE))
            for writer in ("eva", "mal") if eva_first else ("mal", "eva"):
                reverted(desk, agent=writer)
            assert {text for _, _, text in live(desk)} <= honest
            sound(desk)
        finally:
            desk.close()
