from __future__ import annotations

import gc
import itertools
import threading
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from agora.errors import StoreUnavailable
from agora.model.deadline import Deadline
from agora.model.query import Filter
from agora.stores.sqlite.connecting import Connection, Opener

if TYPE_CHECKING:
    from tests.conftest import Desk, MakeDesk


@pytest.fixture
def laid() -> bool:
    """The store makes its own files: how it does so is tested here."""
    return False


def together(works: list[Callable[[], None]], seconds: float = 60) -> list[BaseException]:
    """Run all at once; what they raised. Fails when one does not end in time."""
    errors: list[BaseException] = []
    start = threading.Barrier(len(works))

    def run(work: Callable[[], None]) -> None:
        try:
            start.wait()
            work()
        except BaseException as error:  # noqa: BLE001 - shown by the test
            errors.append(error)

    threads = [threading.Thread(target=run, args=(work,), daemon=True) for work in works]
    for thread in threads:
        thread.start()
    ends = time.monotonic() + seconds
    for thread in threads:
        thread.join(max(0.0, ends - time.monotonic()))
    assert not any(thread.is_alive() for thread in threads), "a thread hangs"
    return errors


def test_saving_querying_and_forgetting_at_once_leaves_a_whole_store(make_desk: MakeDesk) -> None:
    desk, other = make_desk(), make_desk()
    ends = time.monotonic() + 3
    lock = threading.Lock()
    # Acknowledged and not chosen to be forgotten; forgotten and acknowledged.
    alive: set[str] = set()
    gone: set[str] = set()

    def save(number: int) -> None:
        step = 0
        while time.monotonic() < ends:
            step += 1
            made = (desk if step % 2 else other).save(f"words of {number} step {step}", f"agent{number}")
            with lock:
                alive.add(made.id)

    def query(number: int) -> None:
        while time.monotonic() < ends:
            number += 1
            with lock:
                must, must_not = set(alive), set(gone)
            which = desk if number % 2 else other
            with which.store.read(Deadline(20)) as reading:
                vector = desk.encoder.encode("words", Deadline(20))
                rows = reading.vectors.nearest(vector, reading.among(Filter(("p",))), 100_000).rows.tolist()
                found = {note.id for note in reading.by_row(rows).values()}
                assert reading.counts(("p",))["notes"]["live"] == len(found)
            with lock:
                must &= alive
            assert must <= found
            assert not must_not & found

    def forget() -> None:
        while time.monotonic() < ends:
            with lock:
                victim = alive.pop() if alive else None
            if victim:
                (other if len(gone) % 2 else desk).forget(victim)
                with lock:
                    gone.add(victim)

    errors = together([*(lambda n=n: save(n) for n in range(3)), *(lambda n=n: query(n) for n in range(3)), forget])
    assert errors == []
    assert desk.problems() == []
    assert len(gone) > 10
    assert desk.counts()["notes"] == {
        "live": len(alive),
        "superseded": 0,
        "forgotten": len(gone),
        "expired": 0,
        "purged": 0,
        "rows": len(alive) + len(gone),
    }


def test_sixteen_threads_read_through_four_connections(make_desk: MakeDesk) -> None:
    desk = make_desk(readers=4)
    kept = [desk.save(f"words {number}").id for number in range(5)]
    gate = threading.Barrier(16)

    def read() -> None:
        gate.wait()
        for _ in range(10):
            assert set(desk.found("words")) == set(kept)

    assert together([read] * 16) == []
    assert desk.store._database._idle.qsize() == 4


def test_sixteen_threads_open_their_first_reader_at_once(make_desk: MakeDesk) -> None:
    make_desk().save("words")
    desk = make_desk(readers=16)

    def read() -> None:
        assert len(desk.found("words")) == 1

    assert together([read] * 16) == []


def test_sixteen_stores_open_one_folder_at_once(make_desk: MakeDesk) -> None:
    desks: list[Desk] = []
    lock = threading.Lock()

    def begin() -> None:
        desk = make_desk()
        with lock:
            desks.append(desk)
        desk.save(f"words {threading.get_ident()}")

    assert together([begin] * 16) == []
    assert all(len(desk.found("words")) == 16 for desk in desks)
    assert desks[0].problems() == []


