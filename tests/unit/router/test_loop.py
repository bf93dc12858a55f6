from __future__ import annotations

import asyncio
import threading
from collections.abc import Iterator

import pytest

from agora.errors import BackendTimeout, Cancelled, DeadlineExceeded
from agora.model.deadline import Deadline
from agora.router.loop import LoopThread


@pytest.fixture
def loop() -> Iterator[LoopThread]:
    made = LoopThread("test-backends")
    yield made
    made.close(nothing)


async def nothing() -> None:
    pass


async def for_ever() -> None:
    await asyncio.Event().wait()


def test_work_with_the_same_bound_says_itself_what_became_of_it(loop: LoopThread) -> None:
    deadline = Deadline(0.2)

    async def work() -> None:
        try:
            async with asyncio.timeout(deadline.remaining() + 0.05):
                await for_ever()
        except TimeoutError:
            raise BackendTimeout("b", "did not answer") from None

    with pytest.raises(BackendTimeout):
        loop.run(work, deadline)


def test_work_that_has_an_answer_a_moment_after_its_deadline_is_answered(loop: LoopThread) -> None:
    async def work() -> str:
        await asyncio.sleep(0.15)
        return "answered"

    assert loop.run(work, Deadline(0.1)) == "answered"


def test_work_that_does_not_end_by_itself_is_ended(loop: LoopThread) -> None:
    ended = threading.Event()

    async def work() -> None:
        try:
            await for_ever()
        finally:
            ended.set()

    with pytest.raises(DeadlineExceeded):
        loop.run(work, Deadline(0.05))
    assert ended.wait(20)


def test_a_call_that_is_taken_back_ends_its_work_at_once(loop: LoopThread) -> None:
    deadline, ended = Deadline(20), threading.Event()

    async def work() -> None:
        deadline.cancel()
        try:
            await for_ever()
        finally:
            ended.set()

    with pytest.raises(Cancelled):
        loop.run(work, deadline)
    assert ended.wait(20)


def test_a_loop_that_is_closed_takes_no_work(loop: LoopThread) -> None:
    loop.run(nothing, Deadline(20))
    loop.close(nothing)
    with pytest.raises(Cancelled):
        loop.run(nothing, Deadline(20))
