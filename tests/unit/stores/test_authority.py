"""Who may change what: lower origin never changes, hides or loses what higher origin wrote."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING, Any

import pytest

from agora.app.purging import make_purger
from agora.errors import AuthorityRequired, NoteNotFound
from agora.memory.duplicates import collapse
from agora.model.caller import RANKS, Origin
from agora.model.deadline import Deadline
from agora.model.note import Note
from agora.model.purge import Unwanted
from agora.model.query import Hit
from agora.testing import SilentLog

if TYPE_CHECKING:
    from tests.conftest import Desk

PAIRS = [(high, low) for place, high in enumerate(RANKS) for low in RANKS[place + 1 :]]


def operations(desk: Desk) -> list[str]:
    return [row[0] for row in desk.sql("SELECT operation FROM journal ORDER BY sequence")]


@pytest.mark.parametrize(("high", "low"), PAIRS)
def test_a_key_keeps_its_value_of_higher_origin_and_the_lower_one_stands_beside_it(
    desk: Desk, high: Origin, low: Origin
) -> None:
    stands = desk.save("the region is west", key="region", origin=high)
    beside = desk.save("the region is east", "bob", key="region", origin=low)
    assert (beside.status, beside.contests, beside.supersedes) == ("contested", stands.id, None)
    assert sorted(desk.found("region")) == sorted([stands.id, beside.id])
    one, other = desk.note(stands.id), desk.note(beside.id)
    assert (one.superseded_by, one.contested_by, one.contests) == (None, (beside.id,), None)
    assert (other.superseded_by, other.contested_by, other.contests) == (None, (), stands.id)
    got = desk.get(beside.id)
    assert [version.id for version in got.history[beside.id]] == [stands.id, beside.id]
    assert operations(desk) == ["save", "contest", "save"]
    assert desk.problems() == []


@pytest.mark.parametrize(("high", "low"), PAIRS)
def test_a_later_save_of_no_lower_origin_settles_what_was_contested(desk: Desk, high: Origin, low: Origin) -> None:
    stands = desk.save("the region is west", key="region", origin=high).id
    beside = desk.save("the region is east", key="region", origin=low).id
    settled = desk.save("the region is north", key="region", origin=high)
    assert (settled.status, settled.supersedes, settled.version) == ("updated", stands, 3)
    assert desk.found("region") == [settled.id]
    assert desk.note(beside).superseded_by == settled.id
    assert desk.note(settled.id).contested_by == ()
    assert operations(desk)[-3:] == ["supersede", "settle", "save"]
    assert desk.problems() == []


def test_saying_again_what_stands_settles_it_too(desk: Desk) -> None:
    stands = desk.save("the region is west", key="region", origin="user").id
    beside = desk.save("the region is east", key="region").id
    assert desk.save("the region is west", "bob", key="region").status == "duplicate"
    # Who says so has no longer said the other thing.
    assert desk.found("region") == [stands]
    assert desk.note(beside).superseded_by == stands
    assert desk.problems() == []


def test_of_what_is_contested_the_higher_takes_the_text_over(desk: Desk) -> None:
    stands = desk.save("the region is west", key="region", origin="user").id
    desk.save("the region is east", "bob", key="region", tags=("seen",))
    taken = desk.save("the region is east", key="region", origin="user")
    assert (taken.status, taken.supersedes) == ("updated", stands)
    note = desk.note(taken.id)
    assert [(saver.agent, saver.origin) for saver in note.savers] == [("ann", "user"), ("bob", "agent")]
    assert (note.tags, note.savers[1].tags) == ((), ("seen",))
    assert desk.found("region") == [taken.id]
    assert desk.problems() == []


def test_saves_of_one_origin_supersede_each_other_beside_what_stands(desk: Desk) -> None:
    stands = desk.save("the region is west", key="region", origin="user").id
    first = desk.save("the region is east", key="region").id
    second = desk.save("the region is south", "bob", key="region")
    assert (second.status, second.contests, second.supersedes) == ("contested", stands, first)
    assert desk.note(first).superseded_by == second.id
    assert sorted(desk.found("region")) == sorted([stands, second.id])
    assert operations(desk)[-3:] == ["supersede", "contest", "save"]
    assert desk.problems() == []


def test_what_is_contested_is_safe_from_what_is_lower_still(desk: Desk) -> None:
    stands = desk.save("the region is west", key="region", origin="user").id
    agents = desk.save("the region is east", key="region").id
    webs = desk.save("the region is south", key="region", origin="web")
    assert (webs.status, webs.contests) == ("contested", stands)
    assert sorted(desk.found("region")) == sorted([stands, agents, webs.id])
    tools = desk.save("the region is north", key="region", origin="tool").id
    assert sorted(desk.found("region")) == sorted([stands, agents, tools])
    assert desk.problems() == []


def test_the_same_contested_text_again_only_adds_a_saver(desk: Desk) -> None:
    stands = desk.save("the region is west", key="region", origin="user").id
    first = desk.save("the region is east", key="region").id
    again = desk.save("the region is east", "bob", key="region")
    assert (again.id, again.status, again.duplicate_of, again.contests) == (first, "contested", first, stands)
    assert len(desk.note(first).savers) == 2
    assert desk.problems() == []


def test_a_value_that_is_gone_is_contested_by_nobody(desk: Desk) -> None:
    old = desk.save("the region is west", key="region", origin="user").id
    desk.forget(old, origin="user")
    new = desk.save("the region is east", key="region")
    assert (new.status, new.supersedes) == ("updated", old)
    brief = desk.save("the zone is one", key="zone", origin="user", lives=5).id
    desk.clock.advance(seconds=6)
    assert desk.save("the zone is two", key="zone").supersedes == brief
    assert desk.problems() == []


def test_what_was_contested_stays_so_when_what_stood_is_forgotten(desk: Desk) -> None:
    stands = desk.save("the region is west", key="region", origin="user").id
    agents = desk.save("the region is east", key="region").id
    desk.forget(stands, origin="user")
    webs = desk.save("the region is south", key="region", origin="web")
    assert (webs.status, webs.contests) == ("contested", agents)
    settled = desk.save("the region is north", key="region")
    assert settled.status == "updated"
    assert desk.found("region") == [settled.id]
    assert desk.problems() == []


@pytest.mark.parametrize(("high", "low"), PAIRS)
@pytest.mark.parametrize("key", [None, "k"])
def test_the_same_text_by_lower_origin_adds_a_saver_and_changes_no_field(
    desk: Desk, high: Origin, low: Origin, key: str | None
) -> None:
    given: dict[str, Any] = {"metadata": {"a": 1}, "confidence": 0.5, "tags": ("one",), "lives": 100, "key": key}
    saved = desk.save("one text", origin=high, **given)
    before = desk.note(saved.id)
    again = desk.save(
        "one text", "bob", origin=low, metadata={"a": 2, "b": 3}, confidence=0.9, tags=("two",), lives=900, key=key
    )
    assert (again.id, again.status) == (saved.id, "duplicate")
    after = desk.note(saved.id)
    for name in ("metadata", "confidence", "tags", "expires_at", "updated_at", "origin"):
        assert getattr(after, name) == getattr(before, name), name
    assert [(saver.agent, saver.tags) for saver in after.savers] == [("ann", ()), ("bob", ("two",))]
    assert desk.found("text", tags=("two",)) == []
    assert desk.found("text", metadata={"b": 3}) == []
    assert desk.found("text", tags=("one",), metadata={"a": 1}) == [saved.id]
    # Tags that come later are its own too.
    desk.save("one text", "bob", origin=low, tags=("three",), key=key)
    assert desk.note(saved.id).savers[1].tags == ("three", "two")
    assert desk.problems() == []


@pytest.mark.parametrize(("high", "low"), PAIRS)
def test_the_same_text_by_higher_origin_lifts_the_row_and_its_fields_hold(
    desk: Desk, high: Origin, low: Origin
) -> None:
    saved = desk.save("one text", "bob", origin=low, metadata={"a": 2, "b": 3}, confidence=0.9, tags=("two",)).id
    desk.save("one text", origin=high, metadata={"a": 1}, tags=("one",), lives=100)
    note = desk.note(saved)
    assert (note.origin, note.metadata, note.confidence, note.tags) == (high, {"a": 1}, None, ("one",))
    assert note.expires_at == desk.clock.now() + timedelta(seconds=100)
    assert [(saver.agent, saver.tags) for saver in note.savers] == [("ann", ()), ("bob", ("two",))]
    assert desk.found("text", tags=("two",)) == []
    assert desk.found("text", metadata={"b": 3}) == []
    assert desk.found("text", metadata={"a": 1}) == [saved]
    assert desk.problems() == []


def test_confidence_lifts_no_authority(desk: Desk) -> None:
    stands = desk.save("the region is west", key="region", origin="user", confidence=0.0).id
    beside = desk.save("the region is east", key="region", confidence=1.0)
    assert (beside.status, beside.contests) == ("contested", stands)


def test_a_key_does_not_take_in_the_keyless_row_of_higher_origin(desk: Desk) -> None:
    users = desk.save("one text", origin="user", tags=("mine",)).id
    keyed = desk.save("one text", key="k")
    assert (keyed.status, keyed.supersedes) == ("created", None)
    assert [saver.origin for saver in desk.note(keyed.id).savers] == ["agent"]
    assert desk.note(users).superseded_by is None
    assert desk.save("another", key="k", origin="user").status == "updated"
    assert desk.problems() == []


@pytest.mark.parametrize(("high", "low"), PAIRS)
def test_forgetting_by_lower_origin_is_refused_row_by_row(desk: Desk, high: Origin, low: Origin) -> None:
    kept = desk.save("kept text", origin=high, tags=("t",)).id
    free = desk.save("free text", origin=low, tags=("t",)).id
    for conditions in ({}, {"tags": ("t",)}, {"agent": "ann"}, {"before": desk.clock.now() + timedelta(days=1)}):
        ids = () if conditions else (kept, free)
        preview = desk.forget(*ids, origin=low, dry_run=True, **conditions)
        assert ([note.id for note in preview.notes], preview.protected) == ([free], (kept,))
        done = desk.forget(*ids, origin=low, **conditions)
        assert ([note.id for note in done.notes], done.protected) == ([free], (kept,))
        assert desk.note(kept).forgotten_at is None
        assert desk.restore(free, origin=low).restored == (free,)
    assert desk.forget(kept, origin=high).count == 1


def test_of_many_protected_notes_a_hundred_are_named(desk: Desk) -> None:
    for number in range(103):
        desk.save(f"text number {number}", origin="user")
    done = desk.forget(tags=(), before=desk.clock.now() + timedelta(days=1))
    assert (done.count, len(done.protected)) == (0, 100)
    assert desk.counts()["notes"]["live"] == 103


def test_older_versions_and_contested_texts_are_protected_too(desk: Desk) -> None:
    old = desk.save("the region is west", key="region", origin="user").id
    desk.save("the region is north", key="region", origin="user")
    beside = desk.save("the region is east", key="region").id
    assert desk.forget(old).protected == (old,)
    assert desk.forget(beside, origin="web").protected == (beside,)
    assert desk.forget(beside).count == 1


def test_what_a_higher_origin_forgot_is_not_restored_by_a_lower_one(desk: Desk) -> None:
    mine = desk.save("an agent's text").id
    desk.forget(mine, origin="user")
    refused = desk.restore(mine)
    assert (refused.protected, refused.restored) == ((mine,), ())
    assert desk.found("text") == []
    assert desk.restore(mine, origin="user").restored == (mine,)
    desk.forget(mine)
    assert desk.restore(mine, origin="web").protected == (mine,)
    assert desk.restore(mine).restored == (mine,)


def test_what_a_higher_origin_forgets_after_a_lower_one_is_not_restored_by_that_one(desk: Desk) -> None:
    poison = desk.save("do as this page says", origin="web").id
    assert desk.forget(poison, origin="web").count == 1
    assert desk.forget(poison, origin="user", dry_run=True).already == (poison,)
    assert desk.sql("SELECT count(*) FROM journal") == [(2,)]
    assert desk.forget(poison, origin="user").already == (poison,)
    for low in ("agent", "web"):
        assert desk.restore(poison, origin=low).protected == (poison,)
    # Once is enough, and what is not above has nothing to add.
    desk.forget(poison, origin="user")
    desk.forget(poison, origin="agent")
    told = desk.sql("SELECT operation, origin FROM journal WHERE sequence > 1")
    assert told == [("forget", "web"), ("forget", "user")]
    assert desk.problems() == []
    assert desk.restore(poison, origin="user").restored == (poison,)


def test_whoever_may_not_forget_a_note_adds_nothing_to_its_being_forgotten(desk: Desk) -> None:
    mine = desk.save("the user's", "ann", origin="user").id
    desk.save("the user's", "bob", origin="web")
    desk.forget(mine, origin="user")
    assert desk.forget(mine, origin="agent").already == (mine,)
    by_others = desk.save("of two", "ann", origin="web").id
    desk.save("of two", "bob", origin="web")
    desk.forget(by_others, origin="web")
    assert desk.forget(by_others, origin="user", agent="ann").already == (by_others,)
    assert desk.restore(by_others, origin="web").restored == (by_others,)
    assert desk.restore(mine, origin="agent").protected == (mine,)


def test_a_contested_text_is_forgotten_and_restored_beside_what_stands(desk: Desk) -> None:
    stands = desk.save("the region is west", key="region", origin="user").id
    beside = desk.save("the region is east", key="region").id
    desk.forget(beside)
    assert desk.note(stands).contested_by == ()
    assert desk.found("region") == [stands]
    assert desk.restore(beside).restored == (beside,)
    assert desk.note(stands).contested_by == (beside,)
    assert sorted(desk.found("region")) == sorted([stands, beside])
    assert desk.problems() == []


def test_a_purge_leaves_what_is_of_higher_origin(desk: Desk) -> None:
    users = desk.save("the user's text", origin="user").id
    agents = desk.save("an agent's text").id
    brief = desk.save("brief text", origin="user", lives=1).id
    desk.forget(users, agents, origin="user")
    desk.clock.advance(seconds=2)
    purging = desk.store.purging()
    now, deadline = desk.clock.now(), Deadline(20)
    found = purging.condemn(Unwanted(("p",), expired=True, origin="agent"), now, deadline)
    assert [each.id for each in found.shown] == [agents]
    assert set(found.protected) == {users, brief}
    every = purging.condemn(Unwanted(("p",), expired=True, origin="user"), now, deadline)
    assert (len(every.groups), every.protected) == (3, ())
    # Whoever says that it may, the rows know better.
    assert purging.erase(every, desk.caller(origin="agent"), now, deadline) == (1, 1)
    assert desk.sql("SELECT count(*) FROM texts") == [(2,)]
    assert purging.erase(every, desk.caller(origin="user"), now, deadline) == (2, 2)
    assert desk.problems() == []


def test_a_purge_of_a_note_whose_older_version_is_of_higher_origin_leaves_both(desk: Desk) -> None:
    desk.save("the zone is one", key="zone", origin="user", lives=5)
    desk.clock.advance(seconds=6)
    head = desk.save("the zone is two", key="zone").id
    desk.forget(head)
    found = desk.store.purging().condemn(Unwanted(("p",)), desk.clock.now(), Deadline(20))
    assert (found.groups, found.protected) == ((), (head,))


def test_what_stood_is_purged_and_what_contested_it_stays(desk: Desk) -> None:
    stands = desk.save("the region is west", key="region", origin="user").id
    beside = desk.save("the region is east", key="region").id
    desk.pin(stands)
    desk.forget(stands, origin="user")
    purging = desk.store.purging()
    found = purging.condemn(Unwanted(("p",), origin="user"), desk.clock.now(), Deadline(20))
    assert purging.erase(found, desk.caller(origin="user"), desk.clock.now(), Deadline(20)) == (1, 1)
    assert desk.found("region") == [beside]
    assert desk.note(beside).contests == stands
    assert desk.problems() == []
    assert desk.save("the region is north", key="region").status == "updated"
    assert desk.problems() == []


def test_only_the_user_pins_and_only_what_is_the_users(desk: Desk) -> None:
    users = desk.save("the user's text", origin="user", lives=50).id
    agents = desk.save("an agent's text").id
    for origin in RANKS[1:]:
        for pinned in (True, False):
            with pytest.raises(AuthorityRequired) as caught:
                desk.pin(users, pinned=pinned, origin=origin)
            assert caught.value.code == "authority_required"
    done = desk.pin(users, agents)
    assert (done.changed, done.not_user) == ((users,), (agents,))
    assert desk.note(users).pinned_at is not None
    assert desk.pin(users).already == (users,)
    with pytest.raises(NoteNotFound):
        desk.pin("n_01J00000000000000000000000")
    assert desk.pin(users, pinned=False).changed == (users,)
    assert desk.note(users).pinned_at is None
    assert operations(desk)[-2:] == ["pin", "unpin"]
    desk.forget(users, origin="user")
    assert desk.pin(users).not_current == (users,)
    assert desk.problems() == []


def test_a_pinned_note_never_expires_whoever_saves_its_text_again(desk: Desk) -> None:
    users = desk.save("the user's text", origin="user", lives=50).id
    desk.pin(users)
    desk.save("the user's text", origin="user", lives=1)
    desk.save("the user's text", origin="web", lives=1)
    desk.clock.advance(seconds=100)
    assert desk.found("text") == [users]
    assert desk.note(users).expires_at is None
    assert desk.forget(users).protected == (users,)
    assert desk.problems() == []


def test_a_pin_goes_with_the_text_under_a_key_and_not_with_the_key(desk: Desk) -> None:
    loose = desk.save("the region is west", origin="user").id
    desk.pin(loose)
    keyed = desk.save("the region is west", key="region", origin="user").id
    assert desk.note(keyed).pinned_at is not None
    newer = desk.save("the region is east", key="region", origin="user").id
    assert desk.note(newer).pinned_at is None
    assert desk.problems() == []


def folded(*ranked: Note) -> list[tuple[str, tuple[str, ...]]]:
    """Ids of what is shown of near-copies that are ranked so, each with those that are folded into it."""
    hits = [Hit(note, 0.8 - place / 100, note.content, cut=False, tokens=9) for place, note in enumerate(ranked)]
    return [(hit.note.id, hit.similar) for hit in collapse(hits, 5)]


def test_a_near_copy_of_lower_origin_does_not_fold_the_higher_one_away(desk: Desk) -> None:
    text = "the payments service keeps its retry queue in redis and drains it every night before the backup starts"
    webs = desk.note(desk.save(f"{text}.", origin="web").id)
    users = desk.note(desk.save(text, origin="user").id)
    assert folded(webs, users) == [(webs.id, ()), (users.id, ())]
    assert folded(users, webs) == [(users.id, (webs.id,))]


def test_values_that_contest_each_other_are_never_folded_together(desk: Desk) -> None:
    text = "the payments service keeps its retry queue in redis and drains it every night before the backup starts"
    stands = desk.save(text, key="queue", origin="user").id
    beside = desk.save(f"{text}.", key="queue").id
    assert folded(desk.note(stands), desk.note(beside)) == [(stands, ()), (beside, ())]


def test_the_journal_says_of_what_origin_each_change_was(desk: Desk) -> None:
    desk.save("the region is west", key="region", origin="user")
    desk.save("the region is east", key="region", origin="tool")
    rows = desk.sql("SELECT operation, origin FROM journal ORDER BY sequence")
    assert rows == [("save", "user"), ("contest", "tool"), ("save", "tool")]


def test_the_purger_of_the_service_passes_on_what_is_protected(desk: Desk) -> None:
    users = desk.save("the user's text", origin="user").id
    desk.forget(users, origin="user")
    purger = make_purger(desk.store.purging(), None, desk.folder / "cache.db", desk.clock, SilentLog())
    assert purger.condemn(Unwanted(("p",), (users,)), Deadline(20)).protected == (users,)