@pytest.mark.parametrize("attempt", range(5))
def test_a_store_closed_under_calls_ends_each_of_them_well(make_desk: MakeDesk, attempt: int) -> None:
    desk = make_desk(readers=2)
    for number in range(5):
        desk.save(f"words {number}")
    acknowledged: list[str] = []
    running = threading.Semaphore(0)

    def save() -> None:
        for step in itertools.count():
            acknowledged.append(desk.save(f"more words {threading.get_ident()} {step}").id)
            running.release()

    def read() -> None:
        while desk.found("words"):
            running.release()

    def until_closed(work: Callable[[], None]) -> None:
        with pytest.raises(StoreUnavailable, match="closed"):
            work()

    closing = threading.Event()

    def close() -> None:
        for _ in range(20 + 10 * attempt):
            assert running.acquire(timeout=20)
        closing.set()
        began = time.monotonic()
        desk.close()
        assert time.monotonic() - began < 5

    def close_too() -> None:
        assert closing.wait(20)
        desk.close()

    works = [*[lambda: until_closed(save)] * 3, *[lambda: until_closed(read)] * 5]
    errors = together([*works, close, close_too], seconds=30)
    assert errors == []
    # Every acknowledged write is there, and the log was taken in by whoever closed last.
    assert {entry.name for entry in desk.folder.iterdir()} == {"agora.db", "agora.lock"}
    again = make_desk()
    with again.store.read(Deadline(20)) as reading:
        assert set(reading.by_id(acknowledged, ["p"])) == set(acknowledged)
    assert again.problems() == []


def test_of_connections_that_close_at_the_same_moment_the_last_one_takes_the_log_in(tmp_path: Path) -> None:
    for attempt in range(60):
        path = tmp_path / str(attempt) / "agora.db"
        opener = Opener(path, path.with_name("agora.lock"), synchronous="normal", busy_timeout=5)
        connections = [opener.open(5) for _ in range(8)]
        connections[0].execute("CREATE TABLE something (value)")
        gate = threading.Barrier(len(connections))

        def end(connection: Connection, gate: threading.Barrier = gate) -> None:
            connection.execute("SELECT * FROM something").fetchall()
            gate.wait(20)
            connection.close()

        assert together([partial(end, each) for each in connections]) == []
        assert not path.with_name("agora.db-wal").exists()


def test_closing_waits_for_a_write_that_was_accepted(desk: Desk) -> None:
    entered, release = threading.Event(), threading.Event()

    def slow(connection: object) -> str:
        del connection
        entered.set()
        assert release.wait(20)
        return "done"

    outcome: list[str] = []
    writer = threading.Thread(target=lambda: outcome.append(desk.store._database.write(slow, Deadline(20))))
    writer.start()
    assert entered.wait(20)
    closer = threading.Thread(target=desk.close)
    closer.start()
    while not desk.store._database._closed:
        assert closer.is_alive()
    with pytest.raises(StoreUnavailable, match="closed"):
        desk.save("too late")
    release.set()
    writer.join(20)
    closer.join(20)
    assert outcome == ["done"]
    assert not closer.is_alive()


def test_a_reader_that_waits_for_a_place_is_told_of_the_closing_at_once(make_desk: MakeDesk) -> None:
    desk = make_desk(readers=1)
    desk.save("x")
    waiting = threading.Event()
    outcome: list[BaseException] = []

    def wait() -> None:
        waiting.set()
        try:
            desk.get("n_x")
        except StoreUnavailable as error:
            outcome.append(error)

    with desk.store.read(Deadline(5)):
        thread = threading.Thread(target=wait)
        thread.start()
        assert waiting.wait(5)
        closer = threading.Thread(target=desk.close)
        closer.start()
    thread.join(5)
    closer.join(5)
    assert not thread.is_alive()
    assert not closer.is_alive()
    assert len(outcome) <= 1


def test_a_store_that_is_let_go_leaves_no_thread(make_desk: MakeDesk) -> None:
    before = threading.active_count()
    for _ in range(5):
        desk = make_desk()
        desk.save("x")
        desk.close()
    gc.collect()
    assert threading.active_count() <= before
