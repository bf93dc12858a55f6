from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any

import anyio
import pytest
from starlette.types import Message, Receive, Scope, Send

from agora.transport.draining import Draining

PATIENCE = 10.0


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


class Request:
    """One request to a `Draining` whose application starts to answer, and ends when the test says so."""

    def __init__(self, app: Draining, method: str = "POST", *headers: tuple[bytes, bytes]) -> None:
        self.app = app
        self.scope: Scope = {"type": "http", "method": method, "headers": list(headers), "test": self}
        self.begun = anyio.Event()
        self.may_start = anyio.Event()
        self.may_end = anyio.Event()
        self.sent: list[Message] = []

    async def run(self) -> None:
        async def receive() -> Message:
            raise AssertionError

        async def send(message: Message) -> None:
            self.sent.append(message)

        await self.app(self.scope, receive, send)

    @property
    def status(self) -> int | None:
        return self.sent[0]["status"] if self.sent else None

    @property
    def whole(self) -> bool:
        return bool(self.sent) and self.sent[-1]["type"] == "http.response.body" and not self.sent[-1].get("more_body")


async def answer(scope: Scope, _receive: Receive, send: Send) -> None:
    request: Request = scope["test"]
    request.begun.set()
    await request.may_start.wait()
    await send({"type": "http.response.start", "status": 200, "headers": []})
    await send({"type": "http.response.body", "body": b"half", "more_body": True})
    await request.may_end.wait()
    await send({"type": "http.response.body", "body": b"whole"})


async def with_running(requests: list[Request], then: Callable[[], Awaitable[Any]]) -> None:
    with anyio.fail_after(PATIENCE):
        async with anyio.create_task_group() as tasks:
            for request in requests:
                tasks.start_soon(request.run)
                await request.begun.wait()
            await anyio.wait_all_tasks_blocked()
            await then()


@pytest.mark.anyio
async def test_a_call_in_flight_may_answer_and_ends_the_drain() -> None:
    app = Draining(answer)
    call = Request(app)

    async def drain() -> None:
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(app.drain, 1_000)
            await anyio.wait_all_tasks_blocked()
            call.may_start.set()
            call.may_end.set()

    await with_running([call], drain)
    assert (call.status, call.whole, call.sent[-1]["body"]) == (200, True, b"whole")


@pytest.mark.anyio
async def test_with_no_call_in_flight_the_drain_is_over_at_once_and_streams_end() -> None:
    app = Draining(answer)
    streams = [Request(app, "GET"), Request(app, "POST", (b"mcp-method", b"subscriptions/listen"))]
    for stream in streams:
        stream.may_start.set()

    await with_running(streams, lambda: app.drain(1_000))
    assert [(stream.status, stream.whole, stream.sent[-1]["body"]) for stream in streams] == [(200, True, b"")] * 2


@pytest.mark.anyio
async def test_a_call_that_takes_too_long_is_told_so_or_cut_off() -> None:
    app = Draining(answer)
    silent, half = Request(app), Request(app)
    half.may_start.set()
    await with_running([silent, half], lambda: app.drain(0.01))
    assert (silent.status, silent.whole) == (503, True)
    assert (half.status, half.whole, half.sent[-1]["body"]) == (200, True, b"")


@pytest.mark.anyio
async def test_a_new_request_is_refused_and_its_connection_closed() -> None:
    app = Draining(answer)
    await app.drain(0)
    late = Request(app)
    await late.run()
    assert not late.begun.is_set()
    assert (late.status, late.whole) == (503, True)
    assert (b"connection", b"close") in late.sent[0]["headers"]
