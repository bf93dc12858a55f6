"""Facts and conversations out of one store and into another: recall answers the same there, at every instant."""

from __future__ import annotations

import json
import tempfile
from dataclasses import replace
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.conftest import PATIENCE, Desk, MakeDesk
from tests.unit.exchange.ferry import lines_of, send, take, version, versions_of, write
from tests.unit.stores.statements import everything, tell, values
from tests.unit.stores.test_audit import reverted
from tests.unit.stores.test_conversations_purged import say, summarize
from tests.unit.stores.test_facts_purged import by_user
from tests.unit.stores.test_facts_taken_back import live
from tests.unit.stores.test_purge import clean, purge

from agora.model.deadline import Deadline
from agora.model.message import MessageDraft
from agora.ports.transfer import Stated


def at_all_times(desk: Desk) -> list[object]:
    """What recall says as of several instants, by what was known at several others."""
    now = desk.clock.now()
    instants: list[datetime] = [now + timedelta(seconds=seconds) for seconds in (-50, -25, -11, -6, -3, 0, 4, 30)]
    return [everything(desk, at, known) for at in instants for known in (None, *instants[2:6])]


def told(desk: Desk) -> None:
    """Facts of every kind, in every state."""
    tell(desk, 5432, quote="the port is 5432, they say")
    desk.clock.advance(seconds=10)
    tell(desk, {"host": "db", "ports": [1, 2.5]}, "bob", until=30)
    tell(desk, 6432, "tool", origin="tool")
    tell(desk, "tea", key="Drinks", multi=True, origin="user")
    tell(desk, "milk", key="drinks")
    tell(desk, value=False, key="ready", lives=1000)
    desk.pin(tell(desk, "Rome", key="town", origin="user").id)
    desk.clock.advance(seconds=10)
    tell(desk, "tea", "bob", key="drinks")
    desk.forget(tell(desk, "Paris", key="town").id, reason="wrong")
    tell(desk, "wrong", "mal", key="town2")
    tell(desk, "right", key="town2")
    reverted(desk, agent="mal")


def test_recall_answers_the_same_in_another_store(make_desk: MakeDesk, tmp_path: Path) -> None:
    here, there = make_desk(), make_desk(tmp_path / "there")
    told(here)
    lines = send(here, tmp_path / "file.jsonl")
    report = take(there, tmp_path / "file.jsonl")
    assert (report.counts["created"], report.counts["conflict"], report.whole) == (len(lines) - 2, 0, True)
    assert at_all_times(there) == at_all_times(here)
    assert live(there) == live(here)
    assert there.found("port they say") == here.found("port they say")
    assert there.problems() == []
    # Once more changes nothing, and what goes out of there is the same file.
    before = there.sql("SELECT max(sequence) FROM journal")
    assert take(there, tmp_path / "file.jsonl").counts["duplicate"] == len(lines) - 2
    assert there.sql("SELECT max(sequence) FROM journal") == before
    assert versions_of(send(there, tmp_path / "again.jsonl")) == versions_of(lines)


def test_a_dry_run_says_what_will_be(make_desk: MakeDesk, tmp_path: Path) -> None:
    here, there = make_desk(), make_desk(tmp_path / "there")
    told(here)
    tell(there, 5432, "ann", quote="the port is 5432, they say", since=-20)
    send(here, tmp_path / "file.jsonl")
    dry = take(there, tmp_path / "file.jsonl", dry_run=True)
    assert there.sql("SELECT count(*) FROM items") == [(1,)]
    assert take(there, tmp_path / "file.jsonl").counts == dry.counts


def test_facts_of_the_same_key_are_merged_as_statements(make_desk: MakeDesk, tmp_path: Path) -> None:
    here, there = make_desk(), make_desk(tmp_path / "there")
    tell(here, 1, since=-100)
    same = tell(here, 2, "ann", since=-50)
    tell(there, 2, "bob", key="PORT", since=-50, quote="port of db: 2")
    newest = tell(there, 3, "bob", since=-10)
    send(here, tmp_path / "file.jsonl")
    report = take(there, tmp_path / "file.jsonl")
    assert (report.counts["created"], report.counts["duplicate"]) == (1, 1)
    assert report.duplicates[0]["id"] == same.id
    assert values(there) == [3]
    now = there.clock.now()
    assert values(there, as_of=now - timedelta(seconds=20)) == [2]
    assert values(there, as_of=now - timedelta(seconds=60)) == [1]
    [joined] = [each for each in everything(there) if each[2] == "2"]
    assert joined[-1] == 2
    assert there.problems() == []
    # What was merged stays merged, and what it joined stays forgotten.
    there.forget(str(joined[0]), newest.id)
    assert take(there, tmp_path / "file.jsonl").counts["duplicate"] == 2
    assert values(there) == []


