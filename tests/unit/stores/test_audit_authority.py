"""One writer's changes undone where others of higher or lower origin have written too."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tests.unit.stores.test_audit import live, planned, savers, sound

from agora.maintenance.revert import Reverter
from agora.model.audit import Reverted, Writer
from agora.model.caller import Origin
from agora.model.deadline import Deadline
from agora.stores.sqlite.audit_history import ABOVE
from agora.stores.sqlite.audit_revert import SqliteReverting
from agora.testing import SilentLog

if TYPE_CHECKING:
    from tests.conftest import Desk

PATIENCE = 30.0


def reverted(desk: Desk, origin: Origin = "user", session: str = "s-eve", **writer: Any) -> Reverted:
    """Undo, as somebody called eve of this origin."""
    with SqliteReverting(desk.path, synchronous="normal", busy_timeout=10.0) as store:
        caller = desk.caller("eve", session=session, origin=origin)
        return Reverter(store, desk.clock, SilentLog()).revert(Writer(**writer), caller, Deadline(PATIENCE))


def test_what_a_writer_of_lower_origin_contested_is_withdrawn_and_what_stood_stands(desk: Desk) -> None:
    stands = desk.save("port 8080 is used", key="port", origin="user").id
    desk.save("port 1 is used", "mal", key="port", origin="tool")
    bad = desk.save("port 2 is used", "mal", key="port", origin="tool")
    assert bad.status == "contested"
    done = reverted(desk, origin="agent", agent="mal")
    assert ([(step.undoing, step.id) for step in done.done], done.left) == ([("forget", bad.id)], ())
    assert live(desk) == [("p", "port", "port 8080 is used")]
    assert (desk.note(stands).contested_by, desk.note(stands).version) == ((), 1)
    assert reverted(desk, origin="agent", agent="mal").done == ()
    sound(desk)


def test_what_somebody_else_had_contested_before_stands_beside_again(desk: Desk) -> None:
    stands = desk.save("port 8080 is used", key="port", origin="user").id
    desk.save("port 81 is used", "bob", key="port", origin="tool")
    bad = desk.save("port 2 is used", "mal", key="port", origin="tool").id
    done = reverted(desk, origin="agent", agent="mal")
    assert [(step.undoing, step.id) for step in done.done] == [("take back", bad)]
    assert live(desk) == [("p", "port", "port 8080 is used"), ("p", "port", "port 81 is used")]
    [back] = desk.note(stands).contested_by
    assert (desk.note(back).contests, savers(desk, back)) == (stands, [("bob", "s1")])
    sound(desk)


def test_whose_contested_text_became_the_value_is_withdrawn_from_it(desk: Desk) -> None:
    desk.save("port 8080 is used", key="port", origin="user")
    contested = desk.save("port 81 is used", "mal", key="port", tags=("evil",)).id
    value = desk.save("port 81 is used", "ann", key="port", origin="user").id
    assert ("mal", "s1") in savers(desk, value)
    done = reverted(desk, agent="mal")
    assert [(step.undoing, step.id) for step in done.done] == [("withdraw", value), ("forget", contested)]
    assert savers(desk, value) == [("ann", "s1")]
    assert live(desk) == [("p", "port", "port 81 is used")]
    sound(desk)


def test_a_note_without_its_highest_saver_is_what_the_next_ones_gave_and_not_pinned(desk: Desk) -> None:
    kept = desk.save("both say so", "bob", tags=("low",), metadata={"a": 1, "b": 2}, confidence=0.3).id
    desk.save("both say so", "ann", tags=("high",), metadata={"a": 9}, origin="user", session="s-ann")
    desk.pin(kept)
    before = desk.note(kept)
    assert (before.tags, before.metadata, before.confidence) == (("high",), {"a": 9}, None)
    done = reverted(desk, agent="ann")
    assert [step.undoing for step in done.done] == ["withdraw"]
    note = desk.note(kept)
    assert (note.origin, note.tags, note.metadata, note.confidence) == ("agent", ("low",), {"a": 1, "b": 2}, 0.3)
    assert (note.pinned_at, savers(desk, kept)) == (None, [("bob", "s1")])
    assert desk.found("both say so", tags=("low",)) == [kept]
    sound(desk)
    # Undone, it is the user's again.
    assert [step.undoing for step in reverted(desk, session="s-two", agent="eve").done] == ["give back"]
    note = desk.note(kept)
    assert (note.origin, note.tags, note.metadata, note.confidence) == ("user", ("high",), {"a": 9}, None)
    assert (note.pinned_at, desk.found("both say so", tags=("low",))) == (None, [])
    sound(desk)


def test_a_saver_of_lower_origin_goes_without_a_trace_on_the_note(desk: Desk) -> None:
    kept = desk.save("ann says so", "ann", tags=("good",), metadata={"a": 1}, origin="user").id
    before = desk.note(kept)
    desk.save("ann says so", "mal", tags=("evil",), metadata={"a": 2, "b": 3}, lives=60)
    assert [step.undoing for step in reverted(desk, origin="agent", agent="mal").done] == ["withdraw"]
    note = desk.note(kept)
    assert (note.savers, note.tags, note.metadata, note.expires_at) == (before.savers, ("good",), {"a": 1}, None)
    sound(desk)


def test_who_is_of_lower_origin_undoes_nothing_of_what_the_user_did(desk: Desk) -> None:
    made = desk.save("the user made this", origin="user", session="s-user").id
    shared = desk.save("an agent said this first", "bob").id
    desk.save("an agent said this first", origin="user", session="s-user")
    gone = desk.save("the user does not want this", "bob").id
    desk.forget(gone, origin="user")
    before = desk.sql("SELECT count(*) FROM journal")
    plan = planned(desk, "agent", agent="ann")
    done = reverted(desk, origin="agent", session="s-eve", agent="ann")
    assert (plan.steps, {each.id for each in plan.left}) == ((), {made, shared, gone})
    assert done.done == ()
    assert {(left.id, left.reason) for left in done.left} == {
        (made, ABOVE),
        (shared, ABOVE),
        (gone, ABOVE),
    }
    assert desk.sql("SELECT count(*) FROM journal") == before
    assert len(reverted(desk, agent="ann").done) == 3
    sound(desk)
