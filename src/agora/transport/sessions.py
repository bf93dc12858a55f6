"""What the server knows of each HTTP client, for as long as the client's session lasts.

The SDK owns the sessions of the handshake era: it makes their ids, lets only the token that opened one use it,
limits their number and ends idle ones. `Sessions` keeps a `Peer` beside each. A request of the stateless era belongs to
no session: those of one token share one `Peer`, which lasts as long as the server.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from mcp.server.context import ServerRequestContext
from mcp_types.version import MODERN_PROTOCOL_VERSIONS
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from agora.protocol.lifecycle import State
from agora.protocol.peer import Peer
from agora.transport.auth import Token
from agora.transport.guard import TOKEN_KEY, header_values

SESSION_HEADER = "mcp-session-id"

MARGIN_SECONDS = 1.0
"""How much longer than the SDK keeps an idle session its `Peer` is kept: no session must outlive its own."""


@dataclass(slots=True)
class _Session:
    peer: Peer
    requests: int = 0
    idle_since: float = 0.0


class Sessions:
    """The `Peer` of every session and of every token.

    Sessions of different tokens never meet, not even under the same id. What is idle for too long is dropped
    when the next request of any session ends, or when they are counted. Used by the event loop alone.
    """

    def __init__(
        self, make: Callable[[Token | None], Peer], idle_seconds: float, now: Callable[[], float] = time.monotonic
    ) -> None:
        """`make` makes the peer of a new client that showed that token; `now` is in seconds, never backwards."""
        self._make = make
        self._patience = idle_seconds + MARGIN_SECONDS
        self._now = now
        self._looked = now()
        self._sessions: dict[tuple[str, str], _Session] = {}
        self._stateless: dict[str, Peer] = {}

    def __len__(self) -> int:
        """How many sessions there are now."""
        self.drop_idle()
        return len(self._sessions)

    def find(self, ctx: ServerRequestContext[Any, Any]) -> Peer:
        """Whose request this is; implements `agora.protocol.peer.FindPeer`."""
        assert ctx.request is not None, "every HTTP request carries itself"
        token: Token | None = ctx.request.scope[TOKEN_KEY]
        if ctx.protocol_version in MODERN_PROTOCOL_VERSIONS:
            return self.stateless(token)
        # Over HTTP+SSE the session stands in the address that the stream told its client to post to.
        session = ctx.request.headers.get(SESSION_HEADER) or ctx.request.query_params["session_id"]
        return self.open(token, session)

    def stateless(self, token: Token | None) -> Peer:
        """The peer of every stateless request with that token."""
        name = _name(token)
        if name not in self._stateless:
            self._stateless[name] = self._make(token)
        return self._stateless[name]

    def open(self, token: Token | None, session_id: str) -> Peer:
        """The peer of that session of the SDK's, which may be a new one."""
        key = (_name(token), session_id)
        if key not in self._sessions:
            peer = self._make(token)
            if peer.lifecycle is not None:
                # A session comes to be with the answer to its handshake.
                peer.lifecycle.move(State.INITIALIZE)
            self._sessions[key] = _Session(peer, idle_since=self._now())
        found = self._sessions[key]
        found.idle_since = self._now()
        return found.peer

    def end(self, token: Token | None, session_id: str) -> None:
        """Forget a session; one that is not there is no mistake."""
        session = self._sessions.pop((_name(token), session_id), None)
        if session is not None:
            session.peer.close()

    @contextmanager
    def serving(self, token: Token | None, session_id: str) -> Iterator[None]:
        """While the block runs, the session is not idle. Nothing is made for an unknown one."""
        key = (_name(token), session_id)
        session = self._sessions.get(key)
        if session is None:
            yield
            return
        session.requests += 1
        try:
            yield
        finally:
            session.requests -= 1
            session.idle_since = self._now()
            self.drop_idle()

    def drop_idle(self) -> None:
        """Forget the sessions that the SDK has forgotten; looks at most once in `MARGIN_SECONDS`."""
        if self._now() < self._looked + MARGIN_SECONDS:
            return
        self._looked = self._now()
        oldest = self._looked - self._patience
        for key, session in list(self._sessions.items()):
            if not session.requests and session.idle_since < oldest:
                del self._sessions[key]
                session.peer.close()


def _name(token: Token | None) -> str:
    return token.name if token else ""


class SessionWatch:
    """An ASGI application that tells `sessions` what the SDK's answers say about its sessions."""

    def __init__(self, app: ASGIApp, sessions: Sessions) -> None:
        self._app = app
        self._sessions = sessions

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one request."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        sessions, token = self._sessions, scope[TOKEN_KEY]
        known = [value.decode("latin-1") for value in header_values(scope, SESSION_HEADER.encode())]

        async def watched(message: Message) -> None:
            if message["type"] == "http.response.start":
                fine = message["status"] < 400
                if not known and fine:
                    for value in header_values(message, SESSION_HEADER.encode()):
                        sessions.drop_idle()
                        sessions.open(token, value.decode("latin-1"))
                elif known and fine and scope["method"] == "DELETE":
                    sessions.end(token, known[0])
            await send(message)

        if known:
            with sessions.serving(token, known[0]):
                await self._app(scope, receive, watched)
        else:
            await self._app(scope, receive, watched)
