from __future__ import annotations

import threading
from typing import Any

import pytest

from agora.errors import StoreUnavailable
from agora.maintenance.scheduler import Scheduler, Task
from agora.testing import SilentLog


class Work:
    """Counts its runs and fails in those that it is told to."""

    def __init__(self, *fails: int) -> None:
        self.runs = 0
        self.fails = fails
        self.ran = threading.Semaphore(0)

    def __call__(self) -> dict[str, Any] | None:
        self.runs += 1
        number = self.runs
        try:
            if number in self.fails:
                raise StoreUnavailable(f"run {number}")
            return None if number == 1 else {"run": number}
        finally:
            self.ran.release()

    def wait(self, times: int) -> None:
        for _ in range(times):
            assert self.ran.acquire(timeout=10)


def settled(scheduler: Scheduler, name: str, key: str, wanted: object) -> bool:
    for _ in range(500):
        if scheduler.details()[name][key] == wanted:
            return True
        threading.Event().wait(0.01)
    return False


def test_tasks_run_again_and_again_and_tell_what_they_did() -> None:
    one, other = Work(), Work()
    scheduler = Scheduler([Task("one", 0.01, one), Task("other", 0.02, other)], SilentLog())
    assert scheduler.details() == {"one": {"last": None, "problem": None}, "other": {"last": None, "problem": None}}
    scheduler.start()
    one.wait(3)
    other.wait(2)
    scheduler.close()
    runs = one.runs
    assert scheduler.details()["one"] == {"last": {"run": runs}, "problem": None}
    assert not one.ran.acquire(timeout=0.1) or one.runs == runs


@pytest.mark.filterwarnings("error::pytest.PytestUnhandledThreadExceptionWarning")
def test_a_task_that_fails_says_so_until_it_succeeds_and_stops_no_other() -> None:
    failing, other = Work(1, 2), Work()
    scheduler = Scheduler([Task("failing", 0.05, failing), Task("other", 0.05, other)], SilentLog())
    scheduler.start()
    failing.wait(1)
    assert settled(scheduler, "failing", "problem", "run 1")
    failing.wait(1)
    assert settled(scheduler, "failing", "problem", "run 2")
    other.wait(2)
    failing.wait(1)
    assert settled(scheduler, "failing", "problem", None)
    scheduler.close()


def test_closing_waits_for_the_task_that_runs_and_starts_no_other() -> None:
    begun, go_on = threading.Event(), threading.Event()
    order: list[str] = []

    def slow() -> None:
        begun.set()
        assert go_on.wait(10)
        order.append("done")

    never = Work()
    scheduler = Scheduler([Task("slow", 0.01, slow), Task("never", 0.02, never)], SilentLog())
    scheduler.start()
    assert begun.wait(10)

    def close() -> None:
        scheduler.close()
        order.append("closed")

    closing = threading.Thread(target=close)
    closing.start()
    threading.Event().wait(0.05)
    go_on.set()
    closing.join(10)
    assert order == ["done", "closed"]
    assert never.runs == 0


def test_one_that_was_never_started_can_be_closed() -> None:
    Scheduler([], SilentLog()).close()


def test_it_tells_whether_a_task_runs_now() -> None:
    begun, end = threading.Event(), threading.Event()

    def work() -> None:
        begun.set()
        assert end.wait(10)

    scheduler = Scheduler([Task("work", 0.01, work)], SilentLog())
    seen = [scheduler.working]
    scheduler.start()
    assert begun.wait(10)
    seen.append(scheduler.working)
    end.set()
    scheduler.close()
    seen.append(scheduler.working)
    assert seen == [False, True, False]
