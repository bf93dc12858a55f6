"""What different agents know about a topic: positions, timeline, anchors, changes and the caller's scope."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING, Any

import pytest

from agora.errors import NamespaceDenied, NoteNotFound
from agora.memory.crossref import CHANGES, NOTES, PER_AGENT
from agora.model.crossref import CrossReference, Topic
from agora.model.deadline import Deadline
from agora.protocol.tools.crossref import answer

if TYPE_CHECKING:
    from tests.conftest import Desk

NOTE = "The checkout fails because the payment gateway closes idle connections after 30 seconds of silence."


def ask(
    desk: Desk,
    query: str | None = None,
    *,
    agent: str = "eve",
    session: str = "e",
    also: tuple[str, ...] = (),
    namespaces: tuple[str, ...] = ("p",),
    **narrowed: Any,
) -> CrossReference:
    caller = desk.caller(agent, session=session, also=also)
    return desk.notes.crossref(Topic(namespaces, query, **narrowed), caller, Deadline(20))


def positions(found: CrossReference) -> dict[str, list[str]]:
    return {position.agent: [stated.note.id for stated in position.notes] for position in found.positions}


def listed(found: CrossReference) -> set[str]:
    return {public_id for ids in positions(found).values() for public_id in ids}


def test_an_empty_store_and_a_single_note_have_the_same_form(desk: Desk) -> None:
    nothing = ask(desk, "port")
    assert (nothing.notes, nothing.positions, nothing.timeline, nothing.anchors, nothing.verdicts) == (
        0,
        (),
        (),
        (),
        (),
    )
    assert (nothing.changes.count, nothing.changes.last_read) == (0, None)
    one = desk.save("the port is 5432", "ann").id
    found = ask(desk, "port", agent="ann")
    assert positions(found) == {"ann": [one]}
    assert [note.id for note in found.timeline] == [one]
    assert (found.anchors, found.verdicts) == ((), ())


def test_each_agent_has_its_newest_notes_first_with_their_source(desk: Desk) -> None:
    ids = []
    for n in range(PER_AGENT + 2):
        ids.append(desk.save(f"gateway retry number{n}", "ann", session="a").id)
        desk.clock.advance(seconds=1)
    other = desk.save("gateway retry elsewhere", "bob", session="b").id
    found = ask(desk, "gateway retry")
    assert positions(found) == {"bob": [other], "ann": ids[::-1][:PER_AGENT]}
    assert [position.omitted for position in found.positions] == [0, 2]
    stated = found.positions[0].notes[0]
    assert (stated.saver.client, stated.saver.session, stated.saver.origin) == ("test", "b", "agent")
    assert stated.score > 0.15


def test_a_note_that_two_agents_saved_is_the_position_of_both(desk: Desk) -> None:
    one = desk.save("gateway retry", "ann", session="a").id
    desk.save("gateway retry", "bob", session="b")
    assert positions(ask(desk, "gateway retry")) == {"ann": [one], "bob": [one]}


def test_a_long_note_is_cut_around_its_best_passage(desk: Desk) -> None:
    desk.save(f"{'filler words here. ' * 200} The gateway retry is special. {'more filler now. ' * 200}", "ann")
    stated = ask(desk, "gateway retry special").positions[0].notes[0]
    assert stated.cut
    assert "gateway retry is special" in stated.content
    assert len(stated.content) < 1000


def test_notes_that_have_nothing_to_do_with_the_question_are_left_out(desk: Desk) -> None:
    one = desk.save("gateway retry", "ann").id
    desk.save("the kitchen has a kettle", "bob")
    assert positions(ask(desk, "gateway retry")) == {"ann": [one]}


def test_the_timeline_is_in_order_of_time_and_holds_superseded_versions(desk: Desk) -> None:
    late = desk.save("gateway timeout seen", "bob", occurred_at=desk.clock.now() - timedelta(days=1)).id
    one = desk.save("gateway timeout is 30 s", "ann", key="timeout").id
    desk.clock.advance(seconds=1)
    two = desk.save("gateway timeout is 60 s", "bob", key="timeout").id
    found = ask(desk, "gateway timeout")
    assert [note.id for note in found.timeline] == [late, one, two]
    assert [note.superseded_by for note in found.timeline] == [None, two, None]
    assert one not in listed(found)


def test_of_a_long_timeline_the_newest_are_shown_and_the_rest_is_counted(desk: Desk) -> None:
    for n in range(NOTES + 5):
        desk.save(f"gateway timeout is {n} s", "ann", key="timeout")
        desk.clock.advance(seconds=1)
    found = ask(desk, "gateway timeout")
    assert len(found.timeline) == NOTES
    assert found.timeline_omitted == 5
    assert found.timeline[-1].content == f"gateway timeout is {NOTES + 4} s"


def test_forgotten_and_expired_versions_are_shown_nowhere(desk: Desk) -> None:
    one = desk.save("gateway timeout is 30 s", "ann", key="timeout").id
    two = desk.save("gateway timeout is 60 s", "ann", key="timeout").id
    desk.forget(one)
    gone = desk.save("gateway timeout is gone", "bob", lives=10).id
    desk.clock.advance(seconds=11)
    found = ask(desk, "gateway timeout")
    assert [note.id for note in found.timeline] == [two]
    assert [verdict.verdict for verdict in found.verdicts] == ["single source"]
    assert {change.id: change.title for change in found.changes.newest} == {
        one: None,
        two: "gateway timeout is 60 s",
        gone: None,
    }
    with pytest.raises(NoteNotFound, match="forgotten or expired"):
        ask(desk, id=one)


def test_anchors_are_those_of_two_notes_most_agents_first(desk: Desk) -> None:
    one = desk.save("gateway in src/pay.py, see OPS-12 and commit 1a2b3c4d5e6f", "ann").id
    two = desk.save("gateway C:\\x\\y.py and .\\src\\pay.py see OPS-12", "ann").id
    three = desk.save("gateway, commit 1A2B3C4 and src/pay.py:12, only_here()", "bob").id
    found = ask(desk, "gateway")
    assert [(each.kind, each.value, set(each.ids), each.agents) for each in found.anchors] == [
        ("path", "src/pay.py", {one, two, three}, ("ann", "bob")),
        ("commit", "1a2b3c4d5e6f", {one, three}, ("ann", "bob")),
        ("issue", "OPS-12", {one, two}, ("ann",)),
    ]


def test_a_bare_issue_number_of_another_namespace_is_another_issue(desk: Desk) -> None:
    desk.save("gateway #12 here", "ann")
    desk.save("gateway #12 there", "bob", namespace="shared")
    desk.save("gateway acme/shop#12 here", "ann")
    desk.save("gateway acme/shop#12 there", "bob", namespace="shared")
    found = ask(desk, "gateway", also=("shared",), namespaces=("p", "shared"))
    assert [each.value for each in found.anchors] == ["acme/shop#12"]


def test_an_id_finds_its_key_its_anchors_and_what_is_near(desk: Desk) -> None:
    old = desk.save("queue is slow", "ann", key="q").id
    desk.clock.advance(seconds=1)
    subject = desk.save("alpha beta gamma in src/pay.py", "ann", key="q").id
    near = desk.save("alpha beta gamma delta", "bob").id
    anchored = desk.save("totally other words about src/pay.py", "cat").id
    words = desk.save("src and pay are words of their own", "dan").id
    far = desk.save("the kitchen has a kettle", "eve").id
    for public_id in (subject, old):
        found = ask(desk, id=public_id)
        assert {subject, anchored} <= listed(found)
        assert listed(found).isdisjoint({words, far})
        assert {note.id for note in found.timeline} >= {old, subject}
    assert near in listed(ask(desk, id=subject))


def test_agents_and_since_narrow_everything(desk: Desk) -> None:
    desk.save("gateway port is 1", "ann", key="port")
    desk.clock.advance(days=1)
    middle = desk.clock.now()
    two = desk.save("gateway port is 2", "bob", key="port").id
    desk.save("gateway port is seen", "cat")
    found = ask(desk, "gateway port", agents=("bob",))
    assert positions(found) == {"bob": [two]}
    assert [note.id for note in found.timeline] == [two]
    assert {change.agent for change in found.changes.newest} == {"bob"}
    found = ask(desk, "gateway port", since=middle, agent="fay")
    assert set(positions(found)) == {"bob", "cat"}
    assert two in [note.id for note in found.timeline]
    assert all(change.at >= middle for change in found.changes.newest)
    assert [verdict.verdict for verdict in found.verdicts] == ["single source"]


def test_nothing_outside_the_scope_is_seen_by_any_path(desk: Desk) -> None:
    secret = desk.save(NOTE, "ann", namespace="secret", session="a").id
    reader = desk.caller("bob", "p", also=("secret",), session="b")
    desk.notes.get([secret], reader, Deadline(20))
    told = desk.save("Note: " + NOTE, "bob", session="b").id
    assert desk.note(told).savers[0].echo_of == secret
    found = ask(desk, "checkout gateway idle connections")
    assert positions(found) == {"bob": [told]}
    assert found.positions[0].notes[0].echo_of == "unseen"
    assert secret not in repr(answer(found))
    with pytest.raises(NoteNotFound):
        ask(desk, id=secret)
    with pytest.raises(NamespaceDenied):
        ask(desk, "x", namespaces=("secret",))
    seen = ask(desk, id=secret, also=("secret",))
    assert seen.positions[0].notes[0].echo_of in {None, secret}


def test_changes_are_those_of_others_since_the_agent_last_read(desk: Desk) -> None:
    one = desk.save("gateway note", "ann", session="a").id
    desk.save("gateway of my own", "eve", session="e")
    first = ask(desk, "gateway")
    assert first.changes.last_read is None
    assert [(change.operation, change.id, change.agent) for change in first.changes.newest] == [("save", one, "ann")]
    read_at = desk.clock.now()
    desk.clock.advance(seconds=5)
    assert ask(desk, "gateway").changes == type(first.changes)(read_at, 0, ())
    desk.forget(one)
    desk.restore(one)
    two = desk.save("gateway again", "bob", session="b").id
    # Another session of the same agent.
    later = ask(desk, "gateway", session="other")
    assert [(change.operation, change.id) for change in later.changes.newest] == [
        ("save", two),
        ("restore", one),
        ("forget", one),
    ]
    assert later.changes.last_read == read_at + timedelta(seconds=5)


def test_a_query_counts_as_reading_too_and_only_for_what_it_searched(desk: Desk) -> None:
    desk.save("gateway note", "ann", session="a")
    desk.save("gateway elsewhere", "ann", session="a", namespace="q")
    desk.query("gateway")
    assert ask(desk, "gateway", agent="ann", session="s1").changes.count == 0
    other = ask(desk, "gateway", agent="bob", also=("q",), namespaces=("p", "q"))
    assert other.changes.count == 2
    desk.save("gateway once more", "cat", session="c")
    desk.save("gateway there", "cat", session="c", namespace="q")
    seen = ask(desk, "gateway", agent="bob", namespaces=("p",))
    assert seen.changes.count == 1
    rest = ask(desk, "gateway", agent="bob", also=("q",), namespaces=("p", "q"))
    assert [change.namespace for change in rest.changes.newest] == ["q"]


def test_of_many_changes_the_newest_are_shown_and_all_are_counted(desk: Desk) -> None:
    for n in range(CHANGES + 7):
        desk.save(f"number{n}", "ann")
    found = ask(desk, "nothing")
    assert found.changes.count == CHANGES + 7
    assert [change.sequence for change in found.changes.newest] == list(range(CHANGES + 7, 7, -1))