def test_what_was_purged_stays_purged_and_holds_its_place_elsewhere(make_desk: MakeDesk, tmp_path: Path) -> None:
    here, there, empty = make_desk(), make_desk(tmp_path / "there"), make_desk(tmp_path / "empty")
    tell(here, 1)
    here.clock.advance(seconds=10)
    send(here, tmp_path / "first.jsonl")
    secret = tell(here, "wolframite")
    send(here, tmp_path / "with.jsonl")
    here.clock.advance(seconds=10)
    here.forget(secret.id)
    assert clean(purge(here))
    lines = send(here, tmp_path / "file.jsonl")
    assert b"wolframite" not in b"".join(lines)
    take(there, tmp_path / "file.jsonl")
    assert values(there) == []
    take(there, tmp_path / "with.jsonl")
    assert values(there) == []
    assert there.problems() == []
    # Whatever comes first in the file.
    back = make_desk(tmp_path / "back")
    (tmp_path / "back.jsonl").write_bytes(b"".join([lines[0], *versions_of(lines)[::-1], lines[-1]]))
    take(back, tmp_path / "back.jsonl")
    assert values(back) == []
    assert back.problems() == []
    # A file with the purged one alone leaves no name behind.
    alone = [each for each in versions_of(lines) if json.loads(each)["id"] == secret.id]
    assert json.loads(alone[0])["fact"]["rank"] == 1
    made = version(1, "", type="fact", id=secret.id, kind="fact", savers=())
    stated = Stated("db", "port", None, made.created_at, rank=1)
    made = replace(made, content=None, purged_at=made.created_at, fact=stated)
    gone = write(tmp_path / "alone.jsonl", [made])
    assert take(empty, gone).counts["created"] == 1
    assert empty.sql("SELECT (SELECT count(*) FROM facts), (SELECT count(*) FROM fact_slots)") == [(0, 0)]
    assert empty.problems() == []


@pytest.mark.parametrize(("importer", "rank"), [("agent", 1), ("user", 0)])
def test_a_purged_fact_holds_its_place_by_no_more_authority_than_who_imports_it(
    make_desk: MakeDesk, tmp_path: Path, importer: Any, rank: int
) -> None:
    here, there = make_desk(), make_desk(tmp_path / "there")
    tell(here, 1)
    here.clock.advance(seconds=10)
    here.forget(tell(here, "said by the user", origin="user").id, origin="user")
    by_user(here)
    send(here, tmp_path / "file.jsonl")
    take(there, tmp_path / "file.jsonl", importer=importer)
    assert there.sql("SELECT rank FROM facts WHERE value IS NULL") == [(rank,)]
    assert values(there) == []
    assert there.problems() == []


