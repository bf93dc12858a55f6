from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from tests.conftest import Desk


def test_tags_must_all_be_there(desk: Desk) -> None:
    ab, abc = desk.save("1", tags=("a", "b")).id, desk.save("2", tags=("a", "b", "c")).id
    desk.save("3", tags=("a",))
    assert set(desk.found("x", tags=("a", "b"))) == {ab, abc}
    assert desk.found("x", tags=("a", "b", "c")) == [abc]
    assert desk.found("x", tags=("a", "d")) == []


def test_any_of_the_agents_will_do_and_every_saver_counts(desk: Desk) -> None:
    one, both = desk.save("1", "ann").id, desk.save("2", "ann").id
    desk.save("2", "bob")
    desk.save("3", "cid")
    assert set(desk.found("x", agents=("ann",))) == {one, both}
    assert desk.found("x", agents=("bob",)) == [both]
    assert set(desk.found("x", agents=("ann", "bob"))) == {one, both}
    assert desk.found("x", agents=("nobody",)) == []


def test_any_of_the_kinds_will_do(desk: Desk) -> None:
    note, fact = desk.save("1").id, desk.save("2", kind="fact").id
    desk.save("3", kind="todo")
    assert set(desk.found("x", kinds=("note", "fact"))) == {note, fact}
    assert desk.found("x", kinds=("fact",)) == [fact]


VALUES: list[tuple[Any, Any, bool]] = [
    (1, 1, True),
    (1, 1.0, True),
    (1.0, 1, True),
    (0, -0.0, True),
    (1, True, False),
    (0, False, False),
    (True, True, True),
    (1, "1", False),
    (None, None, True),
    (None, False, False),
    ("", None, False),
    (1.5, 1.5, True),
    (2**63, 2**63, True),
    (2**63, 2.0**63, True),
    (10**30, 10**30, True),
    ("é", "é", True),
    ("e\u0301", "é", False),
    ([1, 2], [1, 2], True),
    ([1, 2], [2, 1], False),
    ([1, 2], [1.0, 2.0], True),
    ([], {}, False),
    ({"a": 1, "b": 2}, {"b": 2, "a": 1}, True),
    ({"a": {"b": [True, {"c": 1.0}]}}, {"a": {"b": [True, {"c": 1}]}}, True),
    ({"a": {"b": [True]}}, {"a": {"b": [1]}}, False),
    ({"a": 1}, {"a": 1, "b": None}, False),
    ("x" * 5000, "x" * 5000, True),
]


@pytest.mark.parametrize(("stored", "asked", "equal"), VALUES)
def test_metadata_is_equal_as_json_is(desk: Desk, *, stored: Any, asked: Any, equal: bool) -> None:
    kept = desk.save("note", metadata={"key": stored}).id
    assert desk.found("note", metadata={"key": asked}) == ([kept] if equal else [])
    assert desk.found("note", metadata={"other": asked}) == []
    assert desk.note(kept).metadata["key"] == stored


@pytest.mark.parametrize("key", ["ключ", "键", "é", "", " ", "a.b", "$", "'", '"', "🚀", "x" * 300])
def test_a_metadata_key_may_be_any_text(desk: Desk, key: str) -> None:
    kept = desk.save("note", metadata={key: 1}).id
    assert desk.found("note", metadata={key: 1}) == [kept]
    assert desk.note(kept).metadata == {key: 1}


def test_keys_in_composed_and_decomposed_form_are_two_keys(desk: Desk) -> None:
    kept = desk.save("note", metadata={"é": 1, "e\u0301": 2}).id
    assert desk.note(kept).metadata == {"é": 1, "e\u0301": 2}
    assert desk.found("note", metadata={"é": 2}) == []


def test_all_metadata_must_be_equal(desk: Desk) -> None:
    both = desk.save("1", metadata={"a": 1, "b": 2}).id
    desk.save("2", metadata={"a": 1, "b": 3})
    assert desk.found("x", metadata={"a": 1, "b": 2}) == [both]


def test_since_is_inclusive_and_until_is_not(desk: Desk) -> None:
    at = desk.clock.now()
    tick = timedelta(microseconds=1)
    kept = desk.save("note").id
    assert desk.found("note", since=at) == [kept]
    assert desk.found("note", since=at + tick) == []
    assert desk.found("note", until=at) == []
    assert desk.found("note", until=at + tick) == [kept]
    assert desk.found("note", since=at, until=at + tick) == [kept]
    assert desk.found("note", since=at, until=at) == []


def test_the_time_of_a_note_is_when_it_happened_if_that_is_known(desk: Desk) -> None:
    at = desk.clock.now()
    then = at - timedelta(days=30)
    kept = desk.save("note", occurred_at=then).id
    assert desk.found("note", until=at) == [kept]
    assert desk.found("note", since=then, until=then + timedelta(days=1)) == [kept]
    assert desk.found("note", since=at) == []


def test_all_conditions_hold_together(desk: Desk) -> None:
    common: dict[str, Any] = {"tags": ("t",), "metadata": {"m": 1}, "kind": "fact"}
    wanted = desk.save("1", "ann", **common).id
    desk.save("2", "bob", **common)
    desk.save("3", "ann", **common | {"tags": ()})
    desk.save("4", "ann", **common | {"metadata": {"m": 2}})
    desk.save("5", "ann", **common | {"kind": "note"})
    asked: dict[str, Any] = {"agents": ("ann",), "tags": ("t",), "metadata": {"m": 1}, "kinds": ("fact",)}
    assert desk.found("x", **asked, since=desk.clock.now()) == [wanted]
    assert desk.found("x", **asked, until=desk.clock.now()) == []


@pytest.mark.parametrize("mode", ["hybrid", "semantic", "lexical"])
def test_conditions_come_before_the_best_are_taken(desk: Desk, mode: Any) -> None:
    for number in range(60):
        desk.save(f"the needle of the haystack {number}")
    wanted = desk.save("something else, though it names the needle once", tags=("t",)).id
    assert desk.found("the needle of the haystack", mode=mode, top_k=1, tags=("t",)) == [wanted]


def test_conditions_see_what_later_savers_added(desk: Desk) -> None:
    kept = desk.save("note", "ann").id
    desk.save("note", "bob", tags=("late",), metadata={"late": True})
    assert desk.found("x", tags=("late",), metadata={"late": True}, agents=("bob",)) == [kept]


def test_more_filtered_rows_than_one_statement_takes_are_searched(desk: Desk) -> None:
    for number in range(450):
        desk.save(f"filler {number}", tags=("t",))
    last = desk.save("the one that is looked for", tags=("t",)).id
    assert desk.found("the one that is looked for", tags=("t",), top_k=1) == [last]
