"""Who is connected to the shared server."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from agora.daemon.hello import Hello
from agora.protocol.peer import Peer


@dataclass(slots=True)
class Client:
    """One session."""

    number: int
    hello: Hello
    peer: Peer
    since: float = field(default_factory=time.time)

    def details(self) -> dict[str, Any]:
        """What `agora server status` shows of it."""
        lifecycle = self.peer.lifecycle
        return {
            "session": self.peer.connection.session,
            "pid": self.hello.pid,
            "version": self.hello.version,
            "folder": self.hello.cwd,
            "namespace": self.peer.connection.namespace,
            "seconds": round(time.time() - self.since, 1),
            **({} if lifecycle is None else lifecycle.details()),
        }


class Clients:
    """The sessions that are open now. Used by the event loop alone, but for `details` and `len`."""

    def __init__(self) -> None:
        self._open: dict[int, Client] = {}
        self._count = 0
        self.idle_since = time.monotonic()

    def __len__(self) -> int:
        """How many there are."""
        return len(self._open)

    @property
    def total(self) -> int:
        """How many there have been."""
        return self._count

    @contextmanager
    def present(self, hello: Hello, peer: Peer) -> Iterator[Client]:
        """While the block runs, the session is open."""
        self._count += 1
        client = self._open[self._count] = Client(self._count, hello, peer)
        try:
            yield client
        finally:
            del self._open[client.number]
            self.idle_since = time.monotonic()
            peer.close()

    def details(self) -> list[dict[str, Any]]:
        """Every open session as plain data."""
        return [client.details() for client in list(self._open.values())]
