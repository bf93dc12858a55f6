"""One request at a time for an id: what the SDK's sessions leave to their clients.

The SDK sends an answer to whichever request of a session had that id last, so of two in flight with one id the first
would wait for ever. `DistinctIds` refuses the second, as Agora does over standard input and output.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import Enum, auto
from typing import Any

import anyio
from mcp.server.context import CallNext, HandlerResult, ServerRequestContext
from mcp_types import INVALID_REQUEST, RequestId
from mcp_types.version import HANDSHAKE_PROTOCOL_VERSIONS
from pydantic import BaseModel, ValidationError
from starlette.responses import JSONResponse
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from agora.transport.guard import TOKEN_KEY, header_values
from agora.transport.messages import error

_FLIGHT = "agora.flight"
"""Where the ASGI scope of a request holds its `_Flight`."""

_VERSIONS = frozenset(version.encode() for version in HANDSHAKE_PROTOCOL_VERSIONS)

_Key = tuple[str, str, str]


class _Stage(Enum):
    SENT = auto()
    WORKED_AT = auto()
    ANSWERED = auto()


@dataclass(slots=True)
class _Flight:
    """A request that is not done with: its exchange lasts, or its work does, which may outlast the connection."""

    parts: int = 1
    stage: _Stage = _Stage.SENT
    changed: anyio.Event = field(default_factory=anyio.Event)

    def move(self, stage: _Stage) -> None:
        """Go on to another stage, and let everyone who waits for that look again."""
        self.stage = stage
        self.changed.set()
        self.changed = anyio.Event()


class _Asked(BaseModel):
    """What makes a message a request."""

    id: RequestId
    method: str


class DistinctIds:
    """An ASGI application that refuses a session's request whose id is in flight there: -32600, status 400.

    Expects each body whole in its first message, which is what the SDK's limit on bodies makes of it: it goes around
    what that limit protects, and nothing is kept twice. `watch` belongs in the server's middleware. Ids are compared
    as texts, as the SDK does: 7 and "7" are one. Stateless requests need none of this. Used by the event loop alone.
    """

    def __init__(self, app: ASGIApp) -> None:
        self._app = app
        self._flights: dict[_Key, _Flight] = {}

    def __len__(self) -> int:
        """How many requests are in flight."""
        return len(self._flights)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve or refuse one request."""
        session = _session(scope)
        if session is None:
            await self._app(scope, receive, send)
            return
        held: list[Message] = [await receive()]

        async def again() -> Message:
            return held.pop() if held else await receive()

        asked = _asked(held[0])
        if asked is None:
            await self._app(scope, again, send)
            return
        token = scope[TOKEN_KEY]
        key = ("" if token is None else token.name, session, str(asked.id))
        if await self._taken(key):
            refused = error(asked.id, INVALID_REQUEST, "Invalid request: this id is already in flight")
            await JSONResponse(refused.model_dump(exclude_unset=True), status_code=400)(scope, receive, send)
            return
        flight = self._flights[key] = _Flight()
        try:
            await self._app({**scope, _FLIGHT: (key, flight)}, again, send)
        finally:
            self._leave(key, flight)

    async def watch(self, ctx: ServerRequestContext[Any, Any], call_next: CallNext) -> HandlerResult:
        """Middleware for the server that `app` serves: a request is in flight while it is worked at."""
        request = ctx.request
        found = None if request is None or ctx.request_id is None else request.scope.get(_FLIGHT)
        if found is None:
            return await call_next(ctx)
        key, flight = found
        flight.parts += 1
        flight.move(_Stage.WORKED_AT)
        try:
            return await call_next(ctx)
        finally:
            flight.move(_Stage.ANSWERED)
            self._leave(key, flight)

    async def _taken(self, key: _Key) -> bool:
        """Whether a request with that id is worked at.

        One that is answered may have been read, and its id used again, before all of the answer has left here: that is
        waited for. So is one that nobody works at yet: it may be none at all, and refused.
        """
        while (flight := self._flights.get(key)) is not None:
            if flight.stage is _Stage.WORKED_AT:
                return True
            await flight.changed.wait()
        return False

    def _leave(self, key: _Key, flight: _Flight) -> None:
        flight.parts -= 1
        if not flight.parts:
            del self._flights[key]
            flight.move(_Stage.ANSWERED)


def _session(scope: Scope) -> str | None:
    """The session that a message is for; None if it is for none, or no message at all."""
    if scope["type"] != "http" or scope["method"] != "POST":
        return None
    sessions = header_values(scope, b"mcp-session-id")
    versions = header_values(scope, b"mcp-protocol-version")
    # As the SDK tells the eras apart: by the first header of that name.
    if not sessions or (versions and versions[0] not in _VERSIONS):
        return None
    return sessions[0].decode("latin-1")


def _asked(first: Message) -> _Asked | None:
    """The request in a body; None for anything else, which the SDK answers."""
    if first["type"] != "http.request":
        return None
    try:
        return _Asked.model_validate_json(first.get("body", b""))
    except ValidationError:
        return None
