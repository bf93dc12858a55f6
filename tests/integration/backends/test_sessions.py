"""A session with a backend: what a request comes to, whatever the other side does."""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from pathlib import Path
from typing import Any

import psutil
import pytest
from tests.integration.backends.heard import NAUGHTY, PATIENCE, alive, put_down, table

from agora.backends.guard import Guard
from agora.backends.session import McpSession
from agora.backends.stdio import StdioChannel
from agora.errors import (
    BackendProtocolError,
    BackendRefused,
    BackendTimeout,
    BackendUnavailable,
    OutcomeUnknown,
)

pytestmark = pytest.mark.anyio

Open = Callable[..., Awaitable[McpSession]]


@pytest.fixture
async def session(guard: Guard, anyio_backend: str) -> AsyncIterator[Open]:
    """Opens sessions with `naughty.py`, and closes them at the end."""
    del anyio_backend
    opened: list[tuple[McpSession, StdioChannel]] = []

    async def open_one(*habits: str, told: Any = None, seconds: float = PATIENCE, **given: Any) -> McpSession:
        channel = StdioChannel(table(*habits, **given), guard=guard)
        made = McpSession("naughty", channel, told or (lambda *_: None))
        opened.append((made, channel))
        await made.open(seconds)
        return made

    yield open_one
    pids = [channel.pid for _, channel in opened if channel.pid]
    try:
        for made, _ in opened:
            await made.close()
    finally:
        put_down(pids)


async def call(session: McpSession, tool: str, *, seconds: float = PATIENCE, **arguments: Any) -> dict[str, Any]:
    return await session.request("tools/call", {"name": tool, "arguments": arguments}, seconds=seconds)


def naughty_ones(pids: list[int]) -> list[int]:
    """Those that are processes of ours which have not ended."""
    found = []
    for pid in pids:
        # It may end, or have ended, while it is looked at.
        with contextlib.suppress(psutil.Error):
            found += [pid] if NAUGHTY.name in " ".join(psutil.Process(pid).cmdline()) else []
    return found


def text(result: Mapping[str, Any]) -> str:
    return str(result["content"][0]["text"])


async def test_the_handshake_tells_who_the_backend_is(session: Open) -> None:
    made = await session()
    assert made.server.name == "naughty"
    assert made.server.protocol == "2025-11-25"
    assert "tools" in made.server.capabilities
    assert text(await call(made, "echo", text="ключ")) == "ключ"


async def test_a_banner_before_the_first_message_is_passed_over(session: Open) -> None:
    assert text(await call(await session("banner"), "echo", text="x")) == "x"


@pytest.mark.parametrize("tool", ["junk", "invalid_utf8", "batch", "nan", "words"])
async def test_what_is_no_message_does_not_stop_the_messages(session: Open, tool: str) -> None:
    made = await session()
    given: dict[str, Any] = {"words": "w"} if tool == "words" else {}
    with contextlib.suppress(BackendProtocolError):
        await call(made, tool, **given)
    assert text(await call(made, "echo", text="still here")) == "still here"


async def test_a_backend_that_dies_in_a_call_is_an_error_at_once_and_the_session_is_over(session: Open) -> None:
    made = await session()
    began = time.monotonic()
    with pytest.raises(OutcomeUnknown, match="before it answered"):
        await call(made, "die")
    assert time.monotonic() - began < 1.0
    assert not made.alive
    with pytest.raises(BackendUnavailable):
        await call(made, "echo")


async def test_all_calls_that_wait_are_told_of_the_end(session: Open) -> None:
    made = await session()
    calls = [asyncio.create_task(call(made, "never")) for _ in range(5)]
    await call(made, "echo")
    with pytest.raises(OutcomeUnknown):
        await call(made, "die")
    outcomes = await asyncio.gather(*calls, return_exceptions=True)
    assert [type(outcome) for outcome in outcomes] == [OutcomeUnknown] * 5


