"""Which folder a client of the handshake era works in: its roots, asked for once."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit
from urllib.request import url2pathname

import anyio
import anyio.to_thread
import mcp_types as types
from mcp.server.context import ServerRequestContext
from mcp.shared.exceptions import MCPError
from mcp.shared.message import ServerMessageMetadata
from pydantic import BaseModel, ValidationError

from agora.ports.log import Log

SECONDS = 1.0
"""How long the first calls of a client that declares roots wait for them."""


class Roots:
    """The first root of a client that is a folder, asked for at its first call.

    Calls that come while the question is open wait for the same answer: all of them belong to one project.
    """

    def __init__(self, log: Log) -> None:
        self._log = log
        self._lock = anyio.Lock()
        self._settled = False

    async def follow(self, ctx: ServerRequestContext[Any, Any], take: Callable[[Path], None]) -> None:
        """Give the client's folder, if it tells one in time, to `take`; once, and before any call goes on."""
        capabilities = ctx.session.client_capabilities
        if self._settled or capabilities is None or capabilities.roots is None:
            return
        async with self._lock:
            # The stateless era has no way to ask, and a later handshake may.
            if self._settled or not ctx.session.can_send_request:
                return
            found: Path | None = None
            with anyio.move_on_after(SECONDS) as patience:
                found = await self._first(ctx)
            if patience.cancelled_caught:
                self._log.warning("client declares roots but does not answer", seconds=SECONDS)
            if found is not None:
                # It reads the files of a git folder.
                await anyio.to_thread.run_sync(take, found)
            self._settled = True

    def changed(self) -> None:
        """The client has other roots now: ask again at its next call."""
        self._settled = False

    async def _first(self, ctx: ServerRequestContext[Any, Any]) -> Path | None:
        try:
            # Over HTTP it goes out on the stream of the call itself: the client may have opened no other.
            channel = ServerMessageMetadata(related_request_id=ctx.request_id)
            answer = await ctx.session.send_request(types.ListRootsRequest(), _Answer, metadata=channel)
        except (MCPError, ValidationError) as error:
            self._log.warning("client declares roots but does not tell them", error=type(error).__name__)
            return None
        return next(filter(None, (folder(root.uri) for root in answer.roots)), None)


class _Root(BaseModel):
    # Any text: one root of another scheme must not hide the folder beside it.
    uri: str


class _Answer(BaseModel):
    roots: list[_Root]


def folder(uri: str) -> Path | None:
    """The path of a `file:` URI on this machine, or None if it is no such thing."""
    try:
        parts = urlsplit(uri)
    except ValueError:
        return None
    if parts.scheme != "file" or parts.netloc not in {"", "localhost"} or not parts.path:
        return None
    path = url2pathname(parts.path)
    return None if "\0" in path else Path(path)
