from __future__ import annotations

import json
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import anyio
import pytest
from starlette.requests import Request
from starlette.responses import PlainTextResponse
from starlette.types import Message, Receive, Scope, Send

from agora.transport.auth import Token
from agora.transport.guard import TOKEN_KEY
from agora.transport.in_flight import DistinctIds

ANN, BOB = Token("ann", "a" * 43), Token("bob", "b" * 43)
PATIENCE = 10.0


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


class Slow:
    """An application that works and answers when it is let, and remembers the bodies that it read."""

    def __init__(self) -> None:
        self.ids = DistinctIds(self)
        self.go, self.leave = anyio.Event(), anyio.Event()
        self.began: list[bytes] = []
        self.works = True
        self.fails = False

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        self.began.append((await receive())["body"])
        if self.works:
            # What the SDK gives its middleware, as far as it is looked at.
            ctx: Any = SimpleNamespace(request=Request(scope), request_id=1)
            await self.ids.watch(ctx, self._work)
        await self.leave.wait()
        await PlainTextResponse("done")(scope, receive, send)

    async def _work(self, ctx: object) -> None:
        del ctx
        await self.go.wait()
        if self.fails:
            raise ValueError

    def end(self) -> None:
        """Let all work end, and all answers leave."""
        self.go.set()
        self.leave.set()


def request(request_id: object, **extra: object) -> bytes:
    return json.dumps({"jsonrpc": "2.0", "id": request_id, "method": "ping", **extra}).encode()


async def ask(
    ids: DistinctIds,
    body: bytes,
    *,
    session: str | None = "s1",
    token: Token | None = ANN,
    version: str | None = None,
) -> tuple[int, Any]:
    """Status and body of the answer."""
    headers = [(b"mcp-session-id", session.encode())] if session else []
    headers += [(b"mcp-protocol-version", version.encode())] if version else []
    scope: Scope = {"type": "http", "method": "POST", "headers": headers, TOKEN_KEY: token}
    waiting: list[Message] = [{"type": "http.request", "body": body, "more_body": False}]
    sent: list[Message] = []

    async def receive() -> Message:
        return waiting.pop() if waiting else {"type": "http.disconnect"}

    async def send(message: Message) -> None:
        sent.append(message)

    await ids(scope, receive, send)
    return sent[0]["status"], sent[1]["body"]


@pytest.mark.anyio
@pytest.mark.parametrize(("first", "second"), [(7, 7), ("a", "a"), (7, "7"), ("7", 7)])
async def test_an_id_in_flight_is_refused_and_the_first_goes_on(first: object, second: object) -> None:
    app = Slow()
    ids = app.ids
    answers: list[tuple[int, Any]] = []

    async def begin() -> None:
        answers.append(await ask(ids, request(first)))

    with anyio.fail_after(PATIENCE):
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(begin)
            await anyio.wait_all_tasks_blocked()
            status, body = await ask(ids, request(second))
            assert status == 400
            found = json.loads(body)
            assert (found["jsonrpc"], found["id"], found["error"]["code"]) == ("2.0", second, -32600)
            assert "already in flight" in found["error"]["message"]
            assert answers == []
            app.end()
        assert answers == [(200, b"done")]
        assert len(ids) == 0
        assert await ask(ids, request(second)) == (200, b"done")
    assert len(ids) == 0


OTHERS: list[tuple[str, bytes, dict[str, Any]]] = [
    ("another id", request(8), {}),
    ("another session", request(7), {"session": "s2"}),
    ("another token, which may have guessed the session", request(7), {"token": BOB}),
    ("no session", request(7), {"session": None}),
    ("a stateless request", request(7), {"version": "2026-07-28"}),
    ("a notification", b'{"jsonrpc": "2.0", "method": "notifications/initialized"}', {}),
    ("an answer", b'{"jsonrpc": "2.0", "id": 7, "result": {}}', {}),
    ("no JSON", b'{"id": 7', {}),
    ("a batch", b"[" + request(7) + b"]", {}),
    ("an id that is none", request(7.5), {}),
    ("nothing", b"", {}),
]


@pytest.mark.anyio
@pytest.mark.parametrize(("body", "given"), [case[1:] for case in OTHERS], ids=[case[0] for case in OTHERS])
async def test_what_cannot_be_mixed_up_passes_byte_for_byte(body: bytes, given: dict[str, Any]) -> None:
    app = Slow()
    ids = app.ids
    with anyio.fail_after(PATIENCE):
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(ask, ids, request(7))
            await anyio.wait_all_tasks_blocked()
            tasks.start_soon(lambda: ask(ids, body, **given))
            await anyio.wait_all_tasks_blocked()
            app.end()
    assert app.began[1] is body, "it is handed on, not copied"
    assert len(ids) == 0


def failed(app: Slow, tasks: anyio.abc.TaskGroup) -> None:
    del tasks
    app.fails = True
    app.end()


def given_up(app: Slow, tasks: anyio.abc.TaskGroup) -> None:
    del app
    tasks.cancel_scope.cancel()


@pytest.mark.anyio
@pytest.mark.parametrize("end", [failed, given_up])
async def test_however_a_request_ends_its_id_is_free(end: Callable[[Slow, anyio.abc.TaskGroup], None]) -> None:
    app = Slow()
    ids = app.ids

    async def begin() -> None:
        try:
            await ask(ids, request(7))
        except ValueError:
            assert app.fails

    with anyio.fail_after(PATIENCE):
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(begin)
            await anyio.wait_all_tasks_blocked()
            assert len(ids) == 1
            end(app, tasks)
    assert len(ids) == 0


@pytest.mark.anyio
@pytest.mark.parametrize("works", [True, False], ids=["answered", "refused by the SDK"])
async def test_an_id_used_again_while_its_answer_leaves_is_waited_for(works: bool) -> None:
    app = Slow()
    app.works = works
    app.go.set()
    answers: list[tuple[int, Any]] = []

    async def again() -> None:
        answers.append(await ask(app.ids, request(7)))

    with anyio.fail_after(PATIENCE):
        async with anyio.create_task_group() as tasks:
            for _ in range(2):
                tasks.start_soon(again)
                await anyio.wait_all_tasks_blocked()
            assert (len(app.began), answers) == (1, [])
            app.leave.set()
    assert answers == [(200, b"done")] * 2
    assert len(app.ids) == 0
