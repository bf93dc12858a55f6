from __future__ import annotations

from typing import TYPE_CHECKING, Literal

import pytest

from agora.errors import NoteNotFound

if TYPE_CHECKING:
    from tests.conftest import Desk, MakeDesk

MODES: tuple[Literal["hybrid", "semantic", "lexical"], ...] = ("hybrid", "semantic", "lexical")


@pytest.mark.parametrize("mode", MODES)
def test_a_note_lives_until_its_expiry_and_not_at_it(
    desk: Desk, mode: Literal["hybrid", "semantic", "lexical"]
) -> None:
    kept = desk.save("short lived note", lives=10).id
    desk.clock.advance(seconds=10, microseconds=-1)
    assert desk.found("short lived note", mode=mode) == [kept]
    desk.clock.advance(microseconds=1)
    assert desk.found("short lived note", mode=mode) == []


def test_an_expired_note_is_expired_by_every_path(desk: Desk) -> None:
    gone = desk.save("gone", "ann", lives=1).id
    desk.save("near gone thing", "bob")
    desk.clock.advance(seconds=1)
    assert desk.get(gone).expired == (gone,)
    assert desk.forget(gone).unknown == (gone,)
    assert desk.restore(gone).expired == (gone,)
    assert desk.counts() == {
        "passages": 2,
        "notes": {"live": 1, "superseded": 0, "forgotten": 0, "expired": 1, "purged": 0, "rows": 2},
        "statements": {"live": 0, "history": 0, "forgotten": 0, "purged": 0, "rows": 0},
        "messages": 0,
        "conversations": 0,
        "agents": {"bob": 1},
        "more_agents": 0,
        "namespaces": {"p": 1},
        "more_namespaces": 0,
    }
    assert all(near.id != gone for near in desk.save("gone again").related)


def test_forgetting_by_condition_passes_over_expired_notes(desk: Desk) -> None:
    desk.save("one", tags=("t",), lives=1)
    kept = desk.save("two", tags=("t",)).id
    desk.clock.advance(seconds=1)
    done = desk.forget(tags=("t",))
    assert [note.id for note in done.notes] == [kept]


def test_a_note_forgotten_and_then_expired_is_expired(desk: Desk) -> None:
    gone = desk.save("both", lives=10).id
    desk.forget(gone)
    assert desk.get(gone).forgotten == (gone,)
    desk.clock.advance(seconds=10)
    assert desk.get(gone).expired == (gone,)
    assert desk.restore(gone).expired == (gone,)
    assert desk.counts()["notes"] == {"live": 0, "superseded": 0, "forgotten": 0, "expired": 1, "purged": 0, "rows": 1}


def test_an_expired_version_is_not_history_to_be_restored(desk: Desk) -> None:
    old = desk.save("A", key="k", lives=5).id
    desk.save("B", key="k")
    desk.clock.advance(seconds=5)
    assert desk.restore(old).expired == (old,)
    assert desk.counts()["notes"]["superseded"] == 1


def test_expired_rows_do_not_crowd_live_ones_out_of_the_candidates(desk: Desk) -> None:
    for number in range(300):
        desk.save(f"zebra zebra crossing {number}", lives=1)
    kept = desk.save("one more zebra among many other words of no interest").id
    desk.clock.advance(seconds=1)
    for mode in MODES:
        assert desk.found("zebra crossing", mode=mode, top_k=1) == [kept]


def test_a_note_restored_after_a_twin_of_its_text_expired_comes_back(desk: Desk) -> None:
    old = desk.save("twin").id
    desk.forget(old)
    short = desk.save("twin", lives=5).id
    assert desk.restore(old).duplicates == {old: short}
    desk.clock.advance(seconds=5)
    # The expired row still holds the place of its text until somebody needs it.
    assert desk.restore(old).restored == (old,)
    assert desk.found("twin") == [old]
    assert desk.get(short).expired == (short,)
    assert desk.problems() == []


def test_a_process_that_comes_later_sees_the_same(make_desk: MakeDesk) -> None:
    first = make_desk()
    gone, kept = first.save("brief words", lives=5).id, first.save("lasting words", lives=50).id
    first.clock.advance(seconds=5)
    second = make_desk()
    for desk in (first, second):
        assert desk.found("words") == [kept]
        assert desk.get(gone).expired == (gone,)


def test_nobody_can_restore_what_nobody_forgot_and_what_is_not_there(desk: Desk) -> None:
    with pytest.raises(NoteNotFound):
        desk.restore("n_01JZZZZZZZZZZZZZZZZZZZZZZZ")
