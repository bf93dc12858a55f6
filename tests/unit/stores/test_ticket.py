"""Who comes first writes first. Real files and locks; several queues in one process stand for several processes."""

from __future__ import annotations

import os
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from agora.model.deadline import Deadline
from agora.stores.sqlite import ticket as module
from agora.stores.sqlite.byte_locks import ByteLocks
from agora.stores.sqlite.ticket import Tickets, queue_of
from agora.testing import SilentLog

if TYPE_CHECKING:
    from tests.conftest import MakeDesk

pytestmark = pytest.mark.skipif(
    sys.platform not in {"linux", "win32"}, reason="locks belong to the process there: see the tests with processes"
)
replaceable = pytest.mark.skipif(sys.platform == "win32", reason="an open file cannot be deleted there")
PATIENCE = 20.0
MakeQueue = Callable[[], Tickets]


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "agora.lock"


@pytest.fixture
def queue(path: Path) -> Iterator[MakeQueue]:
    """Places in one queue, closed at the end."""
    made: list[Tickets] = []

    def make() -> Tickets:
        made.append(Tickets(path))
        return made[-1]

    yield make
    for each in made:
        each.close()


def within(seconds: float) -> Callable[[], float]:
    ends = time.monotonic() + seconds
    return lambda: ends - time.monotonic()


def given(path: Path) -> int:
    return int.from_bytes(path.read_bytes()[:8], "little")


class Waiter:
    """A thread that waits for its turn, notes that it came, and lets it go."""

    def __init__(self, tickets: Tickets, name: int, order: list[int]) -> None:
        self.got: bool | None = None
        self._work = (tickets, name, order)
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def _run(self) -> None:
        tickets, name, order = self._work
        self.got = tickets.wait(within(PATIENCE))
        order.append(name)
        tickets.leave()

    def join(self) -> None:
        self._thread.join(PATIENCE)
        assert self.got is True


def wait_for_ticket(path: Path, number: int) -> None:
    ends = time.monotonic() + PATIENCE
    while given(path) != number:
        assert time.monotonic() < ends
        threading.Event().wait(0.0005)


def in_order(queue: MakeQueue, path: Path, first: int) -> None:
    """Eight come while somebody has the turn, one after the other; so they are served."""
    holder, order = queue(), list[int]()
    assert holder.wait(within(PATIENCE))
    waiters = []
    for name in range(8):
        waiters.append(Waiter(queue(), name, order))
        wait_for_ticket(path, (first + name) % module._TICKETS)
    assert order == []
    holder.leave()
    for each in waiters:
        each.join()
    assert order == list(range(8))


def test_a_writer_alone_has_its_turn_at_once_and_takes_no_ticket(queue: MakeQueue, path: Path) -> None:
    alone = queue()
    for _ in range(3):
        assert alone.wait(within(PATIENCE))
        assert alone.wait(within(PATIENCE))
        alone.leave()
    assert alone.fair
    assert path.read_bytes() == bytes(16)
    if os.name == "posix":
        assert path.stat().st_mode & 0o777 == 0o600


def test_only_one_has_the_turn(queue: MakeQueue) -> None:
    one, two = queue(), queue()
    assert one.wait(within(PATIENCE))
    assert not two.wait(within(0.05))
    two.leave()
    one.leave()
    assert two.wait(within(PATIENCE))
    assert not one.wait(within(0.05))


def test_turns_come_in_the_order_of_arrival(queue: MakeQueue, path: Path) -> None:
    in_order(queue, path, 1)


@pytest.mark.parametrize("last", [0, 3, 32_765, 65_530, 65_535, 2**64 - 1])
def test_the_order_holds_where_the_numbers_begin_anew(queue: MakeQueue, path: Path, last: int) -> None:
    path.write_bytes(last.to_bytes(8, "little") + bytes(8))
    in_order(queue, path, (last + 1) % module._TICKETS)


@pytest.mark.parametrize("content", [b"", b"\0", b"some words that somebody wrote into it", b"\xff" * 16])
def test_whatever_is_in_the_file_turns_are_taken(queue: MakeQueue, path: Path, content: bytes) -> None:
    path.write_bytes(content)
    order: list[int] = []
    holder = queue()
    assert holder.wait(within(PATIENCE))
    waiters = [Waiter(queue(), name, order) for name in range(4)]
    holder.leave()
    for each in waiters:
        each.join()
    assert sorted(order) == list(range(4))


def test_a_newcomer_does_not_overtake_somebody_who_waits(queue: MakeQueue, path: Path) -> None:
    holder, newcomer, order = queue(), queue(), list[int]()
    assert holder.wait(within(PATIENCE))
    first = Waiter(queue(), 1, order)
    wait_for_ticket(path, 1)
    second = Waiter(newcomer, 2, order)
    wait_for_ticket(path, 2)
    holder.leave()
    first.join()
    second.join()
    assert order == [1, 2]


def test_a_waiter_gives_up_in_time_and_holds_up_nobody(queue: MakeQueue, path: Path) -> None:
    holder, hasty, order = queue(), queue(), list[int]()
    assert holder.wait(within(PATIENCE))
    began = time.monotonic()
    assert not hasty.wait(within(0.2))
    assert 0.19 < time.monotonic() - began < 0.5
    patient = Waiter(queue(), 2, order)
    wait_for_ticket(path, 2)
    hasty.leave()
    holder.leave()
    patient.join()


