"""The record of calls: what is in it, who may not be found in it, and what somebody did to it."""

from __future__ import annotations

import hashlib
import sqlite3
from contextlib import closing
from datetime import timedelta
from pathlib import Path

import pytest
from tests.conftest import PATIENCE, Desk, MakeDesk
from tests.sentinels import looked_for

from agora.maintenance.revert import Reverter
from agora.model.audit import Head, Wanted, Writer
from agora.model.calls import CallCount, CallEntry, CallRow
from agora.model.deadline import Deadline
from agora.model.purge import Unwanted
from agora.ports.kept_results import KeptResult
from agora.stores.sqlite.audit import called, unheard, verify, verify_calls
from agora.stores.sqlite.audit_revert import SqliteReverting
from agora.testing import SilentLog


def call(desk: Desk, tool: str = "get_file", agent: str = "ann", *, session: str = "s1", **fields: object) -> None:
    told = {"access": "read", "rule": "name", "matched_by": "name", "outcome": "ok", "seconds": 0.25, **fields}
    row = CallRow(desk.clock.now(), desk.caller(agent, session=session), "files", tool, **told)  # type: ignore[arg-type]
    desk.store.call_log().record(row, Deadline(PATIENCE))
    desk.clock.advance(seconds=1)


def listed(desk: Desk, limit: int = 100, **writer: object) -> tuple[CallEntry, ...]:
    return called(desk.path, Wanted(Writer(**writer), limit=limit))[0]  # type: ignore[arg-type]


def test_a_row_says_who_called_what_and_what_came_of_it(desk: Desk) -> None:
    now = desk.clock.now()
    call(desk, "put_file", "bob", access="write", rule="allow", outcome="tool_error", seconds=1.5, cached=True)
    [row] = listed(desk)
    assert row == CallEntry(
        *(1, now, "call", "p", "bob", "test", "1", "", "s1", "agent", "files", "put_file"),
        *("write", "allow", "name", "tool_error", 1.5, True),
    )


def test_calls_are_listed_by_writer_and_time_newest_last(desk: Desk) -> None:
    start = desk.clock.now()
    call(desk, "a", "ann")
    call(desk, "b", "bob")
    call(desk, "c", "ann", session="s2")
    tools = {
        "all": [row.tool for row in listed(desk)],
        "ann": [row.tool for row in listed(desk, agent="ann")],
        "s2": [row.tool for row in listed(desk, session="s2")],
        "late": [row.tool for row in listed(desk, since=start + timedelta(seconds=1))],
        "elsewhere": [row.tool for row in listed(desk, namespace="q")],
        "two": [row.tool for row in listed(desk, limit=2)],
    }
    assert tools == {
        "all": ["a", "b", "c"],
        "ann": ["a", "c"],
        "s2": ["c"],
        "late": ["b", "c"],
        "elsewhere": [],
        "two": ["b", "c"],
    }
    assert called(desk.path, Wanted(Writer(), limit=1))[1] == 3
    assert called(desk.path, Wanted(Writer(), until=start + timedelta(seconds=1)))[1] == 1
    assert called(desk.path, Wanted(Writer(), operation="approve")) == ((), 0)


def test_who_only_called_tools_is_known_to_the_store(desk: Desk) -> None:
    call(desk, agent="only-calls", session="s-calls")
    assert unheard(desk.path, Writer(agent="only-calls", session="s-calls", namespace="p")) is None
    assert unheard(desk.path, Writer(session="never")) is not None


def test_a_call_changes_no_note_no_number_and_nothing_that_watchers_or_caches_see(desk: Desk) -> None:
    desk.save("text")
    before = desk.sql("SELECT * FROM namespace_seq"), desk.sql("SELECT * FROM journal")
    head, _ = desk.store.events(None, 0, Deadline(PATIENCE))
    counts = desk.counts()
    call(desk, agent="ann")
    call(desk, agent="new")
    assert (desk.sql("SELECT * FROM namespace_seq"), desk.sql("SELECT * FROM journal")) == before
    assert desk.store.events(head, 10, Deadline(PATIENCE)) == (head, ())
    assert desk.counts() == counts
    assert desk.problems() == []


