"""A purged message takes the summary with it that tells of it, and the name of its conversation with the last one."""

from __future__ import annotations

from tests.conftest import PATIENCE, Desk
from tests.sentinels import looked_for
from tests.unit.stores.test_purge import clean, condemned, purge

from agora.model.deadline import Deadline
from agora.model.message import MessageDraft, Summary


def say(desk: Desk, text: str, session: str = "talk") -> str:
    draft = MessageDraft("p", session, "user", text)
    kept = desk.store.conversations().append(draft, desk.caller(), None, desk.clock.now(), Deadline(PATIENCE))
    return kept.id


def summarize(desk: Desk, text: str, last: int, replaces: int, session: str = "talk") -> None:
    summary = Summary(text, 1, last, 0, "agent", desk.clock.now())
    with desk.store.conversations().read(Deadline(PATIENCE)) as reading:
        seen = reading.sequence
    desk.store.conversations().summarize(
        "p", session, summary, replaces, seen, desk.caller(), desk.clock.now(), Deadline(PATIENCE)
    )


def test_a_purged_message_takes_every_summary_of_its_conversation_along_once_one_covers_it(desk: Desk) -> None:
    say(desk, "good morning to you")
    secret = say(desk, "the password hint is wolframite")
    later = say(desk, "and that was all of it")
    summarize(desk, "they said good morning", 1, 0)
    summarize(desk, "they said good morning and wolframite", 2, 1)
    desk.forget(later)
    assert [len(group) for group in condemned(desk).groups] == [1]
    desk.forget(secret)
    assert sorted(len(group) for group in condemned(desk, secret).groups) == [3]
    assert clean(purge(desk))
    assert looked_for(desk.folder, {"word": b"wolframite", "first": b"they said"}) == {}
    assert desk.sql("SELECT count(*) FROM summaries") == [(0,)]
    assert desk.problems() == []
    # The next one gets a number of its own.
    say(desk, "go on")
    assert desk.sql("SELECT seq FROM items WHERE seq > 0 ORDER BY seq") == [(1,), (4,)]
    summarize(desk, "anew", 1, 0)
    assert desk.problems() == []


def test_the_name_of_a_conversation_goes_with_the_last_of_its_messages(desk: Desk) -> None:
    only = say(desk, "nobody else said anything", session="zephyrine-talk")
    say(desk, "another one")
    desk.forget(only)
    assert clean(purge(desk))
    assert desk.sql("SELECT session FROM conversations") == [("talk",)]
    assert looked_for(desk.folder, {"name": b"zephyrine-talk"}) == {}
    assert desk.problems() == []
