"""A lane: one run of the SDK's server loop on one connection.

The SDK fixes the era of a loop by its first request. A connection therefore has two lanes, one per era,
each started when the first message for it comes: a client that probes with `server/discover` and then
falls back to `initialize` on the same pipe is served, and only public SDK calls are used.
"""

from __future__ import annotations

from collections.abc import Callable
from enum import Enum
from typing import Any

import anyio
from anyio.streams.memory import MemoryObjectSendStream
from mcp.server.lowlevel import Server
from mcp.shared.message import SessionMessage

from agora.transport.options import ConnectionOptions


class Era(Enum):
    """How a request is served: `MODERN` by its own envelope, `LEGACY` by the handshake before it."""

    MODERN = "2026-07-28"
    LEGACY = "initialize"


class Lane:
    """Runs `server` for one era; what it says goes to `outbound`.

    `on_end(lane)` is called when the loop is over for whatever reason, before `run` returns; `failed` then
    says whether it raised.
    """

    def __init__(
        self,
        era: Era,
        server: Server[Any],
        outbound: MemoryObjectSendStream[Any],
        options: ConnectionOptions,
        on_end: Callable[[Lane], None],
    ) -> None:
        self.era = era
        self.failed = False
        self._server = server
        self._outbound = outbound
        self._options = options
        self._on_end = on_end
        self._send, self._receive = anyio.create_memory_object_stream[SessionMessage | Exception](0)

    async def run(self) -> None:
        """Serve until `close`; a loop that fails is logged and ends its lane, not the connection."""
        log = self._options.log
        log.debug("lane %s opened", self.era.value)
        try:
            await self._server.run(self._receive, self._outbound, self._options.init_options(self._server))
        except Exception as problem:  # noqa: BLE001 - the outermost loop of a lane: the other lane goes on
            self.failed = True
            # What it says may quote a message.
            log.warning("lane %s failed: %s", self.era.value, _kind(problem))
        finally:
            # A loop that failed before it read anything has not closed its end: whoever sends must not wait.
            self._receive.close()
            self._send.close()
            self._outbound.close()
            self._on_end(self)
            log.debug("lane %s closed", self.era.value)

    async def send(self, message: SessionMessage) -> None:
        """Hand over one message; returns when the loop has taken it, or the lane is over."""
        try:
            await self._send.send(message)
        except (anyio.BrokenResourceError, anyio.ClosedResourceError):
            self._options.log.debug("lane %s was over before a message reached it", self.era.value)

    def close(self) -> None:
        """End the input: the loop cancels what still runs, answers for it and returns."""
        self._send.close()


def _kind(problem: BaseException) -> str:
    if not isinstance(problem, BaseExceptionGroup):
        return type(problem).__name__
    return f"{type(problem).__name__} of {', '.join(map(_kind, problem.exceptions))}"
