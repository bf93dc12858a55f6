"""One client as the protocol layer sees it, how a request finds its own, and when it is a client's turn."""

from __future__ import annotations

from collections import deque
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from typing import Any, TypeAlias

import anyio
from mcp.server.context import ServerRequestContext

from agora.ports.log import Log
from agora.protocol.client_log import ClientLog
from agora.protocol.context import Connection
from agora.protocol.lifecycle import State
from agora.protocol.roots import Roots
from agora.protocol.subscriptions import Subscriptions

CALLS = 4
"""Calls of one client that run at the same time; more wait their turn.

They compute, and share one interpreter: a client that floods a server with them has so many parts of it against each
other client's one (`bench/fleet`)."""


class Share:
    """One client's part of the turns: how many of its calls run, and which wait, first come first."""

    def __init__(self) -> None:
        self.running = 0
        self.last = 0
        """The number of its last turn; who had none yet comes before all who had."""
        self.waiting: deque[anyio.Event] = deque()


class Turns:
    """Lets `most` calls run at the same time, at most `each` of one client; the rest wait.

    The last `kept` turns are for clients of whom nothing runs, so that who comes new begins at once, however many calls
    others have sent. Whose client has the fewest calls running goes first, and of equals who had its turn longest
    ago. Used by the event loop alone.
    """

    def __init__(self, most: int, *, each: int = CALLS, kept: int = 0) -> None:
        self._free = most
        self._each = each
        self._kept = kept
        self._given = 0
        # Of whom calls wait, in the order in which they came: a set would have none.
        self._shares: dict[Share, None] = {}

    @asynccontextmanager
    async def turn(self, share: Share) -> AsyncIterator[None]:
        """The block is one call of that client: it begins when it is the call's turn."""
        mine = anyio.Event()
        share.waiting.append(mine)
        self._shares.setdefault(share)
        self._give()
        try:
            await mine.wait()
            yield
        finally:
            if mine.is_set():
                share.running -= 1
                self._free += 1
                self._give()
            else:
                share.waiting.remove(mine)
            if not share.waiting:
                self._shares.pop(share, None)

    def _give(self) -> None:
        while (share := min(filter(self._may, self._shares), key=_precedence, default=None)) is not None:
            share.waiting.popleft().set()
            share.running += 1
            self._given += 1
            share.last = self._given
            self._free -= 1

    def _may(self, share: Share) -> bool:
        """Whether the client's next call may begin."""
        free = self._free - (self._kept if share.running else 0)
        return bool(share.waiting) and share.running < self._each and free > 0


def _precedence(share: Share) -> tuple[int, int]:
    return share.running, share.last


class Peer:
    """A client's connection, its roots, and its share of the worker threads."""

    def __init__(self, connection: Connection, log: Log) -> None:
        self.connection = connection
        self.roots = Roots(log)
        self.share = Share()
        self.waiting = Share()
        """Its share of the calls that wait for other programs."""
        self.subscriptions: Subscriptions | None = None
        self.log = ClientLog()
        self.lifecycle = connection.lifecycle
        self.names: Mapping[str, tuple[str, str]] | None = None
        """Whose each tool of another server is that the client was shown last, by its name there; None if none was."""
        self.prompts: Mapping[str, tuple[str, str]] | None = None
        """The same of prompts."""

    def close(self) -> None:
        """The client is gone: watch nothing for it."""
        if self.lifecycle is not None:
            self.lifecycle.move(State.SHUTDOWN)
        if self.subscriptions is not None:
            self.subscriptions.close()


FindPeer: TypeAlias = Callable[[ServerRequestContext[Any, Any]], Peer]
"""Tells whose request it is. Over stdio there is one client; over HTTP the session or the token tells."""