def test_arguments_are_bound_by_a_nonce_and_nowhere_in_the_file(desk: Desk) -> None:
    secret = b'{"query":"zephyrine"}'
    call(desk, arguments=secret)
    call(desk, arguments=secret)
    rows = desk.sql("SELECT nonce, commitment FROM calls")
    assert [hashlib.sha256(nonce + secret).digest() for nonce, _ in rows] == [sealed for _, sealed in rows]
    assert rows[0] != rows[1]
    assert looked_for(desk.folder, {"argument": b"zephyrine", "hash": hashlib.sha256(secret).digest()}) == {}


@pytest.mark.parametrize("tool", ["x" * 100_000, "\ud800", "a\x00b", "名前", ""])
def test_any_name_that_a_server_gives_can_be_recorded(desk: Desk, tool: str) -> None:
    call(desk, tool)
    assert len(listed(desk)[0].tool) <= 200
    assert verify_calls(desk.path).broken is None


@pytest.fixture
def told(desk: Desk) -> Desk:
    """A desk with six calls by two agents."""
    for number in range(6):
        call(desk, f"tool{number}", "ann" if number % 2 else "bob")
    return desk


DAMAGE = {
    **{
        name: (f"UPDATE calls SET {name} = {value} WHERE sequence = 3", 3, "its fields")  # noqa: S608 - names from here
        for name, value in {
            **dict.fromkeys(("at", "micros", "cached", "format"), 7),
            **dict.fromkeys(("session", "origin", "backend", "tool", "access", "rule", "matched_by"), "'other'"),
            **dict.fromkeys(("outcome", "operation", "namespace"), "'other'"),
            **dict.fromkeys(("commitment", "hash"), "zeroblob(32)"),
            "agent_id": "3 - agent_id",
        }.items()
    },
    "a previous hash": ("UPDATE calls SET previous_hash = zeroblob(32) WHERE sequence = 3", 3, "does not follow"),
    "a name": ("UPDATE agents SET name = 'eve' WHERE name = 'ann'", 2, "its fields"),
    "a missing row": ("DELETE FROM calls WHERE sequence = 4", 4, "missing: the next row is 5"),
    "a missing beginning": ("DELETE FROM calls WHERE sequence = 1", 1, "missing: the next row is 2"),
    "a missing end": ("DELETE FROM calls WHERE sequence > 4", 5, "the record's end is missing, up to 6"),
    "everything missing": ("DELETE FROM calls", 1, "the record's end is missing, up to 6"),
    "two rows in each other's place": (
        (
            "UPDATE calls SET sequence = sequence + 1000 WHERE sequence IN (3, 4);"
            "UPDATE calls SET sequence = 1007 - sequence WHERE sequence > 1000"
        ),
        3,
        "it does not follow",
    ),
    "a row of its own": (
        (
            "INSERT INTO calls SELECT 7, format, at, operation, namespace, agent_id, client_id, session, origin,"
            " backend, tool, access, rule, matched_by, outcome, micros, cached, commitment, nonce, hash, hash"
            " FROM calls WHERE sequence = 6"
        ),
        7,
        "its fields",
    ),
}


@pytest.mark.parametrize("name", DAMAGE)
def test_whatever_is_changed_is_found_with_its_number_and_what_is_wrong(told: Desk, name: str) -> None:
    damage, sequence, reason = DAMAGE[name]
    with closing(sqlite3.connect(told.path, isolation_level=None)) as raw:
        raw.executescript(damage)
    found = verify_calls(told.path)
    assert found.broken is not None
    assert reason in found.broken.reason
    assert (found.broken.sequence, found.rows) == (sequence, sequence - 1)
    assert "calls_broken" in {each.code for each in told.problems()}


def test_a_number_that_was_given_never_comes_back(told: Desk) -> None:
    told.sql("DELETE FROM calls WHERE sequence = 6")
    call(told, "later")
    found = verify_calls(told.path)
    assert found.broken is not None
    assert (found.broken.sequence, found.broken.reason) == (6, "missing: the next row is 7")


