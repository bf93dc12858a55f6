from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from tests.conftest import Desk


def test_another_text_under_a_key_supersedes_and_keeps_the_history_and_both_authors(desk: Desk) -> None:
    one = desk.save("port is 80", "ann", key="port")
    two = desk.save("port is 81", "bob", key="port")
    assert (one.status, one.version) == ("created", 1)
    assert (two.status, two.version, two.supersedes) == ("updated", 2, one.id)
    assert desk.found("port is") == [two.id]
    got = desk.get(one.id, two.id)
    assert [note.id for note in got.notes] == [one.id, two.id]
    assert got.notes[0].superseded_by == two.id
    assert got.notes[1].supersedes == one.id
    for public_id in (one.id, two.id):
        assert [(each.id, each.savers[0].agent) for each in got.history[public_id]] == [
            (one.id, "ann"),
            (two.id, "bob"),
        ]


def test_going_back_to_an_older_text_is_a_third_version(desk: Desk) -> None:
    one = desk.save("A", key="k")
    two = desk.save("B", key="k")
    three = desk.save("A", key="k")
    assert [each.version for each in (one, two, three)] == [1, 2, 3]
    assert len({one.id, two.id, three.id}) == 3
    assert desk.found("A B") == [three.id]
    assert [each.id for each in desk.get(three.id).history[three.id]] == [one.id, two.id, three.id]


def test_the_same_text_under_the_same_key_is_one_row_with_both_savers(desk: Desk) -> None:
    one = desk.save("same", "ann", key="k")
    two = desk.save("same", "bob", key="k")
    assert (two.status, two.id, two.version) == ("duplicate", one.id, 1)
    assert [saver.agent for saver in desk.note(one.id).savers] == ["ann", "bob"]


def test_two_keys_may_hold_the_same_text(desk: Desk) -> None:
    one = desk.save("enabled", key="feature.a")
    two = desk.save("enabled", key="feature.b")
    assert one.id != two.id
    assert {one.status, two.status} == {"created"}
    # One says nothing of the other: both come back, none is folded into the other.
    assert set(desk.found("enabled")) == {one.id, two.id}


def test_a_key_in_another_namespace_is_another_key(desk: Desk) -> None:
    one = desk.save("x", key="k", namespace="p")
    two = desk.save("y", key="k", namespace="q")
    assert two.version == 1
    assert two.supersedes is None
    assert desk.note(one.id).superseded_by is None


def test_forgetting_the_head_revives_nothing_and_the_next_save_is_the_next_version(desk: Desk) -> None:
    one, two = desk.save("first text", key="k"), desk.save("second text", key="k")
    desk.forget(two.id)
    assert desk.found("first second text") == []
    three = desk.save("third text", key="k")
    assert (three.status, three.version, three.supersedes) == ("updated", 3, two.id)
    assert desk.found("first second third text") == [three.id]
    assert desk.note(two.id).forgotten_at is not None
    assert desk.get(one.id, two.id, three.id).forgotten == (two.id,)


def test_the_text_of_a_forgotten_head_saved_again_under_its_key_is_a_new_version(desk: Desk) -> None:
    one = desk.save("text", key="k")
    desk.forget(one.id)
    two = desk.save("text", key="k")
    assert (two.status, two.version, two.supersedes) == ("updated", 2, one.id)
    assert desk.found("text") == [two.id]
    assert desk.get(one.id).forgotten == (one.id,)
    assert desk.restore(one.id).superseded == (one.id,)
    assert desk.found("text") == [two.id]


def test_an_expired_head_is_superseded_by_the_next_version(desk: Desk) -> None:
    one = desk.save("text", key="k", lives=5)
    desk.clock.advance(seconds=5)
    two = desk.save("text", key="k")
    assert (two.version, two.supersedes) == (2, one.id)
    assert desk.found("text") == [two.id]
    assert desk.problems() == []