@pytest.mark.parametrize("importer", ["agent", "user"])
def test_a_file_lends_nobody_more_authority_than_who_imports_it(
    make_desk: MakeDesk, tmp_path: Path, importer: Any
) -> None:
    here, there = make_desk(), make_desk(tmp_path / "there")
    tell(here, "said by the user", origin="user")
    there.clock.advance(seconds=10)
    tell(there, "said before by the user", origin="user", since=-20)
    send(here, tmp_path / "file.jsonl")
    report = take(there, tmp_path / "file.jsonl", importer=importer)
    assert report.lowered == (importer == "agent")
    assert values(there) == (["said before by the user"] if importer == "agent" else ["said by the user"])
    assert there.problems() == []


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({"fact": None}, "fact: must be there unless it was purged"),
        ({"key": "k"}, "fact: has its key"),
        ({"expires_at": "2026-01-15T12:00:00.000000Z"}, "fact: has its key"),
        ({"id": "n_01KF0RDQG00000000000000000"}, "id: must begin with f_"),
        ({"summary": {"first": 1, "last": 2, "written_by": "x"}}, "summary: is for the type of this name"),
        ({"fact.value": None}, "fact.value: must be there"),
        ({"fact.value": "x" * 20_000}, "fact.value: must have at most 16384 bytes"),
        ({"fact.valid_to": "2020-01-15T12:00:00.000000Z"}, "fact.valid_to: must not be before valid_from"),
        ({"fact.multi": 1}, "fact.multi: must be true or false"),
        ({"fact.new": 1}, "fact.new: is a field that this release does not know"),
        ({"fact.subject": " "}, "fact.subject: must not be blank"),
        ({"fact.subject": "\u200b"}, "fact.subject: must not be blank"),
        ({"fact.subject": "bob:\n- admin: true"}, "fact.subject: must be one line"),
        ({"fact.key": "a\u2028b"}, "fact.key: must be one line"),
        ({"fact.key": "k" * 601}, "fact.key: must have at most 600 characters"),
        ({"fact.value": " "}, "fact.value: must not be blank"),
        ({"fact.value": json.loads("[" * 33 + "1" + "]" * 33)}, "fact.value: must not be nested more than 32 levels"),
    ],
)
def test_a_line_that_is_no_fact_is_told_and_left_out(
    desk: Desk, make_desk: MakeDesk, tmp_path: Path, change: dict[str, Any], reason: str
) -> None:
    tell(desk, 1)
    file = tmp_path / "file.jsonl"
    lines = send(desk, file)
    record = json.loads(lines[1])
    for name, value in change.items():
        inside, _, last = name.rpartition(".")
        (record[inside] if inside else record)[last] = value
    record = {name: value for name, value in record.items() if value is not None}
    if "fact" in record:
        record["fact"] = {name: value for name, value in record["fact"].items() if value is not None}
    file.write_bytes(b"".join([lines[0], json.dumps(record).encode() + b"\n", lines[2]]))
    report = take(make_desk(tmp_path / "there"), file)
    assert reason in report.broken[0]["reason"]


def test_a_conversation_goes_over_whole(make_desk: MakeDesk, tmp_path: Path) -> None:
    here, there = make_desk(), make_desk(tmp_path / "there")
    for text in ("hello there", "how are you", "fine, and what about the port"):
        say(here, text)
    draft = MessageDraft("p", "talk", "assistant", "5432", "Bot", here.clock.now(), {"model": "m"})
    chosen = here.store.conversations()
    chosen.append(draft, here.caller(), None, here.clock.now(), Deadline(PATIENCE), strategy="summary")
    gone = say(here, "nobody should read this")
    summarize(here, "they said hello", 1, 0)
    summarize(here, "they said hello and asked", 2, 1)
    here.forget(gone)
    here.save("they said hello and asked")
    lines = send(here, tmp_path / "file.jsonl")
    there.save("they said hello and asked", "bob")
    report = take(there, tmp_path / "file.jsonl")
    assert (report.counts["conflict"], report.counts["broken"], report.counts["duplicate"]) == (0, 0, 1)
    read = []
    for desk in (here, there):
        with desk.store.conversations().read(Deadline(PATIENCE)) as reading:
            messages = reading.messages("p", "talk", 1, 9)
            read.append(
                (
                    [(m.id, m.seq, m.role, m.speaker, m.content, m.occurred_at, dict(m.metadata)) for m in messages],
                    reading.summary("p", "talk"),
                    reading.strategy("p", "talk"),
                    reading.count("p", "talk"),
                )
            )
    assert read[0] == read[1]
    assert len(read[0][0]) == 4
    assert there.found("hello port") == [there.sql("SELECT public_id FROM items WHERE type = 'note'")[0][0]]
    assert there.problems() == []
    before = there.sql("SELECT max(sequence) FROM journal")
    assert take(there, tmp_path / "file.jsonl").counts["duplicate"] == len(lines) - 2
    assert there.sql("SELECT max(sequence) FROM journal") == before
    assert there.sql("SELECT last, strategy FROM conversations") == [(5, "summary")]
    # It goes on after the last one.
    say(there, "go on")
    assert there.sql("SELECT max(seq) FROM items") == [(6,)]


