"""`tools/list` and `tools/call` for tools of other servers that a session sees as this one's."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import anyio
import anyio.to_thread
import mcp_types as types
from mcp.server.context import ServerRequestContext

from agora.errors import AgoraError
from agora.model.caller import Caller
from agora.protocol.context import Connection
from agora.protocol.errors import failed
from agora.protocol.other_servers import OPENING, OtherServers, Seen
from agora.protocol.peer import Peer
from agora.protocol.running import Runner

Context = ServerRequestContext[Any, Any]

NAME = "exposed tool"
"""What logs and metrics call such a call: the names are those of others."""


class ExposedTools:
    """Lists and calls them, for every client under the names that it was shown."""

    def __init__(self, others: OtherServers, runner: Runner) -> None:
        self._others = others
        self._runner = runner

    async def list(self, peer: Peer, caller: Caller) -> tuple[types.Tool, ...]:
        """Those that the client sees; it waits for no backend, and for the store only a moment."""
        any_ = self._others.any(caller)
        seen = await self._seen(peer.connection, caller) if any_ else Seen()
        if seen.owners is not None:
            peer.names = seen.owners
        if peer.subscriptions is not None:
            peer.subscriptions.sees("tools", (any_, seen.mark))
        return seen.rows

    async def owner(self, peer: Peer, caller: Caller, name: str) -> tuple[str, str] | None:
        """Backend and tool that the client was shown under this name; None for a name that it was not shown.

        One that was shown no list yet, as after a restart of the server, means those of the list as it is now.
        """
        names = peer.names
        if names is None:
            names = (await self._seen(peer.connection, caller)).owners
        return None if names is None else names.get(name)

    async def _seen(self, connection: Connection, caller: Caller) -> Seen:
        if not connection.expose:
            return Seen()
        if not self._others.open:
            with anyio.move_on_after(OPENING):
                await anyio.to_thread.run_sync(self._others.open_it, abandon_on_cancel=True)
        try:
            return await anyio.to_thread.run_sync(self._others.tools, caller, connection)
        except AgoraError:
            # The store does not answer. Whoever calls hears of it; the list has the other tools.
            return Seen()

    async def call(self, ctx: Context, owner: tuple[str, str], given: Mapping[str, Any]) -> types.CallToolResult:
        """What the tool answers, or the error in its place."""
        from agora.protocol.tools.exposed import result  # noqa: PLC0415 - few sessions see any

        try:
            called = await self._runner.call(
                ctx, NAME, lambda calling: self._others.call(owner, given, calling), waits=True
            )
        except AgoraError as error:
            return failed(error)
        return result(called)
