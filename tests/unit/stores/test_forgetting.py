from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

import pytest

from agora.errors import NamespaceDenied
from agora.model.deadline import Deadline
from agora.model.selection import Selection
from agora.stores.sqlite.fulltext import put_back

if TYPE_CHECKING:
    from tests.conftest import Desk, MakeDesk

    from agora.model.selection import Forgotten


def ids(done: Forgotten) -> list[str]:
    return [note.id for note in done.notes]


def test_a_dry_run_tells_what_would_go_and_changes_nothing(desk: Desk) -> None:
    kept = desk.save("stays", tags=("t",)).id
    before = desk.sql("SELECT max(sequence) FROM journal")
    seen = desk.forget(kept, dry_run=True)
    assert (seen.count, ids(seen), seen.dry_run) == (1, [kept], True)
    assert desk.found("stays") == [kept]
    assert desk.sql("SELECT max(sequence) FROM journal") == before


def test_a_dry_run_and_the_run_itself_choose_the_same(desk: Desk) -> None:
    for number in range(5):
        desk.save(f"note {number}", "ann" if number % 2 else "bob", tags=("t",) if number < 3 else ())
    for conditions in ({"tags": ("t",)}, {"agent": "ann"}, {"agent": "bob", "tags": ("t",)}, {}):
        seen, done = desk.forget(dry_run=True, **conditions), desk.forget(**conditions)
        assert (seen.count, ids(seen)) == (done.count, ids(done))
        desk.restore(*ids(done))


def test_a_forgotten_note_is_hidden_from_everything_and_keeps_its_reason(desk: Desk) -> None:
    gone = desk.save("secret plan of ours").id
    done = desk.forget(gone, reason="asked to")
    assert (done.count, done.dry_run) == (1, False)
    for mode in ("hybrid", "semantic", "lexical"):
        assert desk.found("secret plan", mode=mode) == []
    assert desk.get(gone).forgotten == (gone,)
    assert desk.note(gone).forget_reason == "asked to"
    assert desk.counts()["notes"]["forgotten"] == 1
    assert desk.counts()["agents"] == {}
    assert desk.save("secret plan of theirs").related == ()


def test_ids_that_are_unknown_or_forgotten_already_are_told_apart(desk: Desk) -> None:
    one, two = desk.save("one").id, desk.save("two").id
    desk.forget(two)
    done = desk.forget(one, two, "n_nothing", one)
    assert (ids(done), done.already, done.unknown) == ([one], (two,), ("n_nothing",))


def test_a_superseded_version_can_be_forgotten_by_id(desk: Desk) -> None:
    old, new = desk.save("A", key="k").id, desk.save("B", key="k").id
    assert ids(desk.forget(old)) == [old]
    assert desk.get(old, new).forgotten == (old,)
    assert desk.found("A B") == [new]
    assert desk.restore(old).superseded == (old,)


def test_conditions_choose_current_versions_only(desk: Desk) -> None:
    old = desk.save("A", key="k", tags=("t",)).id
    new = desk.save("B", key="k", tags=("t",)).id
    assert ids(desk.forget(tags=("t",))) == [new]
    assert desk.note(old).forgotten_at is None


def test_all_tags_must_be_there(desk: Desk) -> None:
    both = desk.save("both", tags=("a", "b")).id
    desk.save("a alone", tags=("a",))
    assert ids(desk.forget(tags=("a", "b"), dry_run=True)) == [both]
    assert desk.forget(tags=("a", "c"), dry_run=True).count == 0


def test_an_agent_forgets_what_it_alone_saved(desk: Desk) -> None:
    mine = desk.save("mine", "ann").id
    ours = desk.save("ours", "ann").id
    desk.save("ours", "bob")
    desk.save("yours", "bob")
    done = desk.forget(agent="ann")
    assert (ids(done), done.shared) == ([mine], 1)
    assert desk.found("ours", mode="lexical") == [ours]


def test_an_agent_in_two_sessions_is_still_alone(desk: Desk) -> None:
    mine = desk.save("mine", "ann", session="s1").id
    desk.save("mine", "ann", session="s2")
    assert ids(desk.forget(agent="ann")) == [mine]


def test_an_unknown_agent_chooses_nothing(desk: Desk) -> None:
    desk.save("x")
    assert desk.forget(agent="nobody").count == 0


def test_before_is_when_it_happened_else_when_it_was_saved_and_excludes_the_instant(desk: Desk) -> None:
    now = desk.clock.now()
    long_ago = desk.save("happened long ago", occurred_at=now - timedelta(days=9)).id
    at_it = desk.save("saved now").id
    desk.clock.advance(days=1)
    ahead = desk.save("will happen", occurred_at=now + timedelta(days=9)).id
    assert ids(desk.forget(before=now, dry_run=True)) == [long_ago]
    assert ids(desk.forget(before=now + timedelta(microseconds=1), dry_run=True)) == [long_ago, at_it]
    assert ids(desk.forget(before=now + timedelta(days=10), dry_run=True)) == [long_ago, at_it, ahead]


def test_conditions_combine(desk: Desk) -> None:
    now = desk.clock.now()
    old: dict[str, Any] = {"occurred_at": now - timedelta(days=1)}
    wanted = desk.save("1", "ann", tags=("t",), **old).id
    desk.save("2", "ann", tags=("t",))
    desk.save("3", "ann", **old)
    desk.save("4", "bob", tags=("t",), **old)
    assert ids(desk.forget(tags=("t",), agent="ann", before=now)) == [wanted]


