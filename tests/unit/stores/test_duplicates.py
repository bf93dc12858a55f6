from __future__ import annotations

import unicodedata
from datetime import timedelta
from typing import TYPE_CHECKING

import pytest

from agora.model.deadline import Deadline
from agora.ports.records import VectorsNeeded

if TYPE_CHECKING:
    from tests.conftest import Desk


def test_the_same_bytes_are_one_row_with_both_savers(desk: Desk) -> None:
    first = desk.save("the cache is cold", "ann")
    second = desk.save("the cache is cold", "bob")
    assert (first.status, second.status) == ("created", "duplicate")
    assert second.id == second.duplicate_of == first.id
    assert [saver.agent for saver in desk.note(first.id).savers] == ["ann", "bob"]
    assert desk.counts()["notes"] == {"live": 1, "superseded": 0, "forgotten": 0, "expired": 0, "purged": 0, "rows": 1}
    assert desk.counts()["agents"] == {"ann": 1, "bob": 1}


def test_the_same_saver_twice_is_one_saver(desk: Desk) -> None:
    kept = desk.save("x y z").id
    for _ in range(3):
        assert desk.save("x y z").id == kept
    assert len(desk.note(kept).savers) == 1
    assert desk.sql("SELECT times FROM savers") == [(4,)]


@pytest.mark.parametrize("session", ["s1", "s2"])
def test_another_session_of_an_agent_is_another_act_of_saving(desk: Desk, session: str) -> None:
    kept = desk.save("once").id
    desk.save("once", session=session)
    assert [saver.session for saver in desk.note(kept).savers] == sorted({"s1", session})


def test_composed_and_decomposed_forms_are_two_rows_and_both_are_found(desk: Desk) -> None:
    composed = unicodedata.normalize("NFC", "the Café is größer than the old one was")
    decomposed = unicodedata.normalize("NFD", composed)
    one, two = desk.save(composed), desk.save(decomposed)
    assert {one.status, two.status} == {"created"}
    assert two.related[0].id == one.id
    assert two.related[0].same_words
    assert desk.note(one.id).content.encode() == composed.encode()
    assert desk.note(two.id).content.encode() == decomposed.encode()
    for asked in (composed, decomposed):
        hits = desk.query(asked, mode="lexical").hits
        assert {hit.note.id for hit in hits} | {each for hit in hits for each in hit.similar} == {one.id, two.id}


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("ticket OPS-00001 is done", "ticket OPS-00002 is done"),
        ("it takes 10 s", "it takes 10 s "),
        ("A", "a"),
        ("a\nb", "a\r\nb"),
        ("1", "1.0"),
    ],
)
def test_texts_that_differ_at_all_are_two_rows(desk: Desk, one: str, other: str) -> None:
    assert desk.save(one).id != desk.save(other).id


def test_the_same_text_in_two_namespaces_is_two_rows(desk: Desk) -> None:
    assert desk.save("shared words", namespace="p").id != desk.save("shared words", namespace="q").id


def test_tags_are_joined_and_each_keeps_its_giver(desk: Desk) -> None:
    kept = desk.save("tagged", "ann", tags=("b", "a")).id
    desk.save("tagged", "bob", tags=("c", "b"))
    assert desk.note(kept).tags == ("a", "b", "c")
    given = desk.sql("SELECT tag, saver FROM item_tags ORDER BY tag, saver")
    assert given == [("a", 0), ("b", 0), ("b", 1), ("c", 1)]
    assert desk.found("tagged", tags=("a", "c")) == [kept]


def test_metadata_is_joined_and_the_first_saver_wins(desk: Desk) -> None:
    kept = desk.save("fact", "ann", metadata={"a": 1, "b": "ann"}).id
    desk.save("fact", "bob", metadata={"b": "bob", "c": [1, 2]})
    assert desk.note(kept).metadata == {"a": 1, "b": "ann", "c": [1, 2]}
    assert desk.found("fact", metadata={"c": [1, 2]}) == [kept]
    assert desk.found("fact", metadata={"b": "bob"}) == []
    # What the second one said is not lost.
    assert '"bob"' in desk.sql("SELECT given FROM savers WHERE n = 1")[0][0]


def test_confidence_fills_a_gap_and_overrides_nothing(desk: Desk) -> None:
    kept = desk.save("sure").id
    desk.save("sure", "bob", confidence=0.5)
    desk.save("sure", "cid", confidence=0.9)
    assert desk.note(kept).confidence == 0.5


