"""What a store does for every item, done for messages and summaries."""

from __future__ import annotations

from contextlib import closing
from pathlib import Path

import pytest
from tests.conftest import PATIENCE, Desk, MakeDesk
from tests.sentinels import files_below
from tests.unit.memory.conversations.table import Table
from tests.unit.stores.moving import move

from agora.errors import QuotaExceeded, RateLimited, StoreVersion
from agora.maintenance.purge import Purger
from agora.maintenance.revert import Reverter
from agora.model.allowance import Allowance, Allowances
from agora.model.audit import Writer
from agora.model.crossref import Topic
from agora.model.deadline import Deadline
from agora.model.message import MessageDraft
from agora.model.purge import Unwanted
from agora.model.selection import Selection
from agora.stores.sqlite.audit import verify
from agora.stores.sqlite.audit_revert import SqliteReverting
from agora.stores.sqlite.rules import SURROUNDINGS
from agora.stores.sqlite.store import SqliteStore
from agora.testing import FakeEncoder, ManualClock, SilentLog


def soon() -> Deadline:
    return Deadline(PATIENCE)


def forget(desk: Desk, **asked: object) -> None:
    desk.notes.forget(Selection(("p",), **asked), desk.caller(), soon(), dry_run=False)  # type: ignore[arg-type]


def purge(desk: Desk) -> None:
    purger = Purger(desk.store.purging(), desk.folder, (), desk.clock, SilentLog(), wait=PATIENCE)
    doomed = purger.condemn(Unwanted(("p",)), soon())
    done = purger.purge(doomed, desk.caller("root"), soon())
    assert not done.unfinished


def test_a_purged_message_is_in_no_byte_of_the_folder_with_every_summary_that_quoted_it(make_desk: MakeDesk) -> None:
    desk = make_desk()
    table = Table(desk)
    kept = [table.say(f"quicksilver{n} and other words", "thursdaytalk") for n in range(1, 27)]
    assert len(table.summarizer.folded) > 1
    forget(desk, ids=(kept[3].id,))
    purge(desk)
    desk.close()
    everything = b"".join((desk.folder / name).read_bytes() for name in files_below(desk.folder))
    assert b"quicksilver4 " not in everything
    assert b"quicksilver26 " in everything
    assert b"thursdaytalk" in everything
    again = make_desk()
    assert again.problems() == []
    assert Table(again).say("next", "thursdaytalk").seq == 27


def test_the_name_of_a_conversation_goes_with_its_last_message(make_desk: MakeDesk) -> None:
    desk = make_desk()
    table = Table(desk)
    table.say_many(14, "thursdaytalk")
    table.say("stays", "other")
    forget(desk, agent="ann")
    forgotten = desk.sql("SELECT public_id FROM items WHERE session = 'other'")[0][0]
    desk.restore(forgotten)
    purge(desk)
    desk.close()
    everything = b"".join((desk.folder / name).read_bytes() for name in files_below(desk.folder))
    assert b"thursdaytalk" not in everything
    again = make_desk()
    assert again.problems() == []
    assert Table(again).say("begins again", "thursdaytalk").seq == 1


def test_the_number_of_a_purged_last_message_is_not_given_again(desk: Desk) -> None:
    table = Table(desk)
    kept = table.say_many(3)
    forget(desk, ids=(kept[2].id,))
    purge(desk)
    assert table.say("next").seq == 4


def test_the_journal_of_a_conversation_is_whole_and_tells_of_changed_texts(make_desk: MakeDesk) -> None:
    desk = make_desk()
    Table(desk).say_many(20)
    desk.close()
    found = verify(desk.path)
    assert found.broken is None
    assert found.rows == 20 + 2 + 1
    desk.sql("UPDATE texts SET content = 'other' WHERE item_id = 2")
    assert verify(desk.path).broken is not None


def test_what_one_writer_said_is_taken_back_with_the_summaries_of_it(desk: Desk) -> None:
    table = Table(desk)
    table.say_many(6)
    table.say("poison", caller=desk.caller("mallory"))
    for number in range(12):
        table.say(f"later {number}")
    assert table.summary() is not None
    with SqliteReverting(desk.path, synchronous="normal", busy_timeout=10.0) as store:
        reverter = Reverter(store, desk.clock, SilentLog())
        reverter.revert(Writer(agent="mallory"), desk.caller("eve", origin="user"), soon())
    assert "poison" not in {each.content for each in table.messages()}
    assert len(table.messages()) == 18
    assert table.summary() is None
    assert desk.problems() == []


