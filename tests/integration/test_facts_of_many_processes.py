"""Facts that several processes tell one store at once."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path

import pytest
from tests.fact_desk import FactDesk, facts_agree
from tests.integration.workers import Start


def connected(folder: Path) -> sqlite3.Connection:
    return sqlite3.connect(folder / "agora.db", isolation_level=None, timeout=20)


@pytest.mark.slow
def test_a_thousand_values_of_one_key_by_four_processes_leave_one_value_and_all_of_its_history(
    start: Start, tmp_path: Path
) -> None:
    workers = start(4)
    for worker in workers:
        worker.tell("remember_many", "port", 250)
    told = [worker.answer() for worker in workers]
    assert sum(each.get("stored", 0) for each in told) == 1
    assert sum(each.get("superseded", 0) for each in told) == 999
    values = {tuple(worker.ask("recall", "user", "port")) for worker in workers}
    [(value,)] = values
    assert value.endswith("249")
    with closing(connected(tmp_path)) as connection:
        head, entries = connection.execute("SELECT max(sequence), count(*) FROM journal").fetchone()
        assert head == entries
        saves = connection.execute("SELECT count(*) FROM journal WHERE operation = 'save'").fetchone()
        assert saves == (1000,)
        assert connection.execute("SELECT count(*) FROM facts").fetchone() == (1000,)
        left = connection.execute("SELECT count(*) FROM items WHERE superseded_by IS NULL").fetchone()
        assert left == (1,)
    desk = FactDesk(tmp_path)
    # The workers have the machine's clock: their present is in the future of this desk, whose recall looks there.
    states = [state for _, state in desk.states("port")]
    assert len(states) == 1000
    assert states.count("current") == 1
    assert states.count("superseded") == 999
    desk.store.close()


def test_one_value_from_four_processes_at_once_is_one_fact_of_four(start: Start, tmp_path: Path) -> None:
    workers = start(4)
    for number in range(15):
        for worker in workers:
            worker.tell("remember", f"key {number}", "The Same")
        told = [worker.answer() for worker in workers]
        assert len({public_id for public_id, _, _ in told}) == 1
        assert sorted(status for _, status, _ in told) == ["corroborated"] * 3 + ["stored"]
        assert sorted(count for _, _, count in told) == [1, 2, 3, 4]
    with closing(connected(tmp_path)) as connection:
        assert connection.execute("SELECT count(*) FROM facts").fetchone() == (15,)
        savers = connection.execute("SELECT count(DISTINCT agent_id) FROM savers GROUP BY item_id").fetchall()
        assert savers == [(4,)] * 15


def test_a_hundred_subjects_that_four_processes_tell_of_keep_their_own(start: Start, tmp_path: Path) -> None:
    workers = start(4)
    for number in range(25):
        for place, worker in enumerate(workers):
            worker.tell("remember", "port", str(number), f"service {number}-{place}")
        assert [worker.answer()[1] for worker in workers] == ["stored"] * 4
    for number in range(25):
        for place, worker in enumerate(workers):
            assert worker.ask("recall", f"service {number}-{place - 1}" if place else f"service {number}-3", None) == [
                str(number)
            ]
    desk = FactDesk(tmp_path)
    facts_agree(desk)
    desk.store.close()


def test_two_values_at_once_leave_one_that_took_the_place_of_the_other(start: Start, tmp_path: Path) -> None:
    workers = start(2)
    desk = FactDesk(tmp_path)
    for number in range(20):
        key = f"key {number}"
        for worker, value in zip(workers, ("a", "b"), strict=True):
            worker.tell("remember", key, value)
        told = {value: worker.answer() for worker, value in zip(workers, ("a", "b"), strict=True)}
        assert sorted(status for _, status, _ in told.values()) == ["stored", "superseded"]
        [(winner, (after, _, _))] = [each for each in told.items() if each[1][1] == "superseded"]
        assert {tuple(worker.ask("recall", "user", key)) for worker in workers} == {(winner,)}
        [old] = desk.recall(key=key, include_history=True).history
        assert (old.state, old.superseded_by) == ("superseded", after)
        with closing(connected(tmp_path)) as connection:
            last = connection.execute("SELECT operation, subject FROM journal ORDER BY sequence DESC LIMIT 1")
            assert last.fetchone() == ("supersede", old.fact.id)
    desk.store.close()