def test_ids_beside_conditions_must_meet_them(desk: Desk) -> None:
    one, two = desk.save("1", tags=("t",)).id, desk.save("2").id
    done = desk.forget(one, two, tags=("t",))
    assert (ids(done), done.unknown) == ([one], (two,))


def test_a_namespace_without_conditions_goes_as_a_whole_and_no_other(desk: Desk) -> None:
    for number in range(30):
        desk.save(f"note {number}")
    other = desk.save("elsewhere", namespace="q").id
    done = desk.forget()
    assert (done.count, len(done.notes)) == (30, 20)
    assert desk.counts("p", "q")["notes"]["live"] == 1
    assert desk.found("elsewhere", ("q",)) == [other]


def test_an_empty_or_unknown_namespace_has_nothing_to_forget(desk: Desk) -> None:
    assert desk.forget(namespace="nowhere").count == 0
    assert desk.forget("n_x", namespace="nowhere").unknown == ("n_x",)


def test_a_namespace_outside_the_scope_is_refused(desk: Desk) -> None:
    with pytest.raises(NamespaceDenied):
        desk.notes.forget(Selection(("q",)), desk.caller(), Deadline(5), dry_run=False)


def test_restore_tells_the_fate_of_each_id(desk: Desk) -> None:
    plain, live = desk.save("plain").id, desk.save("live").id
    old, _ = desk.save("A", key="k").id, desk.save("B", key="k").id
    brief = desk.save("brief", lives=5).id
    twin = desk.save("twin").id
    desk.forget(plain, old, brief, twin)
    now_live = desk.save("twin").id
    desk.clock.advance(seconds=5)
    done = desk.restore(plain, live, old, brief, twin, "n_nothing", plain)
    assert done.restored == (plain,)
    assert done.live == (live,)
    assert done.superseded == (old,)
    assert done.expired == (brief,)
    assert done.duplicates == {twin: now_live}
    assert done.unknown == ("n_nothing",)
    assert done.sequence == desk.sql("SELECT max(sequence) FROM journal")[0][0]
    assert desk.problems() == []


def test_a_restored_note_is_found_again_by_every_process_as_it_was(make_desk: MakeDesk) -> None:
    one, other = make_desk(), make_desk()
    text = "first part of a long note. " * 40 + "the needle stands at its end"
    kept = one.save(text, title="A title", tags=("t",), metadata={"a": 1}).id
    before = one.note(kept)
    assert other.found("needle") == [kept]
    other.forget(kept)
    assert one.found("needle") == []
    one.restore(kept)
    for desk in (one, other, make_desk()):
        for mode in ("semantic", "lexical"):
            assert desk.found("needle title", mode=mode) == [kept]
        assert desk.note(kept) == before
    assert one.problems() == []


def test_a_restored_keyed_head_is_the_head_again(desk: Desk) -> None:
    one = desk.save("A", key="k").id
    desk.forget(one)
    assert desk.restore(one).restored == (one,)
    assert desk.save("B", key="k").supersedes == one


def test_two_forgotten_rows_of_one_text_restore_as_one(desk: Desk) -> None:
    first = desk.save("twin").id
    desk.forget(first)
    second = desk.save("twin").id
    desk.forget(second)
    done = desk.restore(first, second)
    assert done.restored == (first,)
    assert done.duplicates == {second: first}


def test_a_forgotten_loose_row_does_not_come_back_beside_a_keyed_one(desk: Desk) -> None:
    loose = desk.save("text").id
    desk.forget(loose)
    keyed = desk.save("text", key="k").id
    assert desk.restore(loose).duplicates == {loose: keyed}


def test_a_forgotten_keyed_row_does_not_come_back_beside_a_loose_one(desk: Desk) -> None:
    keyed = desk.save("text", key="k").id
    desk.forget(keyed)
    loose = desk.save("text").id
    assert desk.restore(keyed).duplicates == {keyed: loose}
    desk.forget(loose)
    assert desk.restore(keyed).restored == (keyed,)


def test_every_step_is_in_the_journal(desk: Desk) -> None:
    one = desk.save("x").id
    desk.forget(one, reason="why")
    desk.restore(one)
    told = desk.sql(
        "SELECT j.operation, j.subject, p.after FROM journal j JOIN journal_payload p USING (sequence) ORDER BY 1"
    )
    assert [row[:2] for row in told] == [("forget", one), ("restore", one), ("save", one)]
    assert told[0][2] == '{"reason": "why"}'


def test_instants_before_1970_and_far_ahead_are_kept_to_the_microsecond(desk: Desk) -> None:
    for at in (
        datetime(1, 1, 1, tzinfo=UTC),
        datetime(1969, 12, 31, 23, 59, 59, 999999, UTC),
        datetime.max.replace(tzinfo=UTC),
    ):
        kept = desk.save(f"at {at}", occurred_at=at).id
        assert desk.note(kept).occurred_at == at
        assert desk.found(f"at {at}", since=at, until=None)[0] == kept


def test_words_of_a_hidden_note_that_a_damaged_index_still_holds_bring_nothing_back(desk: Desk) -> None:
    gone = desk.save("the harbour master is bribed").id
    old = desk.save("the harbour closes at nine", key="hours").id
    live = desk.save("the harbour closes at ten", key="hours").id
    desk.forget(gone)
    for public_id in (gone, old):
        ((row,),) = desk.sql("SELECT id FROM items WHERE public_id = ?", public_id)
        with desk.store._database.apart() as connection:
            put_back(connection, row, 1, "note", None, desk.note(public_id).content)
    assert {problem.code for problem in desk.problems()} >= {"stray_fulltext"}
    for mode in ("lexical", "hybrid"):
        assert desk.found("harbour closes master bribed nine", mode=mode) == [live]
