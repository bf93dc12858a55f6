"""One client as the protocol layer sees it, and how a request finds its own."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeAlias

import anyio
from mcp.server.context import ServerRequestContext

from agora.ports.log import Log
from agora.protocol.context import Connection
from agora.protocol.roots import Roots

CALLS = 16
"""Calls of one client that run at the same time; more wait their turn."""


class Peer:
    """A client's connection, its roots, and its share of the worker threads."""

    def __init__(self, connection: Connection, log: Log) -> None:
        self.connection = connection
        self.roots = Roots(log)
        self.slots = anyio.CapacityLimiter(CALLS)


FindPeer: TypeAlias = Callable[[ServerRequestContext[Any, Any]], Peer]
"""Tells whose request it is. Over stdio there is one client; over HTTP the session or the token tells."""
