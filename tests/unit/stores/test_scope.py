from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

from agora.errors import NamespaceDenied, NoteNotFound
from agora.model.deadline import Deadline
from agora.model.query import Filter, Query

if TYPE_CHECKING:
    from tests.conftest import Desk


def test_a_query_answers_from_the_named_namespaces_alone(desk: Desk) -> None:
    mine = desk.save("the plan of the project", namespace="p").id
    common = desk.save("the plan of everybody", namespace="shared").id
    desk.save("the plan of another project", namespace="q")
    for mode in ("hybrid", "semantic", "lexical"):
        assert desk.found("plan of the project", ("p",), mode=mode) == [mine]
        assert set(desk.found("plan of the project", ("p", "shared"), mode=mode)) == {mine, common}
        assert desk.found("plan", ("nowhere",), mode=mode) == []


def test_no_conditions_reach_into_another_namespace(desk: Desk) -> None:
    desk.save("theirs", "bob", "q", tags=("t",), metadata={"a": 1}, kind="fact")
    for conditions in ({"tags": ("t",)}, {"agents": ("bob",)}, {"metadata": {"a": 1}}, {"kinds": ("fact",)}):
        assert desk.found("theirs", ("p",), **conditions) == []


def test_an_id_of_another_namespace_is_unknown_by_every_path(desk: Desk) -> None:
    theirs = desk.save("their secret", "bob", "q").id
    desk.save("ours", namespace="p")
    assert desk.get(theirs, also=("shared",)).unknown == (theirs,)
    assert desk.get(theirs).notes == ()
    for dry_run in (True, False):
        done = desk.forget(theirs, dry_run=dry_run)
        assert (done.count, done.unknown, done.notes) == (0, (theirs,), ())
    with pytest.raises(NoteNotFound):
        desk.restore(theirs)
    desk.forget(theirs, namespace="q")
    with pytest.raises(NoteNotFound):
        desk.restore(theirs)
    assert desk.note(theirs, "q").forgotten_at is not None


def test_the_same_text_elsewhere_is_neither_joined_nor_named(desk: Desk) -> None:
    theirs = desk.save("the very same words", "bob", "q")
    ours = desk.save("the very same words", "ann", "p")
    assert ours.status == "created"
    assert ours.duplicate_of is None
    assert ours.related == ()
    assert theirs.id not in repr(ours)
    assert [saver.agent for saver in desk.note(ours.id).savers] == ["ann"]


def test_related_notes_are_those_the_caller_sees(desk: Desk) -> None:
    desk.save("deploy needs the token", "bob", "q")
    common = desk.save("deploy needs the token too", "bob", "shared")
    own = desk.save("deploy needs a token", "cid", "p")
    near = desk.save("deploy needs the token now", "ann", "p").related
    assert {each.id for each in near} == {common.id, own.id}
    assert {each.namespace for each in near} == {"p", "shared"}


def test_counts_tell_of_visible_namespaces_alone(desk: Desk) -> None:
    desk.save("1", "ann", "p")
    gone = desk.save("2", "eve", "q").id
    desk.save("3", "eve", "q")
    desk.forget(gone, namespace="q")
    assert desk.counts("p") == {
        "passages": 1,
        "notes": {"live": 1, "superseded": 0, "forgotten": 0, "expired": 0, "purged": 0, "rows": 1},
        "statements": {"live": 0, "history": 0, "forgotten": 0, "purged": 0, "rows": 0},
        "messages": 0,
        "conversations": 0,
        "agents": {"ann": 1},
        "more_agents": 0,
        "namespaces": {"p": 1},
        "more_namespaces": 0,
    }
    assert desk.counts("nowhere")["notes"]["rows"] == 0
    status = desk.notes.status(desk.caller(), Deadline(5))
    assert "eve" not in json.dumps(status)
    assert '"q"' not in json.dumps(status)


def test_a_namespace_outside_the_scope_is_refused_before_anything_is_read(desk: Desk) -> None:
    with pytest.raises(NamespaceDenied, match="'q'"):
        desk.notes.save(desk.draft("x", "q"), desk.caller(), Deadline(5))
    with pytest.raises(NamespaceDenied):
        desk.notes.query(Query("x", Filter(("p", "q"))), desk.caller(), Deadline(5))
    assert desk.sql("SELECT * FROM namespaces") == []


def test_counts_name_twenty_agents_and_namespaces_and_number_the_rest(desk: Desk) -> None:
    spaces = [f"space{number:02}" for number in range(25)]
    for number, space in enumerate(spaces):
        desk.save(f"note {number}", f"agent{number:02}", space)
    counts = desk.counts(*spaces)
    assert (len(counts["agents"]), counts["more_agents"]) == (20, 5)
    assert (len(counts["namespaces"]), counts["more_namespaces"]) == (20, 5)


@pytest.mark.parametrize("name", ["p q", "p' OR '1'='1", "n1", "é", "OR", '"', "p\u0301", "%", "*"])
def test_a_namespace_may_have_any_name(desk: Desk, name: str) -> None:
    desk.save("common words", namespace="p")
    own = desk.save("common words", namespace=name).id
    for mode in ("semantic", "lexical"):
        assert desk.found("common words", (name,), mode=mode) == [own]


def test_what_others_hold_of_the_same_words_changes_no_answer(desk: Desk) -> None:
    """Of words that have many passages only so many are gathered: as many as here are, wherever others lie."""
    for number in range(60):
        desk.save(f"gamma filler{number}")
    for number in range(3):
        desk.save(f"alpha first{number}")
    for number in range(55):
        desk.save(f"beta{' gamma' if number > 52 else ''} second{number}")

    def asked() -> list[tuple[str, float, int]]:
        answer = desk.query("alpha beta gamma", mode="lexical", top_k=5)
        return [(hit.note.content, hit.score, answer.omitted) for hit in answer.hits]

    alone = asked()
    for number in range(57):
        desk.save(f"alpha hidden{number}", namespace="q")
    for number in range(5):
        desk.save(f"beta hidden{number}", namespace="q")
    assert asked() == alone
