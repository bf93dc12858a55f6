"""How requests in flight come to their end when the server does."""

from __future__ import annotations

import anyio
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from agora.transport.guard import header_values, refusal


class Draining:
    """An ASGI application that can be closed: what runs may still answer, what streams ends, what is new is refused.

    A call is a request that ends by itself. The stream that a client keeps open to hear of changes does not.
    """

    def __init__(self, app: ASGIApp) -> None:
        self._app = app
        self._closed = False
        self._calls: set[anyio.CancelScope] = set()
        self._streams: set[anyio.CancelScope] = set()
        self._quiet = anyio.Event()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one request."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        if self._closed:
            await _ending(scope, receive, send)
            return
        started = finished = False

        async def watched(message: Message) -> None:
            nonlocal started, finished
            started = True
            finished = message["type"] == "http.response.body" and not message.get("more_body", False)
            await send(message)

        kind = self._streams if _is_stream(scope) else self._calls
        with anyio.CancelScope() as patience:
            kind.add(patience)
            try:
                await self._app(scope, receive, watched)
            finally:
                kind.discard(patience)
                if not self._calls:
                    self._quiet.set()
        if not patience.cancelled_caught:
            return
        if not started:
            await _ending(scope, receive, send)
        elif not finished:
            # The answer that the client waits for will not come; a whole response tells it so at once.
            await send({"type": "http.response.body", "body": b""})

    @property
    def closed(self) -> bool:
        """Whether new requests are refused."""
        return self._closed

    async def drain(self, seconds: float) -> None:
        """Take no new requests, wait at most `seconds` for the calls in flight, then end whatever is left."""
        self._closed = True
        with anyio.move_on_after(seconds):
            while self._calls:
                self._quiet = anyio.Event()
                await self._quiet.wait()
        for left in (*self._calls, *self._streams):
            left.cancel()


def _is_stream(scope: Scope) -> bool:
    # The stateless era names the method in a header, which the SDK holds against the body.
    return scope["method"] == "GET" or header_values(scope, b"mcp-method") == [b"subscriptions/listen"]


async def _ending(scope: Scope, receive: Receive, send: Send) -> None:
    answer = refusal(
        503,
        "server_ending",
        "The server is ending",
        "Connect again when it is back.",
        headers={"Connection": "close", "Retry-After": "1"},
    )
    await answer(scope, receive, send)
