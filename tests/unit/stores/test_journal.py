from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import closing
from typing import TYPE_CHECKING

import pytest
from tests.unit.stores.history import tell

from agora.stores.sqlite.audit_chain import verified

if TYPE_CHECKING:
    from tests.conftest import Desk


def broken_at(connection: sqlite3.Connection) -> int | None:
    """The first change at which the chain is broken, whatever became of the notes."""
    found = verified(connection, items=False).broken
    return None if found is None else found.sequence


@pytest.fixture
def told(desk: Desk) -> Desk:
    """A desk with eight changes of several kinds by two agents."""
    tell(desk)
    desk.save("brief", lives=1)
    desk.clock.advance(seconds=2)
    desk.save("brief")
    return desk


@pytest.fixture
def raw(told: Desk) -> Iterator[sqlite3.Connection]:
    """A connection that damages without asking."""
    with closing(sqlite3.connect(told.path, isolation_level=None)) as connection:
        yield connection


def test_a_whole_journal_is_whole(told: Desk, raw: sqlite3.Connection) -> None:
    assert broken_at(raw) is None
    kinds = [row[0] for row in raw.execute("SELECT operation FROM journal ORDER BY sequence")]
    assert kinds == ["save", "supersede", "save", "save", "merge", "forget", "restore", "save", "expire", "save"]
    assert [row[0] for row in raw.execute("SELECT sequence FROM journal ORDER BY sequence")] == list(range(1, 11))
    assert told.sql("SELECT sequence FROM namespace_seq") == [(10,)]


def test_an_empty_journal_is_whole(desk: Desk) -> None:
    with closing(sqlite3.connect(desk.path)) as connection:
        assert broken_at(connection) is None


CHANGES = [
    "at = at + 1",
    "operation = 'merge'",
    "subject = 'n_other'",
    "session = session || 'x'",
    "origin = 'user'",
    "format = 2",
    "agent_id = 3 - agent_id",
    "client_id = 99",
    "namespace_id = NULL",
    "commitment = zeroblob(32)",
    "previous_hash = zeroblob(32)",
    "hash = zeroblob(32)",
]


@pytest.mark.parametrize("sequence", [1, 4, 10])
@pytest.mark.parametrize("change", CHANGES)
def test_a_changed_row_is_found(raw: sqlite3.Connection, change: str, sequence: int) -> None:
    raw.execute(f"UPDATE journal SET {change} WHERE sequence = ?", (sequence,))  # noqa: S608 - constants of this file
    assert broken_at(raw) == sequence


@pytest.mark.parametrize("change", ["name = 'eve' WHERE id = 1", "name = 'eve' WHERE id = 2"])
def test_a_renamed_agent_is_found(raw: sqlite3.Connection, change: str) -> None:
    raw.execute(f"UPDATE agents SET {change}")  # noqa: S608 - constants of this file
    assert broken_at(raw) is not None


@pytest.mark.parametrize(
    "change",
    ["after = NULL", "before = '{}'", "content = zeroblob(32)", "nonce = zeroblob(16)", "after = after || ' '"],
)
def test_a_changed_payload_is_found(raw: sqlite3.Connection, change: str) -> None:
    raw.execute(f"UPDATE journal_payload SET {change} WHERE sequence = 5")  # noqa: S608 - constants of this file
    assert broken_at(raw) == 5


@pytest.mark.parametrize("sequence", [1, 5, 10])
def test_a_payload_that_no_purge_has_taken_is_missed(raw: sqlite3.Connection, sequence: int) -> None:
    raw.execute("DELETE FROM journal_payload WHERE sequence = ?", (sequence,))
    assert broken_at(raw) == sequence


@pytest.mark.parametrize("sequence", [1, 5, 10])
def test_a_missing_row_is_found(raw: sqlite3.Connection, sequence: int) -> None:
    raw.execute("DELETE FROM journal WHERE sequence = ?", (sequence,))
    assert broken_at(raw) == sequence


@pytest.mark.parametrize("first", [1, 4, 9])
def test_two_rows_in_each_others_place_are_found(raw: sqlite3.Connection, first: int) -> None:
    for old, new in ((first, 1000), (first + 1, first), (1000, first + 1)):
        raw.execute("UPDATE journal SET sequence = ? WHERE sequence = ?", (new, old))
    assert broken_at(raw) == first


def test_a_journal_cut_at_its_end_is_found_and_stays_found_after_later_saves(
    told: Desk, raw: sqlite3.Connection
) -> None:
    raw.execute("DELETE FROM journal WHERE sequence > 7")
    assert broken_at(raw) == 8
    assert told.save("later").sequence == 11
    assert broken_at(raw) == 8
    assert [row[0] for row in raw.execute("SELECT sequence FROM journal ORDER BY sequence")] == [*range(1, 8), 11]


def test_a_row_added_by_another_hand_is_found(raw: sqlite3.Connection) -> None:
    raw.execute(
        "INSERT INTO journal SELECT 11, format, at, namespace_id, operation, subject, item_id, agent_id, client_id,"
        " session, origin, commitment, hash, hash FROM journal WHERE sequence = 10"
    )
    assert broken_at(raw) == 11


def test_contents_do_not_stand_in_the_journal(told: Desk, raw: sqlite3.Connection) -> None:
    told.save("an unmistakable secret")
    rows = raw.execute("SELECT * FROM journal").fetchall() + raw.execute("SELECT * FROM journal_payload").fetchall()
    assert "unmistakable" not in repr(rows)
