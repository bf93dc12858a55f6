from __future__ import annotations

from collections.abc import Callable

from agora.backends.channel import Channel
from agora.backends.session import McpSession
from agora.config.backends import BackendTable
from agora.ports.backends import Told


class McpConnector:
    """Implements `agora.ports.backends.Connector`, with a channel by the transport of the table."""

    def __init__(self, channel: Callable[[BackendTable], Channel]) -> None:
        self._channel = channel

    async def connect(self, backend: BackendTable, told: Told) -> McpSession:
        """As `Connector.connect`."""
        session = McpSession(backend.name, self._channel(backend), told)
        await session.open(backend.start_timeout)
        return session