def test_a_head_that_was_kept_is_found_again_or_missed(told: Desk, tmp_path: Path) -> None:
    whole = verify_calls(told.path)
    kept = whole.head
    assert kept is not None
    assert (whole.broken, whole.rows, kept.sequence) == (None, 6, 6)
    call(told, "later")
    assert verify_calls(told.path, kept).broken is None
    other = verify_calls(told.path, Head(6, bytes(32))).broken
    assert other is not None
    assert other.sequence == 6
    # Whoever cuts the end and the number that was ever given is found out by nothing but the head.
    told.sql("DELETE FROM calls WHERE sequence > 3")
    told.sql("UPDATE sqlite_sequence SET seq = 3 WHERE name = 'calls'")
    assert verify_calls(told.path).broken is None
    cut = verify_calls(told.path, kept).broken
    assert cut is not None
    assert cut.reason == "the record's end is missing, up to 6"
    assert verify_calls(tmp_path / "elsewhere.db").broken is None
    assert verify_calls(tmp_path / "elsewhere.db", kept).broken is not None


def test_a_purge_takes_what_a_guess_could_be_tested_by_and_leaves_the_chain_whole(told: Desk) -> None:
    told.forget(told.save("gone").id)
    purging = told.store.purging()
    now, deadline = told.clock.now(), Deadline(PATIENCE)
    purging.erase(purging.condemn(Unwanted(("p",)), now, deadline), told.caller(), now, deadline)
    assert told.sql("SELECT count(*), count(nonce) FROM calls") == [(6, 0)]
    told.clock.advance(seconds=1)
    call(told, "later")
    assert told.sql("SELECT count(nonce) FROM calls") == [(1,)]
    assert purging.remains(deadline) == {}
    assert verify_calls(told.path).broken is None
    assert verify(told.path).broken is None


def test_nothing_goes_with_a_purge_that_finds_nothing(told: Desk) -> None:
    purging = told.store.purging()
    now, deadline = told.clock.now(), Deadline(PATIENCE)
    purging.erase(purging.condemn(Unwanted(("p",)), now, deadline), told.caller(), now, deadline)
    assert told.sql("SELECT count(nonce) FROM calls") == [(6,)]


def test_a_revert_counts_the_calls_that_it_cannot_undo(desk: Desk) -> None:
    desk.save("by mal", "mal")
    call(desk, "get_file", "mal")
    call(desk, "put_file", "mal", access="write")
    call(desk, "put_file", "mal", access="write", outcome="outcome_unknown")
    # These never reached anybody.
    call(desk, "put_file", "mal", access="write", outcome="read_only_backend")
    call(desk, "get_file", "mal", cached=True)
    call(desk, "put_file", "ann", access="write")
    with SqliteReverting(desk.path, synchronous="normal", busy_timeout=10.0) as store:
        reverter = Reverter(store, desk.clock, SilentLog())
        plan = reverter.plan(Writer(agent="mal"), "user", Deadline(PATIENCE))
        done = reverter.revert(Writer(agent="mal"), desk.caller("eve", origin="user"), Deadline(PATIENCE))
    assert (len(plan.steps), plan.calls) == (1, CallCount(3, 2))
    assert done.calls == plan.calls
    assert verify_calls(desk.path).broken is None


def test_calls_of_several_processes_are_one_chain(make_desk: MakeDesk) -> None:
    one, other = make_desk(), make_desk()
    for number in range(10):
        call(one if number % 2 else other, f"tool{number}")
    assert verify_calls(one.path).rows == 10
    assert verify_calls(one.path).broken is None


def result(desk: Desk, id_: str, content: bytes, *, hours: float = 24) -> KeptResult:
    now = desk.clock.now()
    return KeptResult(id_, "p", "files", "get_file", now, now + timedelta(hours=hours), content)


def test_no_byte_of_a_kept_result_is_left_after_a_purge(desk: Desk) -> None:
    from tests.unit.stores.test_purge import clean, purge  # noqa: PLC0415 - its tests are not wanted here

    kept = desk.store.kept_results()
    kept.keep(result(desk, "r_1", b"begin zephyrine " + b"x" * 100_000 + b" xylographic end"), Deadline(PATIENCE))
    desk.forget(desk.save("something else").id)
    needles = {"beginning": b"zephyrine", "end": b"xylographic"}
    assert looked_for(desk.folder, needles).keys() == needles.keys()
    assert clean(purge(desk))
    assert looked_for(desk.folder, needles) == {}
    assert kept.fetch("r_1", desk.clock.now(), Deadline(PATIENCE)) is None
