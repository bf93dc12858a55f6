"""Facts and conversations in counts, in quotas, in backups, and in a store that moves to another encoder."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from tests.conftest import PATIENCE, Desk, MakeDesk
from tests.unit.exchange.ferry import send, take
from tests.unit.stores.moving import BOTH, Counted, move
from tests.unit.stores.statements import tell, values
from tests.unit.stores.test_allowance import bounded
from tests.unit.stores.test_conversations_purged import say, summarize
from tests.unit.stores.test_facts_taken_back import live
from tests.unit.stores.test_purge import clean, purge

from agora.errors import QuotaExceeded
from agora.memory.passages import embed
from agora.model.allowance import Allowance
from agora.model.deadline import Deadline
from agora.model.instants import to_micros
from agora.model.message import MessageDraft
from agora.stores.sqlite.backup import back_up

__all__ = ["bounded"]


def some(desk: Desk) -> None:
    """One note, facts in several states, a conversation with a summary."""
    desk.save("a note of something")
    tell(desk, 1)
    desk.clock.advance(seconds=1)
    tell(desk, 2)
    tell(desk, "over", key="lock", until=0.5)
    desk.forget(tell(desk, "hidden", key="door").id)
    desk.clock.advance(seconds=1)
    say(desk, "hello")
    say(desk, "hello again", session="other")
    summarize(desk, "they said hello", 1, 0)


def test_notes_facts_messages_and_conversations_are_counted_apart(desk: Desk) -> None:
    some(desk)
    counted = desk.counts()
    assert counted["notes"] == {"live": 1, "superseded": 0, "forgotten": 0, "expired": 0, "purged": 0, "rows": 1}
    assert counted["statements"] == {"live": 1, "history": 2, "forgotten": 1, "purged": 0, "rows": 4}
    assert (counted["messages"], counted["conversations"]) == (2, 2)
    assert clean(purge(desk))
    assert desk.counts()["statements"] == {"live": 1, "history": 2, "forgotten": 0, "purged": 1, "rows": 4}
    status = desk.notes.status(desk.caller(), Deadline(PATIENCE))
    assert (status["statements"]["live"], status["messages"]) == (1, 2)
    assert desk.store.details()["conditions"] == []


def test_a_backup_tells_of_facts_and_messages_and_checks_them(desk: Desk, tmp_path: Path) -> None:
    some(desk)
    now = to_micros(desk.clock.now())
    found = back_up(desk.path, tmp_path / "b.db", now, lambda *_: None)
    contents = found.contents
    assert (contents.notes, contents.versions, contents.facts, contents.messages) == (1, 1, 4, 2)
    assert found.problems == []
    desk.sql("UPDATE facts SET same = zeroblob(32) WHERE value = '2'")
    assert {each.code for each in back_up(desk.path, tmp_path / "c.db", now, lambda *_: None).problems} >= {
        "fact_sameness"
    }


@BOTH
def test_facts_and_messages_are_encoded_anew_and_summaries_are_not(make_desk: MakeDesk, kind: dict[str, Any]) -> None:
    old = make_desk()
    some(old)
    draft = MessageDraft("p", "talk", "user", "a message with vectors " * 9)
    vectors = embed(old.encoder, None, draft.content, Deadline(PATIENCE))
    old.store.conversations().append(draft, old.caller(), vectors, old.clock.now(), Deadline(PATIENCE))
    hidden = old.sql("SELECT public_id FROM items WHERE type = 'fact' AND forgotten_at > 0")[0][0]
    moved = make_desk(encoder=Counted(**kind))
    assert move(moved).switched is not None
    assert moved.problems() == []
    assert (values(moved), live(moved)) == ([2], ["2"])
    encoded = {
        type_ for (type_,) in moved.sql("SELECT DISTINCT type FROM items JOIN passages p ON p.item_id = items.id")
    }
    assert encoded == {"note", "fact", "message"}
    assert [hit.note.content for hit in moved.query("port", mode="lexical").hits] == ["port of db: 2"]
    assert moved.found("port", mode="semantic")[0] == moved.found("port", mode="lexical")[0]
    moved.restore(hidden)
    assert moved.found("door", mode="lexical") == [hidden]
    assert moved.problems() == []


def counted(desk: Desk) -> list[int]:
    """Bytes that the first namespace has used, as they are counted and as they are."""
    [(used,)] = desk.sql("SELECT value FROM meta WHERE key = 'used/namespace/1'")
    sizes = desk.sql(
        "SELECT sum(length(content) + length(metadata) + length(f.value)) FROM texts JOIN facts f USING (item_id)"
    )
    return [int(used.split(":")[1]), *sizes[0]]


def test_the_room_that_facts_take_is_counted_with_their_values(
    bounded: Any, make_desk: MakeDesk, tmp_path: Path
) -> None:
    first = bounded(namespace=Allowance(size=1000))
    for number in range(3):
        tell(first, "x" * 80 + str(number), key=f"key{number}")
    assert len(set(counted(first))) == 1
    # The count is made anew before anybody is refused, and comes to the same.
    with pytest.raises(QuotaExceeded):
        tell(first, "x" * 800, key="more")
    tell(first, "x" * 80, key="more")
    assert len(set(counted(first))) == 1
    # What an import brings is counted too, and limited by nothing.
    there = make_desk(tmp_path / "there")
    tell(there, "y" * 100, key="other", subject="another")
    send(there, tmp_path / "file.jsonl")
    take(first, tmp_path / "file.jsonl")
    assert len(set(counted(first))) == 1
