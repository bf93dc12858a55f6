"""HTTP+SSE, the transport of 2024-11-05, for clients that know no other. Off unless `http.sse` says otherwise."""

from __future__ import annotations

from typing import Any

from mcp.server.lowlevel import Server
from mcp.server.sse import SseServerTransport
from mcp.server.transport_security import TransportSecuritySettings
from starlette.responses import Response
from starlette.types import ASGIApp, Receive, Scope, Send

SSE, MESSAGES = "/sse", "/messages"


class LegacySse:
    """Serves a stream at `SSE`, whose first event tells where to post, and what is posted at `MESSAGES`."""

    def __init__(self, app: ASGIApp, server: Server[Any], body_bytes: int) -> None:
        self._app = app
        self._server = server
        self._transport = SseServerTransport(
            MESSAGES,
            # `OwnAddress` has checked Host and Origin.
            security_settings=TransportSecuritySettings(enable_dns_rebinding_protection=False),
            max_request_body_size=body_bytes,
        )

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one request, or pass it on."""
        path = scope.get("path")
        if scope["type"] != "http" or path not in {SSE, MESSAGES}:
            await self._app(scope, receive, send)
        elif scope["method"] != ("GET" if path == SSE else "POST"):
            allowed = "GET" if path == SSE else "POST"
            await Response(status_code=405, headers={"Allow": allowed})(scope, receive, send)
        elif path == MESSAGES:
            await self._transport.handle_post_message(scope, receive, send)
        else:
            async with self._transport.connect_sse(scope, receive, send) as (read, write):
                await self._server.run(read, write, self._server.create_initialization_options())