@pytest.mark.parametrize(
    ("first", "second", "joined"),
    [(10, 20, 20), (20, 10, 20), (10, None, None), (None, 10, None), (None, None, None)],
)
def test_of_two_expiries_the_later_holds_and_none_is_later_than_any(
    desk: Desk, first: int | None, second: int | None, joined: int | None
) -> None:
    kept = desk.save("soon gone", lives=first).id
    desk.save("soon gone", "bob", lives=second)
    expected = None if joined is None else desk.clock.now() + timedelta(seconds=joined)
    assert desk.note(kept).expires_at == expected


def test_a_joined_expiry_counts_in_an_index_that_was_loaded_before(desk: Desk) -> None:
    kept = desk.save("gone soon", lives=10).id
    assert desk.found("gone soon", mode="semantic") == [kept]
    desk.save("gone soon", "bob", lives=100)
    desk.clock.advance(seconds=50)
    assert desk.found("gone soon", mode="semantic") == [kept]
    assert desk.found("gone soon", mode="lexical") == [kept]
    desk.clock.advance(seconds=50)
    assert desk.found("gone soon") == []


def test_a_second_save_keeps_the_birth_and_moves_the_update(desk: Desk) -> None:
    born = desk.clock.now()
    kept = desk.save("long lived").id
    desk.clock.advance(hours=1)
    desk.save("long lived", "bob")
    note = desk.note(kept)
    assert (note.created_at, note.updated_at) == (born, desk.clock.now())


def test_a_duplicate_needs_no_vectors_and_a_new_text_says_so_and_writes_nothing(desk: Desk) -> None:
    desk.save("known")
    now, deadline = desk.clock.now(), Deadline(5)
    same = desk.store.save(desk.draft("known"), desk.caller("bob"), None, now, deadline)
    assert same.status == "duplicate"
    before = desk.sql("SELECT count(*) FROM journal"), desk.sql("SELECT count(*) FROM agents")
    with pytest.raises(VectorsNeeded):
        desk.store.save(desk.draft("unknown", "elsewhere"), desk.caller("eve", "elsewhere"), None, now, deadline)
    assert (desk.sql("SELECT count(*) FROM journal"), desk.sql("SELECT count(*) FROM agents")) == before
    assert desk.sql("SELECT name FROM namespaces") == [("p",)]


def test_a_duplicate_moves_the_sequence_of_its_namespace(desk: Desk) -> None:
    first = desk.save("again")
    second = desk.save("again", "bob")
    assert first.sequence is not None
    assert second.sequence == first.sequence + 1
    assert desk.sql("SELECT sequence FROM namespace_seq") == [(second.sequence,)]


def test_a_forgotten_text_saved_again_is_a_new_row(desk: Desk) -> None:
    old = desk.save("comes back", tags=("old",)).id
    desk.forget(old)
    new = desk.save("comes back")
    assert new.status == "created"
    assert new.id != old
    assert desk.note(new.id).tags == ()
    assert desk.found("comes back") == [new.id]


def test_an_expired_text_saved_again_is_a_new_row_and_the_old_one_stays_expired(desk: Desk) -> None:
    old = desk.save("short", lives=10).id
    desk.clock.advance(seconds=10)
    new = desk.save("short")
    assert new.id != old
    assert desk.found("short") == [new.id]
    assert desk.get(old).expired == (old,)
    assert desk.restore(old).expired == (old,)
    assert desk.counts()["notes"] == {"live": 1, "superseded": 0, "forgotten": 0, "expired": 1, "purged": 0, "rows": 2}
    assert desk.problems() == []


def test_what_many_savers_give_one_text_adds_up_to_a_bound_and_costs_no_disk(desk: Desk) -> None:
    kept = desk.save("a fact", metadata={"mine": "kept"}, tags=("mine",)).id
    for number in range(40):
        given = {f"k{number}-{each}": "x" * 5_000 for each in range(3)}
        desk.save("a fact", "mal", metadata=given, tags=tuple(f"t{number}-{each}" for each in range(32)))
        desk.save("a fact", "mal", origin="web", tags=tuple(f"w{number}-{each}" for each in range(32)))
    note = desk.note(kept)
    assert len(str(note.metadata)) < 40_000
    assert (note.metadata["mine"], "mine" in note.tags, len(note.tags)) == ("kept", True, 256)
    assert len(note.savers[-1].tags) == 256
    assert desk.path.stat().st_size < 16_000_000
    again = desk.save("a fact", "bob", metadata={"small": 1})
    assert (again.status, desk.note(kept).metadata["small"]) == ("duplicate", 1)
    assert desk.problems() == []


def test_a_text_that_goes_under_a_key_keeps_its_own_metadata_and_takes_what_fits(desk: Desk) -> None:
    desk.save("a fact", "mal", metadata={f"k{each}": "x" * 10_000 for each in range(3)})
    kept = desk.save("a fact", key="k", metadata={"own": "y" * 16_000}).id
    assert sorted(desk.note(kept).metadata) == ["k0", "own"]
