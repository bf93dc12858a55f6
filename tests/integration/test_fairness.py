"""Writers in several processes take turns, whatever becomes of one of them."""

from __future__ import annotations

import random
import signal
import sqlite3
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pytest
from tests.integration.processes import Serve, environment
from tests.integration.workers import Start

from agora.stores.sqlite.checks import find_problems
from agora.stores.sqlite.ticket import queue_of

VICTIM = Path(__file__).with_name("ticket_victim.py")
PLAIN = """
import sqlite3, sys
store = sqlite3.connect(sys.argv[1], isolation_level=None)
store.execute("BEGIN IMMEDIATE")
print("locked", flush=True)
sys.stdin.read()
store.execute("ROLLBACK")
"""
Record = Callable[[str, object], None]


def problems(folder: Path) -> list[object]:
    with closing(sqlite3.connect(folder / "agora.db", isolation_level=None, timeout=20)) as connection:
        connection.execute("BEGIN")
        return list(find_problems(connection))


@pytest.mark.slow
def test_four_busy_writers_each_get_at_least_half_of_an_equal_share(
    start: Start, tmp_path: Path, record_property: Record
) -> None:
    workers = start(4)
    for place, worker in enumerate(workers):
        worker.tell("save_busily", f"process{place}", 4.0)
    told = [worker.answer() for worker in workers]
    record_property("worst wait, seconds", max(each["longest"] for each in told))
    assert [each["errors"] for each in told] == [[]] * 4
    saved = [each["saved"] for each in told]
    assert min(saved) >= sum(saved) / 4 / 2
    assert max(each["longest"] for each in told) < 5
    assert all(worker.ask("fair") for worker in workers)
    assert problems(tmp_path) == []


@pytest.mark.slow
def test_writers_whose_transactions_follow_each_other_closely_take_turns(start: Start, record_property: Record) -> None:
    """Nobody leaves a gap: whoever had the lock a moment ago would have it again, but for the tickets."""
    workers = start(4)
    for worker in workers:
        worker.tell("write_busily", 3.0, 0.02)
    told = [worker.answer() for worker in workers]
    record_property("worst wait, seconds", max(each["longest"] for each in told))
    done = [each["done"] for each in told]
    assert min(done) >= sum(done) / 4 / 2
    assert max(each["longest"] for each in told) < 1


@pytest.mark.slow
def test_a_lock_that_another_program_holds_for_three_seconds_is_waited_for(start: Start, tmp_path: Path) -> None:
    workers = start(4)
    for place, worker in enumerate(workers):
        worker.ask("save", f"before the lock {place}")
    command = [sys.executable, "-c", PLAIN, str(tmp_path / "agora.db")]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as foreign:
        assert foreign.stdout is not None
        assert foreign.stdin is not None
        assert foreign.stdout.readline().strip() == b"locked"
        began = time.monotonic()
        for place, worker in enumerate(workers):
            worker.tell("save", f"during the lock {place}")
        threading.Event().wait(3)
        foreign.stdin.close()
        ids = {worker.answer() for worker in workers}
        assert 3 <= time.monotonic() - began < 6
    assert len(ids) == 4
    for worker in workers:
        assert ids <= set(worker.ask("everything", "during")["lexical"])


def test_six_servers_start_while_one_is_in_a_long_transaction(
    serve: Serve, start: Start, home: Path, record_property: Record
) -> None:
    first = serve()
    first.call("agora_save", content="a note from before")
    undisturbed = serve(name=None)
    undisturbed.initialize()
    alone = time.monotonic() - undisturbed.started
    undisturbed.end_input()
    (worker,) = start(1, home)
    worker.tell("hold", 8.0)
    assert worker.read() == "held"
    began, waiting = time.monotonic(), []
    for _ in range(6):
        server = serve(name=None)
        server.initialize()
        waiting.append(time.monotonic() - server.started)
        assert server.call("agora_query", query="from before", mode="lexical")["results"]
    record_property("slowest start, seconds", max(waiting))
    # On a machine so busy that any start takes long, no longer than that alone explains.
    assert max(waiting) < max(3.0, 2 * alone)
    late = server.post_call("agora_save", content="saved when the long one has ended")
    assert worker.answer() is None
    assert time.monotonic() - began >= 7
    assert server.result(late)["status"] == "created"