async def test_answers_with_other_ids_are_counted_and_the_right_one_is_waited_for(session: Open) -> None:
    made = await session()
    assert text(await call(made, "wrong_id")) != "wrong"
    assert text(await call(made, "twice")) != "the second answer"
    assert text(await call(made, "echo", text="x")) == "x"
    assert made.strays >= 8


async def test_a_call_that_only_gets_wrong_ids_ends_in_time(session: Open) -> None:
    made = await session()
    with pytest.raises(BackendTimeout):
        await call(made, "wrong_id", right=False, seconds=0.3)
    assert text(await call(made, "echo", text="x")) == "x"


async def test_a_backend_that_asks_for_something_is_answered_and_goes_on(session: Open) -> None:
    made = await session()
    for method in ("ping", "sampling/createMessage", "roots/list", "elicitation/create"):
        await call(made, "ask", method=method)
    assert text(await call(made, "echo", text="x")) == "x"


async def test_who_waits_too_long_is_told_and_so_is_the_backend(session: Open) -> None:
    made = await session()
    with pytest.raises(BackendTimeout, match=r"0\.2 s"):
        await call(made, "never", seconds=0.2)
    assert await cancelled(made, 1) == [2]


async def test_a_call_that_is_taken_back_is_taken_back_at_the_backend(session: Open) -> None:
    made = await session()
    waiting = asyncio.create_task(call(made, "never"))
    await call(made, "echo")
    waiting.cancel()
    with pytest.raises(asyncio.CancelledError):
        await waiting
    assert await cancelled(made, 1) == [3]


async def cancelled(session: McpSession, count: int) -> list[Any]:
    """The ids that the backend was told are not waited for any more."""
    async with asyncio.timeout(PATIENCE):
        while True:
            found = (await call(session, "cancelled"))["structuredContent"]["ids"]
            if len(found) >= count:
                return list(found)


async def test_progress_comes_through_to_the_call_that_asked_for_it(session: Open) -> None:
    made = await session()
    steps: list[tuple[float, float | None, str | None]] = []
    await made.request(
        "tools/call",
        {"name": "progress", "arguments": {}},
        seconds=PATIENCE,
        progress=lambda done, total, words: steps.append((done, total, words)),
    )
    assert steps == [(1, 3, "step 1"), (2, 3, "step 2"), (3, 3, "step 3")]


async def test_a_changed_list_is_told(session: Open) -> None:
    told: list[str] = []
    made = await session(told=lambda method, _: told.append(method))
    await call(made, "change_tools")
    await call(made, "echo")
    assert told == ["notifications/tools/list_changed"]


async def test_an_error_of_the_backend_is_an_error_with_its_number(session: Open) -> None:
    made = await session()
    with pytest.raises(BackendRefused) as caught:
        await call(made, "there is no such tool")
    assert caught.value.number < 0
    assert made.alive


async def test_five_megabytes_come_through(session: Open) -> None:
    made = await session()
    assert len(text(await call(made, "big"))) == 5_000_000


async def test_a_program_that_ends_at_once_is_told_with_its_last_words(session: Open) -> None:
    with pytest.raises(BackendUnavailable) as caught:
        await session("exit")
    assert "last words: " in caught.value.message


async def test_a_program_that_says_nothing_is_given_up_and_ended(session: Open) -> None:
    with pytest.raises(BackendTimeout, match="handshake"):
        await session("mute", "stubborn", seconds=0.5)
    assert naughty_ones([child.pid for child in psutil.Process().children()]) == []


async def test_a_program_that_is_not_there_is_told_by_its_name(session: Open, tmp_path: Path) -> None:
    with pytest.raises(BackendUnavailable, match="nowhere"):
        await session(command=str(tmp_path / "nowhere"))


async def test_a_closed_session_leaves_no_process_and_refuses_calls(session: Open) -> None:
    made = await session("stubborn", "grandchildren")
    pids = [child.pid for child in psutil.Process().children(recursive=True)]
    await made.close()
    assert naughty_ones(alive(pids)) == []
    with pytest.raises(BackendUnavailable):
        await call(made, "echo")
