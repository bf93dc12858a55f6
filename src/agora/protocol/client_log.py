"""Log messages for the client that made a request, where it has asked for them."""

from __future__ import annotations

from typing import Any, get_args

import mcp_types as types
from mcp.server.connection import allowed_log_levels
from mcp.server.context import ServerRequestContext
from mcp_types.version import MODERN_PROTOCOL_VERSIONS

LEVELS: tuple[types.LoggingLevel, ...] = get_args(types.LoggingLevel)
"""From the least severe to the most."""

LOGGER = "agora"

Context = ServerRequestContext[Any, Any]


class ClientLog:
    """What one client wants to hear: nothing until it says so.

    A client of the handshake era says it once, by `logging/setLevel`; one of 2026-07-28 with each request.
    """

    def __init__(self) -> None:
        self._least: types.LoggingLevel | None = None

    def set_level(self, level: types.LoggingLevel) -> None:
        """Take the answer of `logging/setLevel`."""
        self._least = level

    async def tell(self, ctx: Context, level: types.LoggingLevel, event: str, **values: Any) -> None:  # noqa: ANN401 - JSON
        """Send one message on the stream of the request, if its client wants it. Never holds contents of notes."""
        if level not in self._wanted(ctx):
            return
        params = types.LoggingMessageNotificationParams(level=level, logger=LOGGER, data={"event": event, **values})
        message = types.LoggingMessageNotification(params=params)
        await ctx.session.send_notification(message, related_request_id=ctx.request_id)

    def _wanted(self, ctx: Context) -> frozenset[types.LoggingLevel]:
        if ctx.protocol_version in MODERN_PROTOCOL_VERSIONS:
            return allowed_log_levels(ctx.protocol_version, ctx.meta)
        return frozenset() if self._least is None else frozenset(LEVELS[LEVELS.index(self._least) :])