@pytest.mark.parametrize("who", ["the one who writes", "one who waits"])
def test_a_killed_writer_holds_up_nobody(start: Start, tmp_path: Path, who: str) -> None:
    holder, waiter, other = start(3)
    holder.tell("hold", 0.5 if who == "one who waits" else 30.0)
    assert holder.read() == "held"
    waiter.tell("save", "of the one who waits")
    while int.from_bytes((tmp_path / "agora.lock").read_bytes()[:8], "little") != 1:
        assert waiter.process.poll() is None
    other.tell("save", "of the other")
    (waiter if who == "one who waits" else holder).kill()
    began = time.monotonic()
    assert other.answer().startswith("n_")
    assert time.monotonic() - began < 2
    if who == "one who waits":
        assert holder.answer() is None
    else:
        assert waiter.answer().startswith("n_")
    began = time.monotonic()
    other.ask("save", "and on")
    assert time.monotonic() - began < 0.5
    assert problems(tmp_path) == []


@pytest.mark.slow
def test_writers_that_are_killed_at_any_moment_never_stall_the_others(
    start: Start, tmp_path: Path, record_property: Record
) -> None:
    survivors = start(2)
    for worker in survivors:
        worker.ask("save", "in the beginning")
    rng = random.Random(4)  # noqa: S311 - the moments of death
    command, env = [sys.executable, str(VICTIM), str(tmp_path)], environment(None)
    victims = [subprocess.Popen(command, env=env) for _ in range(4)]
    try:
        for place, worker in enumerate(survivors):
            worker.tell("save_busily", f"survivor{place}", 8.0)
        ends, killed, pause = time.monotonic() + 8, 0, threading.Event()
        while time.monotonic() < ends:
            # They need a tenth of a second to start and then live for another, give or take.
            pause.wait(rng.uniform(0.02, 0.1))
            victim = victims.pop(0)
            victim.kill()
            victim.wait(20)
            killed += 1
            victims.append(subprocess.Popen(command, env=env))
        told = [worker.answer() for worker in survivors]
    finally:
        for victim in victims:
            victim.kill()
            victim.wait(20)
    record_property("killed", killed)
    record_property("worst wait, seconds", max(each["longest"] for each in told))
    assert killed > 20
    assert [each["errors"] for each in told] == [[], []]
    assert max(each["longest"] for each in told) < 2
    assert min(each["saved"] for each in told) > 20
    with queue_of(tmp_path / "agora.lock") as fresh:
        assert fresh.wait(lambda: 0.5)
    assert problems(tmp_path) == []


@pytest.mark.skipif(sys.platform == "win32", reason="no process can be stopped there")
def test_behind_a_stopped_process_that_waits_the_others_go_on(start: Start, tmp_path: Path) -> None:
    holder, stopped, other = start(3)
    holder.tell("hold", 0.5)
    assert holder.read() == "held"
    stopped.tell("save", "of the one that is stopped")
    while int.from_bytes((tmp_path / "agora.lock").read_bytes()[:8], "little") != 1:
        assert stopped.process.poll() is None
    stopped.process.send_signal(signal.SIGSTOP)
    assert holder.answer() is None
    began = time.monotonic()
    for number in range(5):
        assert other.ask("save", f"of the other {number}").startswith("n_")
    # One second for the first, a moment for each that follows.
    assert time.monotonic() - began < 4
    stopped.process.send_signal(signal.SIGCONT)
    assert stopped.answer().startswith("n_")
    assert problems(tmp_path) == []
