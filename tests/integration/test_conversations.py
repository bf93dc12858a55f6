"""Several processes that talk in one conversation."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path

import pytest
from tests.integration.workers import Start

from agora.stores.sqlite.checks import find_problems

_CHAIN = (
    "SELECT i.version, c.first, c.last, i.superseded_by IS NULL FROM items i JOIN summaries c ON c.item_id = i.id"
    " ORDER BY i.version"
)


@pytest.mark.slow
def test_two_processes_that_append_at_once_lose_nothing_and_leave_no_gap(start: Start, tmp_path: Path) -> None:
    workers = start(2)
    for place, worker in enumerate(workers):
        worker.tell("append_many", "talk", f"process{place}", 250)
    told = [worker.answer() for worker in workers]
    assert sorted(told[0] + told[1]) == list(range(1, 501))
    for numbers in told:
        assert numbers == sorted(numbers)
    with closing(sqlite3.connect(tmp_path / "agora.db", isolation_level=None, timeout=20)) as connection:
        assert find_problems(connection) == []
        said = connection.execute(
            "SELECT i.seq, t.content FROM items i JOIN texts t ON t.item_id = i.id WHERE i.type = 'message'"
        ).fetchall()
        chain = connection.execute(_CHAIN).fetchall()
    by_number = dict(said)
    for place, numbers in enumerate(told):
        assert [by_number[number] for number in numbers] == [f"process{place} {n}" for n in range(250)]
    # Each summary follows from the one before; together they cover the beginning without a hole.
    assert [version for version, *_ in chain] == list(range(1, len(chain) + 1))
    assert {first for _, first, _, _ in chain} == {1}
    assert [last for _, _, last, _ in chain] == sorted({last for _, _, last, _ in chain})
    assert [current for *_, current in chain] == [0] * (len(chain) - 1) + [1]
    assert 500 - chain[-1][2] <= 12