def test_a_keyed_save_takes_in_the_row_of_the_same_text_without_a_key(desk: Desk) -> None:
    loose = desk.save("port is 80", "ann", tags=("net",), metadata={"by": "ann", "unit": "tcp"})
    keyed = desk.save("port is 80", "bob", key="port", tags=("cfg",), metadata={"by": "bob"})
    assert (keyed.status, keyed.version, keyed.supersedes) == ("updated", 1, loose.id)
    note = desk.note(keyed.id)
    assert [saver.agent for saver in note.savers] == ["ann", "bob"]
    assert note.tags == ("cfg", "net")
    assert note.metadata == {"by": "bob", "unit": "tcp"}
    assert desk.found("port is 80") == [keyed.id]
    assert desk.note(loose.id).superseded_by == keyed.id
    assert desk.problems() == []


@pytest.mark.parametrize(
    ("loose", "keyed", "joined"), [(10, 20, 20), (20, 10, 20), (None, 10, None), (10, None, None), (None, None, None)]
)
def test_no_saver_of_a_text_loses_its_expiry_when_the_text_gets_a_key(
    desk: Desk, loose: int | None, keyed: int | None, joined: int | None
) -> None:
    desk.save("promised", "ann", lives=loose)
    kept = desk.save("promised", "bob", key="k", lives=keyed).id
    assert desk.note(kept).expires_at == (None if joined is None else desk.clock.now() + timedelta(seconds=joined))


def test_a_keyed_save_replaces_the_head_and_takes_in_the_loose_row_at_once(desk: Desk) -> None:
    head = desk.save("port is 80", "ann", key="port", tags=("old",), metadata={"old": 1})
    loose = desk.save("port is 81", "bob", tags=("net",))
    new = desk.save("port is 81", "cid", key="port")
    assert (new.version, new.supersedes) == (2, head.id)
    note = desk.note(new.id)
    assert [saver.agent for saver in note.savers] == ["bob", "cid"]
    # Tags and metadata of a version with another text stay with it.
    assert note.tags == ("net",)
    assert note.metadata == {}
    assert desk.found("port is 80 81") == [new.id]
    assert desk.note(loose.id).superseded_by == desk.note(head.id).superseded_by == new.id
    assert desk.problems() == []


def test_the_same_saver_of_the_loose_row_and_the_keyed_one_is_one_saver(desk: Desk) -> None:
    desk.save("mine", "ann")
    kept = desk.save("mine", "ann", key="k").id
    assert [saver.agent for saver in desk.note(kept).savers] == ["ann"]


def test_a_save_without_a_key_joins_the_keyed_row_of_its_text(desk: Desk) -> None:
    keyed = desk.save("joined", "ann", key="k")
    loose = desk.save("joined", "bob")
    assert (loose.status, loose.id) == ("duplicate", keyed.id)
    assert [saver.agent for saver in desk.note(keyed.id).savers] == ["ann", "bob"]


def test_a_save_without_a_key_joins_the_oldest_of_several_keyed_rows(desk: Desk) -> None:
    oldest = desk.save("joined", key="z")
    desk.save("joined", key="a")
    assert desk.save("joined", "bob").id == oldest.id


def test_a_key_with_many_versions_has_its_whole_history(desk: Desk) -> None:
    ids = [desk.save(f"value {n}", key="counter").id for n in range(60)]
    assert desk.found("value", mode="lexical") == [ids[-1]]
    assert [each.id for each in desk.get(ids[30]).history[ids[30]]] == ids
    assert desk.counts()["notes"]["superseded"] == 59


def test_the_changes_of_a_key_stand_in_the_journal_in_order(desk: Desk) -> None:
    one, two = desk.save("A", key="k"), desk.save("B", key="k")
    told = desk.sql("SELECT operation, subject FROM journal ORDER BY sequence")
    assert told == [("save", one.id), ("supersede", one.id), ("save", two.id)]
