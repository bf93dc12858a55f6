"""A purge leaves no byte of what was stated, and what a statement had replaced does not come back."""

from __future__ import annotations

import pytest
from tests.conftest import PATIENCE, Desk
from tests.sentinels import looked_for
from tests.unit.stores.statements import everything, recall, tell, values
from tests.unit.stores.test_audit import reverted
from tests.unit.stores.test_purge import clean, condemned, purge, purger

from agora.errors import NoteNotFound
from agora.model.deadline import Deadline


def by_user(desk: Desk) -> None:
    doomed = condemned(desk, origin="user")
    assert clean(purger(desk).purge(doomed, desk.caller("root", origin="user"), Deadline(PATIENCE)))


def rows_of(desk: Desk) -> list[tuple[object, ...]]:
    return desk.sql("SELECT value, same, valid_to, expires_at, rank FROM facts ORDER BY item_id")


def test_no_byte_of_a_purged_fact_is_left_in_any_file(desk: Desk) -> None:
    tell(desk, "something else that stays", key="other", subject="somebody")
    needles = {"value": b"wolframite", "key": b"zephyrine", "subject": b"xylographic", "quote": b"quixotic"}
    words = {name: word.decode() for name, word in needles.items()}
    told = tell(desk, words["value"], key=words["key"], subject=words["subject"], quote=f"{words['quote']} as it was")
    later = tell(desk, f"{words['value']} 2", key=words["key"], subject=words["subject"])
    desk.store.compact(force=True)
    desk.forget(told.id, later.id)
    assert looked_for(desk.folder, needles).keys() == needles.keys()
    assert clean(purge(desk))
    assert looked_for(desk.folder, needles) == {}
    assert desk.sql("SELECT (SELECT count(*) FROM facts), (SELECT count(*) FROM fact_slots)") == [(1, 1)]
    assert desk.problems() == []
    assert desk.store.purging().remains(Deadline(PATIENCE)) == {}


def test_what_a_purged_fact_had_replaced_does_not_come_back(desk: Desk) -> None:
    tell(desk, 5432)
    desk.clock.advance(seconds=10)
    secret = tell(desk, "wolframite")
    desk.clock.advance(seconds=10)
    desk.forget(secret.id)
    assert values(desk) == []
    assert clean(purge(desk, secret.id))
    assert values(desk) == []
    assert desk.found("5432 port") == []
    assert rows_of(desk)[1] == (None, None, None, None, 1)
    tell(desk, 6432, since=-5)
    assert values(desk) == [6432]
    # What began before the purged one holds only until that began.
    tell(desk, 7432, since=-15)
    assert values(desk) == [6432]
    assert desk.problems() == []


def test_a_purged_fact_keeps_the_authority_that_it_had(desk: Desk) -> None:
    tell(desk, 1, "ann")
    desk.clock.advance(seconds=1)
    secret = tell(desk, 2, "root", origin="user")
    desk.clock.advance(seconds=1)
    tell(desk, 2, "bob", until=3600)
    desk.clock.advance(seconds=1)
    desk.forget(secret.id, origin="user")
    by_user(desk)
    assert desk.sql("SELECT rank FROM facts WHERE value IS NULL ORDER BY item_id") == [(0,)]
    assert desk.problems() == []


def test_equal_statements_that_it_stands_for_and_the_end_of_it_go_with_a_fact(desk: Desk) -> None:
    first = tell(desk, "tea", multi=True)
    desk.clock.advance(seconds=10)
    second = tell(desk, "tea", until=3600)
    assert second.id != first.id
    tell(desk, "milk")
    end = tell(desk, "tea", since=1, until=1)
    desk.clock.advance(seconds=10)
    assert values(desk) == ["milk"]
    desk.forget(second.id)
    doomed = condemned(desk)
    assert {len(group) for group in doomed.groups} == {3}
    assert clean(purge(desk))
    assert values(desk) == ["milk"]
    assert looked_for(desk.folder, {"tea": b"tea"}) == {}
    assert end.id not in str(everything(desk))
    assert desk.problems() == []


def test_a_fact_that_was_taken_back_goes_wholly(desk: Desk) -> None:
    tell(desk, 5432, "ann")
    desk.clock.advance(seconds=10)
    tell(desk, "wrong", "mal")
    reverted(desk, agent="mal")
    assert values(desk) == [5432]
    assert clean(purge(desk))
    assert [row[0] for row in rows_of(desk)] == ["5432"]
    assert values(desk) == [5432]
    assert desk.problems() == []


def test_only_facts_whose_own_expiry_has_passed_are_expired(desk: Desk) -> None:
    replaced = tell(desk, 1)
    desk.clock.advance(seconds=10)
    ended = tell(desk, 2, until=10)
    over = tell(desk, "gone", key="lock", lives=10)
    desk.clock.advance(seconds=20)
    assert values(desk) == []
    assert condemned(desk, expired=True, before=desk.clock.now()).shown[0].id == over.id
    assert clean(purge(desk, expired=True))
    left = {each[0] for each in everything(desk)}
    assert left == {replaced.id, ended.id}
    assert desk.problems() == []


def test_history_can_be_forgotten_by_id_and_then_purged_alone(desk: Desk) -> None:
    replaced = tell(desk, "wolframite")
    desk.clock.advance(seconds=10)
    ended = tell(desk, "zephyrine", until=10)
    desk.clock.advance(seconds=20)
    assert desk.forget(replaced.id, ended.id).count == 2
    assert {stands.fact.value for stands in recall(desk, include_history=True).history} == {""}
    assert desk.restore(ended.id).restored == (ended.id,)
    assert clean(purge(desk))
    assert [each[2] for each in everything(desk)] == ["zephyrine"]
    assert looked_for(desk.folder, {"value": b"wolframite"}) == {}
    with pytest.raises(NoteNotFound):
        condemned(desk, "f_00000000000000000000000000")