def test_a_summary_of_a_reverted_writer_goes_and_no_older_one_comes_back(desk: Desk) -> None:
    table = Table(desk)
    due = table.say_many(13)[-1].summary_due
    assert due is not None
    table.summarize(due.token, "lies", desk.caller("mallory"))
    with SqliteReverting(desk.path, synchronous="normal", busy_timeout=10.0) as store:
        reverter = Reverter(store, desk.clock, SilentLog())
        reverter.revert(Writer(agent="mallory"), desk.caller("eve", origin="user"), soon())
    assert table.summary() is None
    assert len(table.messages()) == 13
    assert desk.problems() == []


def test_a_move_to_another_encoder_takes_messages_along_that_have_vectors(make_desk: MakeDesk) -> None:
    desk = make_desk()
    desk.save("a note")
    Table(desk).say_many(14)
    store = desk.store.conversations()
    store.append(MessageDraft("p", "talk", "user", "bare"), desk.caller(), None, desk.clock.now(), soon())
    desk.close()
    for encoder in (FakeEncoder(name="other"), FakeEncoder(piece=10, name="cuts")):
        moved = make_desk(encoder=encoder)
        move(moved)
        assert moved.store.mismatch is None
        with moved.store.conversations().read(soon()) as reading:
            messages = reading.messages("p", "talk", 1, 99)
            vectors = reading.vectors([each.row for each in messages])
        assert len(messages) == 15
        assert set(vectors) == {each.row for each in messages[:-1]}
        assert moved.problems() == []
        assert len(moved.found("words message")) == 1
        moved.close()


def test_a_conversation_uses_up_what_its_agent_may_save(tmp_path: Path) -> None:
    clock = ManualClock()
    encoder = FakeEncoder()
    for allowance, error in ((Allowance(saves=3), RateLimited), (Allowance(size=30), QuotaExceeded)):
        folder = tmp_path / error.__name__
        folder.mkdir()
        store = SqliteStore(
            folder / "agora.db", encoder.fingerprint, clock, allowances=Allowances(allowance, Allowance())
        )
        with closing(store):
            conversations, caller = store.conversations(), Desk.caller
            draft = MessageDraft("p", "talk", "user", "ten bytes!")
            who = caller(None)  # type: ignore[arg-type]
            for _ in range(2):
                conversations.append(draft, who, None, clock.now(), soon())
            if error is RateLimited:
                conversations.append(draft, who, None, clock.now(), soon())
            with pytest.raises(error):
                conversations.append(draft, who, None, clock.now(), soon())
            with conversations.read(soon()) as reading:
                assert reading.count("p", "talk") == (3 if error is RateLimited else 2)


def test_a_reader_of_an_older_release_leaves_a_newer_store_alone(desk: Desk) -> None:
    Table(desk).say("x")
    desk.sql("PRAGMA user_version = 99")
    with pytest.raises(StoreVersion), desk.store.conversations().read(soon()):
        pass


def test_what_is_said_is_no_change_that_others_are_told_of(desk: Desk) -> None:
    table = Table(desk)
    table.say_many(14)
    note = desk.save("a note")
    with desk.store.read(soon()) as reading:
        found = reading.changes(Topic(("p",)), desk.caller("bob", session="s2"), 50)
    assert [each.id for each in found.newest] == [note.id]


def test_a_store_of_messages_alone_is_whole(make_desk: MakeDesk) -> None:
    desk = make_desk()
    Table(desk).say_many(14)
    assert [each for each in desk.store.details()["conditions"] if each["code"] not in SURROUNDINGS] == []
    desk.store.reindex()
    with desk.store.read(soon()) as reading:
        assert reading.vectors.size() == 0
    desk.close()
    assert make_desk().problems() == []


def test_a_summary_is_worth_no_more_than_the_least_of_what_it_holds(desk: Desk) -> None:
    table = Table(desk)
    table.say("from a page", caller=desk.caller(origin="web"))
    table.say_many(12)
    summary = table.summary()
    assert summary is not None
    assert summary.origin == "web"
    for number in range(6):
        table.say(f"later {number}")
    later = table.summary()
    assert later is not None
    assert (later.version, later.origin) == (2, "web")
    assert desk.problems() == []
