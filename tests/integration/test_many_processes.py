"""Several processes on one data folder."""

from __future__ import annotations

import sqlite3
import threading
import time
from contextlib import closing
from pathlib import Path

import pytest
from tests.integration.workers import Start

from agora.stores.sqlite.checks import find_problems


def whole(folder: Path) -> sqlite3.Connection:
    """A connection to a store that has no problems."""
    connection = sqlite3.connect(folder / "agora.db", isolation_level=None, timeout=20)
    assert find_problems(connection) == []
    return connection


@pytest.mark.slow
def test_a_thousand_saves_by_four_processes_are_all_kept_and_found_by_each(start: Start, tmp_path: Path) -> None:
    workers = start(4)
    for place, worker in enumerate(workers):
        worker.tell("save_many", f"process{place}", 250)
    told = [worker.answer() for worker in workers]
    ids = sorted(public_id for each in told for public_id in each["ids"])
    assert len(set(ids)) == 1000
    assert max(each["longest"] for each in told) < 10
    for worker in workers:
        found = worker.ask("everything", "common words")
        assert found["semantic"] == ids
        assert found["lexical"] == ids
    for place, worker in enumerate(workers):
        other = told[place - 1]["ids"]
        for number in (0, 100, 249):
            text = f"common words of process{(place - 1) % 4} number {number}"
            assert other[number] in worker.ask("query", text, "hybrid")
    with closing(whole(tmp_path)) as connection:
        assert connection.execute("SELECT count(*), max(sequence) FROM journal").fetchone() == (1000, 1000)
        assert connection.execute("SELECT count(*) FROM items").fetchone() == (1000,)


def test_the_same_text_from_four_at_once_is_one_row_with_four_savers(start: Start, tmp_path: Path) -> None:
    workers = start(4)
    for number in range(15):
        for worker in workers:
            worker.tell("save", f"the same text {number}")
        assert len({worker.answer() for worker in workers}) == 1
    with closing(whole(tmp_path)) as connection:
        assert connection.execute("SELECT count(*) FROM items").fetchone() == (15,)
        savers = connection.execute("SELECT count(DISTINCT agent_id) FROM savers GROUP BY item_id").fetchall()
        assert savers == [(4,)] * 15


@pytest.mark.slow
def test_a_thousand_saves_of_one_text_by_four_processes_are_one_row_with_four_savers(
    start: Start, tmp_path: Path
) -> None:
    workers = start(4)
    for worker in workers:
        worker.tell("save_again", "the one text", 250)
    assert len({worker.answer() for worker in workers}) == 1
    with closing(whole(tmp_path)) as connection:
        assert connection.execute("SELECT count(*) FROM items").fetchone() == (1,)
        assert connection.execute("SELECT times FROM savers ORDER BY n").fetchall() == [(250,)] * 4
        assert connection.execute("SELECT count(*), max(sequence) FROM journal").fetchone() == (1000, 1000)


def test_a_foreign_lock_of_three_seconds_is_waited_for(start: Start, tmp_path: Path) -> None:
    saver, other = start(2)
    kept = saver.ask("save", "before the lock")
    (late,) = start(1, opened=False)
    with closing(sqlite3.connect(tmp_path / "agora.db", isolation_level=None)) as foreign:
        foreign.execute("BEGIN IMMEDIATE")
        began = time.monotonic()
        saver.tell("save", "during the lock")
        # Nobody else is held up: neither a query nor a process that starts.
        assert other.ask("query", "before", "lexical") == [kept]
        assert late.ask("open") < 2
        assert late.ask("query", "before", "hybrid") == [kept]
        assert time.monotonic() - began < 3
        threading.Event().wait(began + 3 - time.monotonic())
        foreign.execute("COMMIT")
    new = saver.answer()
    assert time.monotonic() - began < 8
    for worker in (saver, other, late):
        assert worker.ask("query", "during", "lexical") == [new]


@pytest.mark.parametrize("attempt", range(3))
def test_four_processes_that_open_an_empty_folder_at_once_all_use_it(
    start: Start, tmp_path: Path, attempt: int
) -> None:
    folder = tmp_path / f"new {attempt}"
    workers = start(4, folder, opened=False)
    for worker in workers:
        worker.tell("open")
    for worker in workers:
        worker.answer()
    for place, worker in enumerate(workers):
        worker.tell("save", f"text of {place}")
    ids = {worker.answer() for worker in workers}
    for worker in workers:
        assert set(worker.ask("everything", "text")["semantic"]) == ids
    with closing(whole(folder)) as connection:
        assert connection.execute("SELECT count(*) FROM encoders").fetchone() == (1,)
        assert connection.execute("SELECT count(*) FROM meta WHERE key = 'store'").fetchone() == (1,)


def test_an_acknowledged_save_is_in_the_next_query_of_every_process(start: Start) -> None:
    writer, reader, noise, watcher = start(4)
    noise.tell("save_many", "noise", 150)
    watcher.tell("watch", 3.0)
    for number in range(60):
        kept = writer.ask("save", f"zebra{number} crosses")
        mode = ("semantic", "lexical", "hybrid")[number % 3]
        assert kept in reader.ask("query", f"zebra{number}", mode), (number, mode)
    assert len(noise.answer()["ids"]) == 150
    assert watcher.answer() > 10


@pytest.mark.slow
def test_readers_never_see_an_error_or_an_older_snapshot_while_others_write(start: Start, tmp_path: Path) -> None:
    workers = start(4)
    for place, worker in enumerate(workers[:2]):
        worker.tell("save_many", f"writer{place}", 200)
    for worker in workers[2:]:
        worker.tell("watch", 6.0)
    for worker in workers[:2]:
        assert len(worker.answer()["ids"]) == 200
    for worker in workers[2:]:
        assert worker.answer() > 10
    whole(tmp_path).close()


def test_the_last_process_leaves_no_log_behind(start: Start, tmp_path: Path) -> None:
    workers = start(3)
    for worker in workers:
        worker.ask("save", "text")
    for worker in workers:
        worker.ask("close")
    assert sorted(entry.name for entry in tmp_path.iterdir()) == ["agora.db", "agora.lock"]