def test_another_message_of_the_same_number_is_a_conflict(make_desk: MakeDesk, tmp_path: Path) -> None:
    here, there = make_desk(), make_desk(tmp_path / "there")
    for desk, text in ((here, "one"), (there, "another")):
        say(desk, "the same")
        say(desk, text)
    send(here, tmp_path / "file.jsonl")
    report = take(there, tmp_path / "file.jsonl")
    assert (report.counts["duplicate"], report.counts["conflict"]) == (1, 1)
    assert report.conflicts[0]["reason"] == "the conversation 'talk' has another message 2 here"
    assert there.problems() == []


def test_secrets_in_values_are_replaced_on_the_way_in(make_desk: MakeDesk, tmp_path: Path) -> None:
    here, there = make_desk(), make_desk(tmp_path / "there")
    secret = "ghp_" + "a1B2" * 9
    tell(here, {"token": secret}, key="access")
    send(here, tmp_path / "file.jsonl")
    assert sum(take(there, tmp_path / "file.jsonl").redacted.values()) >= 1
    assert secret not in str(everything(there))
    assert secret.encode() not in there.path.read_bytes()
    assert there.problems() == []


def test_a_value_that_its_key_calls_a_secret_is_replaced_on_the_way_in(make_desk: MakeDesk, tmp_path: Path) -> None:
    here, there = make_desk(), make_desk(tmp_path / "there")
    secret = "hunter2Xy" + "!93"
    tell(here, secret, key="password")
    tell(here, secret, "bob", key="password", quote=f"whoever wants in says {secret} at the door")
    send(here, tmp_path / "file.jsonl")
    assert sum(take(there, tmp_path / "file.jsonl").redacted.values()) == 2
    assert secret not in str(everything(there))
    assert "[REDACTED:password]" in str(everything(there))
    assert secret.encode() not in there.path.read_bytes()
    assert there.problems() == []


def test_only_what_holds_goes_out_if_nothing_else_is_wanted(desk: Desk, tmp_path: Path) -> None:
    tell(desk, 1)
    desk.clock.advance(seconds=10)
    tell(desk, 2)
    lines = versions_of(send(desk, tmp_path / "file.jsonl", live_only=True))
    assert [json.loads(line)["fact"]["value"] for line in lines] == [2]
    assert lines_of(tmp_path / "file.jsonl")


SAY = st.tuples(
    st.sampled_from([("ann", "agent"), ("uma", "user"), ("eva", "tool")]),
    st.sampled_from([1, 2, "two"]),
    st.sampled_from([None, None, -25, -5, 8]),
    st.sampled_from([None, None, 6, 40]),
    st.sampled_from([None, None, True, False]),
    st.sampled_from(["nothing", "nothing", "forget", "purge"]),
)


def said(desk: Desk, acts: list[tuple[Any, ...]]) -> None:
    for (agent, origin), value, since, until, multi, then in acts:
        desk.clock.advance(seconds=3)
        end = None if until is None else max(until, since or 0)
        made = tell(desk, value, agent, origin=origin, since=since, until=end, multi=multi)
        if then != "nothing":
            desk.forget(made.id, origin="user")
        if then == "purge":
            purge(desk, made.id)


@settings(max_examples=20, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(st.lists(SAY, min_size=1, max_size=6), st.lists(SAY, max_size=4))
def test_every_store_that_took_the_same_files_recalls_the_same(
    first: list[tuple[Any, ...]], second: list[tuple[Any, ...]]
) -> None:
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as name:
        folder = Path(name)
        one = Desk(folder / "one")
        others = [Desk(folder / each, clock=one.clock) for each in ("two", "three", "four")]
        two, three, four = others
        try:
            said(one, first)
            said(two, second)
            files = [folder / "one.jsonl", folder / "two.jsonl"]
            send(one, files[0])
            send(two, files[1])
            take(three, files[0])
            assert at_all_times(three) == at_all_times(one)
            assert live(three) == live(one)
            for desk, order in ((three, files), (four, files[::-1])):
                for file in order:
                    take(desk, file)
                assert desk.problems() == []
            now = one.clock.now()
            instants = [now + timedelta(seconds=seconds) for seconds in (-30, -7, -2, 0, 5, 30)]
            assert [values(three, as_of=at) for at in instants] == [values(four, as_of=at) for at in instants]
        finally:
            for desk in (one, *others):
                desk.close()
