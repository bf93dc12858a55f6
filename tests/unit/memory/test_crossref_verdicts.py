"""Verdicts: agree, differ, superseded, single source, or none. A wrong one is worse than none."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from tests.conftest import Desk as MadeDesk

from agora.model.crossref import CrossReference, Topic, Verdict
from agora.model.deadline import Deadline

if TYPE_CHECKING:
    from tests.conftest import Desk

NOTE = "The pool in src/pay.py fails because the gateway closes idle connections after 30 seconds of silence."


def everything(desk: Desk) -> CrossReference:
    """What is said of everything there is: all the words of all texts are asked for."""
    texts = sorted({text for (text,) in desk.sql("SELECT t.content FROM texts t")})
    return desk.notes.crossref(Topic(("p",), " ".join(texts)), desk.caller("eve", session="e"), Deadline(20))


def whole(desk: Desk, found: CrossReference) -> bool:
    """Whether every note took part: one below the relevance floor is no topic."""
    return bool(found.notes == desk.counts("p")["notes"]["live"])


def judged(desk: Desk) -> list[Verdict]:
    """The verdicts on everything there is."""
    found = everything(desk)
    assert whole(desk, found), "no verdict may be missing because a note is"
    return list(found.verdicts)


def on(desk: Desk, value: str) -> Verdict | None:
    return next((verdict for verdict in judged(desk) if verdict.value == value), None)


def held(verdict: Verdict | None) -> list[tuple[str | None, str, tuple[str, ...]]]:
    assert verdict is not None
    return [(each.attribute, each.value, each.agents) for each in verdict.values]


def test_two_agents_that_give_one_attribute_of_an_anchor_two_values_differ(desk: Desk) -> None:
    desk.save("src/db.py listens on port 5432.", "ann", session="a")
    desk.clock.advance(seconds=1)
    desk.save("src/db.py uses port 5433", "bob", session="b")
    found = on(desk, "src/db.py")
    assert found is not None
    assert (found.kind, found.verdict, found.independent) == ("path", "differ", 2)
    assert held(found) == [("port", "5432", ("ann",)), ("port", "5433", ("bob",))]


def test_two_agents_that_give_it_the_same_value_agree_whatever_the_unit(desk: Desk) -> None:
    desk.save("The timeout in src/db.py is 30 s, they told me.", "ann", session="a")
    desk.save("src/db.py: timeout = 0.5 min", "bob", session="b")
    found = on(desk, "src/db.py")
    assert found is not None
    assert (found.verdict, found.independent) == ("agree", 2)
    assert [agents for _, _, agents in held(found)] == [("ann", "bob")]


def test_the_same_text_of_two_agents_is_agreement_on_what_it_names(desk: Desk) -> None:
    for agent in ("ann", "bob"):
        desk.save(NOTE, agent, session=agent)
    desk.save("src/pay.py opens a pool", "ann", session="a")
    found = on(desk, "src/pay.py")
    assert found is not None
    assert (found.verdict, found.independent) == ("agree", 2)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("src/db.py listens on port 5432", "src/pay.py listens on port 5433"),
        ("src/db.py opens a pool", "src/db.py reads the settings"),
        ("The read timeout in src/db.py is 30 s", "The write timeout in src/db.py is 60 s"),
        ("src/db.py uses port 5432", "In staging src/db.py uses port 5433"),
        ("src/db.py uses port 5432", "The port of src/db.py is not 5433"),
        ("src/db.py uses port 5432", "src/db.py should use port 5433"),
        ("src/db.py: the timeout is 30", "src/db.py: the timeout is 60 s"),
        ("src/db.py runs on version 3.11", "src/db.py runs on version 3.11.4"),
        ("In src/db.py connect() has timeout 30 s", "In src/db.py reconnect() has timeout 60 s"),
        ("fixed 3 bugs in src/db.py", "fixed 4 bugs in src/db.py"),
        ("src/db.py changed its port from 1 to 2", "src/db.py listens on port 3"),
        ("See src/db.py. The port is 5432", "See src/db.py. The port is 5433"),
    ],
)
def test_what_does_not_speak_of_the_same_has_no_verdict(desk: Desk, one: str, other: str) -> None:
    desk.save(one, "ann", session="a")
    desk.save(other, "bob", session="b")
    assert [verdict for verdict in judged(desk) if verdict.verdict in {"differ", "agree"}] == []


def test_one_agent_is_a_single_source_however_often_it_says_so_and_never_differs_from_itself(desk: Desk) -> None:
    desk.save("src/db.py uses port 5432", "ann", session="a")
    desk.save("src/db.py uses port 5433", "ann", session="other")
    found = on(desk, "src/db.py")
    assert found is not None
    assert (found.verdict, found.independent) == ("single source", 1)


def test_what_an_agent_said_last_is_what_it_says(desk: Desk) -> None:
    desk.save("src/db.py uses port 1", "ann", session="a")
    desk.clock.advance(seconds=1)
    desk.save("src/db.py listens on port 2", "ann", session="a")
    desk.save("The port of src/db.py is 2", "bob", session="b")
    found = on(desk, "src/db.py")
    assert found is not None
    assert found.verdict == "agree"
    assert {value for _, value, _ in held(found)} == {"2"}


def test_a_newer_version_of_a_key_supersedes_with_old_and_new_value(desk: Desk) -> None:
    desk.save("The gateway timeout is 30 s", "ann", session="a", key="timeout")
    desk.clock.advance(seconds=1)
    desk.save("The gateway timeout is 60 s", "bob", session="b", key="timeout")
    found = on(desk, "timeout")
    assert found is not None
    assert (found.kind, found.verdict) == ("key", "superseded")
    assert held(found) == [("gateway timeout", "30 s", ("ann",)), ("gateway timeout", "60 s", ("bob",))]


def test_where_no_single_attribute_changed_the_texts_are_the_values(desk: Desk) -> None:
    desk.save("The gateway retries quickly", "ann", session="a", key="retry")
    desk.save("The gateway waits", "bob", session="b", key="retry")
    found = on(desk, "retry")
    assert held(found) == [(None, "The gateway retries quickly", ("ann",)), (None, "The gateway waits", ("bob",))]


def test_a_key_that_two_agents_saved_alike_is_agreed_and_one_of_a_single_agent_is_not(desk: Desk) -> None:
    for agent in ("ann", "bob"):
        desk.save("The gateway timeout is 30 s", agent, session=agent, key="timeout")
    desk.save("The gateway port is 1", "ann", session="a", key="port")
    found = on(desk, "timeout")
    assert found is not None
    assert (found.verdict, found.independent) == ("agree", 2)
    single = on(desk, "port")
    assert single is not None
    assert (single.verdict, single.independent) == ("single source", 1)


def test_an_echo_is_no_second_source_and_without_reading_it_is_one(desk: Desk) -> None:
    source = desk.save(NOTE, "ann", session="a").id
    reader = desk.caller("bob", session="b")
    desk.notes.get([source], reader, Deadline(20))
    echo = desk.save("Note: " + NOTE, "bob", session="b").id
    topic = Topic(("p",), "gateway idle connections pool")
    found = desk.notes.crossref(topic, desk.caller("eve", session="e"), Deadline(20))
    (verdict,) = found.verdicts
    assert (verdict.value, verdict.verdict, verdict.independent) == ("src/pay.py", "single source", 1)
    assert [(each.agents, each.independent) for each in found.anchors] == [(("ann", "bob"), 1)]
    marks = {stated.note.id: stated.echo_of for position in found.positions for stated in position.notes}
    assert marks == {source: None, echo: source}
    # The same, and nobody has read it.
    desk.save("Again: " + NOTE, "cat", session="c")
    (verdict,) = desk.notes.crossref(topic, desk.caller("eve", session="e"), Deadline(20)).verdicts
    assert (verdict.verdict, verdict.independent) == ("agree", 2)


def test_an_echo_of_a_value_that_its_source_has_changed_since_differs_from_nobody(desk: Desk) -> None:
    source = desk.save("In our shop the timeout in src/pay.py is 30 s", "ann", session="a", key="timeout").id
    desk.notes.get([source], desk.caller("bob", session="b"), Deadline(20))
    desk.save("Note: In our shop the timeout in src/pay.py is 30 s", "bob", session="b")
    desk.save("In our shop the timeout in src/pay.py is 60 s", "ann", session="a", key="timeout")
    assert [verdict.verdict for verdict in judged(desk)] == ["superseded", "single source"]
    desk.save("src/pay.py: the timeout in our shop is 60 s", "cat", session="c")
    assert [verdict.verdict for verdict in judged(desk)] == ["superseded", "agree"]


def test_differences_come_first(desk: Desk) -> None:
    desk.save("src/pay.py timeout is 1 s, OPS-1", "ann", session="a")
    desk.save("The port of src/pay.py is 1, OPS-1", "ann", session="a")
    desk.save("src/db.py port is 1", "ann", session="a")
    desk.save("src/db.py port is 2", "bob", session="b")
    assert judged(desk)[0].verdict == "differ"


_TEXTS = st.sampled_from(
    [
        f"{place} {verb} {value}"
        for place in ("src/db.py", "src/pay.py", "OPS-12")
        for verb in ("has port", "has timeout", "has a limit of")
        for value in ("1", "2", "3 s", "3000 ms")
    ]
    + ["src/db.py is used", "gateway in src/pay.py and src/db.py"]
)
_SAVES = st.lists(st.tuples(_TEXTS, st.sampled_from(("ann", "bob", "cat"))), min_size=2, max_size=6, unique=True)


@given(saves=_SAVES, data=st.data())
@settings(max_examples=15, deadline=None)
def test_the_order_of_saves_changes_no_verdict(saves: list[tuple[str, str]], data: st.DataObject) -> None:
    shuffled = data.draw(st.permutations(saves))
    outcomes = []
    for order in (saves, shuffled):
        with tempfile.TemporaryDirectory(prefix="agora-test-", ignore_cleanup_errors=True) as folder:
            desk = MadeDesk(Path(folder))
            for text, agent in order:
                desk.save(text, agent, session=agent)
            found = everything(desk)
            complete = whole(desk, found)
            desk.close()
        assume(complete)
        outcomes.append(
            [(each.kind, each.value, each.verdict, each.independent, sorted(held(each))) for each in found.verdicts]
        )
    assert outcomes[0] == outcomes[1]