@pytest.mark.parametrize("who", ["the one who has the turn", "one who waits"])
def test_a_place_is_free_when_its_holder_is_gone(queue: MakeQueue, path: Path, who: str) -> None:
    holder, gone, order = queue(), queue(), list[int]()
    assert holder.wait(within(PATIENCE))
    assert not gone.wait(within(0.05))
    behind = Waiter(queue(), 1, order)
    wait_for_ticket(path, 2)
    if who == "one who waits":
        # As a death does: the descriptor is closed, and nothing is let go by hand.
        gone.close()
        holder.leave()
    else:
        gone.leave()
        holder.close()
    began = time.monotonic()
    behind.join()
    assert time.monotonic() - began < 0.5


def test_behind_somebody_who_stands_still_one_may_try_after_a_second_and_then_soon(
    queue: MakeQueue, path: Path
) -> None:
    with closing(ByteLocks(path, 16)) as stopped:
        # A process that was stopped between its ticket and its turn.
        ticket = module._taken_ticket(stopped)
        assert ticket == 1
        behind = queue()
        for least, most in [(0.9, 2.0), (0.0, 0.2), (0.0, 0.2)]:
            began = time.monotonic()
            assert not behind.wait(within(PATIENCE))
            assert least < time.monotonic() - began < most
            behind.leave()
        stopped.release(module._FIRST + ticket)
        assert behind.wait(within(PATIENCE))


def test_a_queue_that_moves_is_waited_for_however_long_it_is(queue: MakeQueue, path: Path) -> None:
    """Nobody goes without a turn because those before it take a second and a half together."""
    holder, order = queue(), list[int]()
    assert holder.wait(within(PATIENCE))
    before = [queue() for _ in range(4)]

    def slowly(place: int, tickets: Tickets) -> None:
        assert tickets.wait(within(PATIENCE))
        order.append(place)
        threading.Event().wait(0.4)
        tickets.leave()

    threads = []
    for place, tickets in enumerate(before):
        threads.append(threading.Thread(target=slowly, args=(place, tickets), daemon=True))
        threads[-1].start()
        wait_for_ticket(path, place + 1)
    last = Waiter(queue(), 4, order)
    wait_for_ticket(path, 5)
    holder.leave()
    for thread in threads:
        thread.join(PATIENCE)
    last.join()
    assert order == [0, 1, 2, 3, 4]


def test_a_ticket_that_somebody_has_kept_for_a_whole_round_is_passed_over(queue: MakeQueue, path: Path) -> None:
    with closing(ByteLocks(path, 16)) as stopped:
        assert stopped.take(module._FIRST + 7)
        stopped.write((6).to_bytes(8, "little"), 0)
        holder, order = queue(), list[int]()
        # Not alone, so it queues, and gets its turn: ticket 8 has 7 before it, which stands still.
        assert not holder.wait(within(0.3))
        assert given(path) == 8
        holder.leave()
        stopped.release(module._FIRST + 7)
        in_order(queue, path, 9)
        assert order == []


@replaceable
@pytest.mark.parametrize("how", ["deleted", "replaced"])
def test_a_file_that_is_deleted_or_replaced_is_left_for_the_new_one(queue: MakeQueue, path: Path, how: str) -> None:
    one, two = queue(), queue()
    for each in (one, two):
        assert each.wait(within(PATIENCE))
        each.leave()
    if how == "deleted":
        path.unlink()
    else:
        other = path.with_name("other")
        other.write_bytes(b"other")
        other.replace(path)
    assert one.wait(within(PATIENCE))
    # Neither one who knew the old file nor one who only knows the new.
    for other_one in (two, queue()):
        assert not other_one.wait(within(0.05))
        other_one.leave()
    assert path.exists()
    one.leave()
    assert two.wait(within(PATIENCE))


class Listening(SilentLog):
    def __init__(self) -> None:
        self.warnings: list[str] = []

    def warning(self, event: str, **values: object) -> None:
        self.warnings.append(f"{event}: {values['reason']}")


def test_without_a_file_to_lock_one_goes_on_without_order_says_so_once_and_tries_again_later(path: Path) -> None:
    log = Listening()
    path.mkdir()
    with closing(Tickets(path, log)) as tickets:
        for _ in range(3):
            began = time.monotonic()
            assert not tickets.wait(within(PATIENCE))
            assert time.monotonic() - began < 0.5
            tickets.leave()
            assert not tickets.fair
            # As if the time for another try had come.
            tickets._off_until = 0.0
        assert len(log.warnings) == 1
        path.rmdir()
        assert tickets.wait(within(PATIENCE))
        assert tickets.fair


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs a device that is always full")
def test_a_full_disk_is_no_reason_not_to_try(tmp_path: Path) -> None:
    (tmp_path / "agora.lock").symlink_to("/dev/full")
    with queue_of(tmp_path / "agora.lock") as tickets:
        assert not tickets.wait(within(PATIENCE))
        assert not tickets.fair


def test_a_store_tells_whether_its_writers_take_turns(make_desk: MakeDesk, tmp_path: Path) -> None:
    (tmp_path / "without" / "agora.lock").mkdir(parents=True)
    fair, unfair = make_desk(), make_desk(tmp_path / "without")
    for desk, expected in ((fair, True), (unfair, False)):
        for number in range(3):
            assert desk.save(f"text {number}").status == "created"
        assert desk.store.details()["fair"] is expected
        assert desk.problems() == []


def test_a_failed_write_lets_its_turn_go(make_desk: MakeDesk) -> None:
    one, two = make_desk(), make_desk()

    def fail(connection: object) -> None:
        raise ValueError(connection)

    for _ in range(3):
        with pytest.raises(ValueError, match="object"):
            one.store._database.write(fail, Deadline(PATIENCE))
        began = time.monotonic()
        assert two.save(f"after the failure at {began}").status == "created"
        assert time.monotonic() - began < 0.8
