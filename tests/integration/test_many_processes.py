"""Several processes on one data folder."""

from __future__ import annotations

import json
import os
import sqlite3
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from agora.stores.sqlite.checks import find_problems

WORKER = Path(__file__).with_name("store_worker.py")
SOURCE = Path(__file__).parents[2] / "src"
PATIENCE = 120.0


class Process:
    """A store worker and its pipes."""

    def __init__(self, folder: Path, agent: str) -> None:
        self.process = subprocess.Popen(
            [sys.executable, str(WORKER), str(folder), agent],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            encoding="utf-8",
            env=os.environ | {"PYTHONPATH": str(SOURCE), "PYTHONUTF8": "1"},
        )
        self._watchdog = threading.Timer(PATIENCE, self.process.kill)
        self._watchdog.start()

    def read(self) -> Any:
        """The next answer."""
        assert self.process.stdout is not None
        line = self.process.stdout.readline()
        assert line, "the worker ended"
        return json.loads(line)

    def tell(self, *command: object) -> None:
        """Give a command and do not wait."""
        assert self.process.stdin is not None
        self.process.stdin.write(json.dumps(command) + "\n")
        self.process.stdin.flush()

    def answer(self) -> Any:
        """What the oldest unanswered command returned."""
        found = self.read()
        assert "ok" in found, found
        return found["ok"]

    def ask(self, *command: object) -> Any:
        """Give a command and wait for what it returns."""
        self.tell(*command)
        return self.answer()

    def end(self) -> None:
        """End it by the end of its input."""
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        self.process.stdin.close()
        try:
            self.process.wait(20)
        finally:
            self.process.kill()
            self.process.wait(20)
            self._watchdog.cancel()
            self.process.stdout.close()


Start = Callable[..., list[Process]]


@pytest.fixture
def start(tmp_path: Path) -> Iterator[Start]:
    """Starts workers on one folder and, unless told otherwise, opens their stores one after the other."""
    running: list[Process] = []

    def begin(number: int, folder: Path | None = None, *, opened: bool = True) -> list[Process]:
        found = [Process(folder or tmp_path, f"agent{place}") for place in range(number)]
        running.extend(found)
        for each in found:
            assert each.read() == "ready"
        if opened:
            for each in found:
                each.ask("open")
        return found

    yield begin
    for each in running:
        each.end()


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


def test_the_last_process_leaves_one_file(start: Start, tmp_path: Path) -> None:
    workers = start(3)
    for worker in workers:
        worker.ask("save", "text")
    for worker in workers:
        worker.ask("close")
    assert [entry.name for entry in tmp_path.iterdir()] == ["agora.db"]
