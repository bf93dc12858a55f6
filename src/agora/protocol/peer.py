"""One client as the protocol layer sees it, and how a request finds its own."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeAlias

import anyio
from mcp.server.context import ServerRequestContext

from agora.ports.log import Log
from agora.protocol.client_log import ClientLog
from agora.protocol.context import Connection
from agora.protocol.lifecycle import State
from agora.protocol.roots import Roots
from agora.protocol.subscriptions import Subscriptions

CALLS = 16
"""Calls of one client that run at the same time; more wait their turn."""


class Peer:
    """A client's connection, its roots, and its share of the worker threads."""

    def __init__(self, connection: Connection, log: Log) -> None:
        self.connection = connection
        self.roots = Roots(log)
        self.slots = anyio.CapacityLimiter(CALLS)
        self.subscriptions: Subscriptions | None = None
        self.log = ClientLog()
        self.lifecycle = connection.lifecycle

    def close(self) -> None:
        """The client is gone: watch nothing for it."""
        if self.lifecycle is not None:
            self.lifecycle.move(State.SHUTDOWN)
        if self.subscriptions is not None:
            self.subscriptions.close()


FindPeer: TypeAlias = Callable[[ServerRequestContext[Any, Any]], Peer]
"""Tells whose request it is. Over stdio there is one client; over HTTP the session or the token tells."""
