from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager

import anyio
import pytest

from agora.protocol.peer import Share, Turns

PATIENCE = 10.0


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


class Hall:
    """Calls of several clients that last until they are told to end."""

    def __init__(self, most: int, each: int, kept: int = 0) -> None:
        self.turns = Turns(most, each=each, kept=kept)
        self.running: list[str] = []
        self._shares: dict[str, Share] = {}
        self._ends: dict[str, anyio.Event] = {}

    async def call(self, name: str) -> None:
        """One call; its client is the first letter of its name."""
        self._ends[name] = anyio.Event()
        async with self.turns.turn(self._shares.setdefault(name[0], Share())):
            self.running.append(name)
            try:
                await self._ends[name].wait()
            finally:
                self.running.remove(name)

    async def end(self, name: str) -> None:
        self._ends[name].set()
        await anyio.wait_all_tasks_blocked()


@asynccontextmanager
async def hall(most: int, each: int, kept: int = 0) -> AsyncIterator[tuple[Hall, Callable[..., None]]]:
    """A hall, and what sends calls into it; what still runs at the end is given up."""
    made = Hall(most, each, kept)
    with anyio.fail_after(PATIENCE):
        async with anyio.create_task_group() as tasks:

            def send(*names: str) -> None:
                for name in names:
                    tasks.start_soon(made.call, name)

            yield made, send
            tasks.cancel_scope.cancel()
    assert made.running == []


@pytest.mark.anyio
async def test_no_client_has_more_than_its_share_and_its_calls_go_in_order() -> None:
    async with hall(4, 2) as (made, send):
        send("a1", "a2", "a3", "a4")
        await anyio.wait_all_tasks_blocked()
        assert made.running == ["a1", "a2"]
        await made.end("a2")
        assert made.running == ["a1", "a3"]
        send("b1")
        await anyio.wait_all_tasks_blocked()
        assert made.running == ["a1", "a3", "b1"]


@pytest.mark.anyio
async def test_who_has_the_fewest_running_goes_before_all_who_wait_for_longer() -> None:
    async with hall(4, 2) as (made, send):
        send(*(f"{client}{number}" for client in "abcde" for number in range(50)))
        await anyio.wait_all_tasks_blocked()
        assert sorted(made.running) == ["a0", "a1", "b0", "b1"]
        send("z0")
        await anyio.wait_all_tasks_blocked()
        # Those of whom nothing runs go first, in the order in which they came, though hundreds were there before.
        order: list[str] = []
        for ended in ("a0", "b0", "c0", "d0"):
            before = set(made.running)
            await made.end(ended)
            order += set(made.running) - before
        assert order == ["c0", "d0", "e0", "z0"]


@pytest.mark.anyio
async def test_who_comes_new_begins_at_once_though_others_would_take_all_turns() -> None:
    async with hall(6, 4, kept=2) as (made, send):
        send(*(f"{client}{number}" for client in "ab" for number in range(50)))
        await anyio.wait_all_tasks_blocked()
        # The turn of b was its first; all further ones of both leave two.
        assert made.running == ["a0", "a1", "a2", "a3", "b0"]
        send("y0", "y1")
        await anyio.wait_all_tasks_blocked()
        assert made.running[5:] == ["y0"]
        await made.end("a0")
        await made.end("a1")
        send("z0")
        await anyio.wait_all_tasks_blocked()
        assert "z0" in made.running


@pytest.mark.anyio
async def test_equals_take_turns() -> None:
    async with hall(1, 1) as (made, send):
        send("a1", "a2", "a3", "b1", "b2", "b3")
        await anyio.wait_all_tasks_blocked()
        order = []
        for _ in range(6):
            order += made.running
            await made.end(made.running[0])
        assert order == ["a1", "b1", "a2", "b2", "a3", "b3"]


@pytest.mark.anyio
async def test_calls_that_are_given_up_leave_their_places() -> None:
    made = Hall(2, 2)
    with anyio.fail_after(PATIENCE):
        async with anyio.create_task_group() as tasks:
            for number in range(5):
                tasks.start_soon(made.call, f"a{number}")
            await anyio.wait_all_tasks_blocked()
            tasks.cancel_scope.cancel()
        async with anyio.create_task_group() as tasks:
            for name in ("a8", "b9"):
                tasks.start_soon(made.call, name)
            await anyio.wait_all_tasks_blocked()
            assert sorted(made.running) == ["a8", "b9"]
            tasks.cancel_scope.cancel()
