"""The channel to a backend that speaks Streamable HTTP."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from agora.backends.http_headers import MessageHeaders
from agora.backends.http_wording import Wording
from agora.config.backends import BackendTable

if TYPE_CHECKING:
    from agora.backends.http_exchange import Exchanges

_OVER = "the server knows the session no longer"
_CLOSED = "the channel was closed"


class HttpChannel:
    """A session with the server at the `url` of a table. On one event loop.

    Each message is a POST, whose answer comes as JSON or as a stream of events; a stream that breaks off is resumed
    where the server gave its events ids. After the handshake of a session, a second stream brings what the server
    sends by itself.
    """

    def __init__(self, backend: BackendTable) -> None:
        self._backend = backend
        self._wording = Wording(backend)
        self._headers = MessageHeaders()
        self._exchanges: Exchanges | None = None
        self._running: set[asyncio.Timeout] = set()
        self._lost: Callable[[str], None] = _nobody
        self._end: str | None = "the channel is not open"
        self._closing = asyncio.Lock()

    async def open(self, deliver: Callable[[dict[str, Any]], None], lost: Callable[[str], None]) -> None:
        """Get ready; whether somebody answers shows with the first message.

        `deliver` gets every message that comes; `lost` is told once when the server has ended the session.

        Raises: BackendUnavailable if the table cannot be used.
        """
        # Imports and certificates take 0.2 s, for which nothing else should have to wait.
        exchanges = await asyncio.to_thread(self._prepared)
        exchanges.begin(deliver, self._lose)
        self._exchanges, self._lost, self._end = exchanges, lost, None

    async def send(self, message: dict[str, Any]) -> None:
        """Send one message; returns when what answers it was delivered, or when it was taken if it asks for nothing.

        It waits for an answer as long as it takes. Cancelling closes the exchange.

        Raises: BackendUnavailable if it was not dealt with; OutcomeUnknown if it may have been; BackendProtocolError.
        """
        if self._end is not None or self._exchanges is None:
            raise self._wording.unavailable(self._end or _CLOSED)
        if message.get("method") == "notifications/cancelled" and self._headers.stateless(message):
            # Without sessions, the end of the exchange says it.
            return
        try:
            async with asyncio.timeout(None) as running:
                self._running.add(running)
                try:
                    await self._exchanges.post(message)
                finally:
                    self._running.discard(running)
        except TimeoutError:
            raise self._wording.unknown(f"no answer came before {self._end or _CLOSED}") from None

    def negotiated(self, protocol: str) -> None:
        """From now on every request names this revision."""
        self._headers.protocol = protocol
        if self._exchanges is not None and self._end is None:
            self._exchanges.listen()

    @property
    def alive(self) -> bool:
        """Whether messages can be sent: not before `open`, nor after the end of the session or of the channel."""
        return self._end is None

    @property
    def last_words(self) -> str:
        """Nothing: no standard error comes over HTTP."""
        return ""

    async def close(self) -> None:
        """End the session at the server, what is still under way, and all connections; within about 2 seconds."""
        known = self._end is None
        self._end = self._end or _CLOSED
        now = asyncio.get_running_loop().time()
        while self._running:
            self._running.pop().reschedule(now)
        async with self._closing:
            if self._exchanges is not None:
                await self._exchanges.close(goodbye=known)
                self._exchanges = None

    def _prepared(self) -> Exchanges:
        from agora.backends.http_exchange import Exchanges  # noqa: PLC0415 - 0.1 s for a client that few need
        from agora.backends.http_link import WrongTable  # noqa: PLC0415 - as above

        try:
            return Exchanges(self._backend, self._wording, self._headers)
        except WrongTable as error:
            raise self._wording.unavailable(
                f"{error}", f"Correct the table of the backend {self._backend.name!r} in agora.toml."
            ) from None

    def _lose(self) -> None:
        """The server has ended the session, or has forgotten it."""
        if self._end is None:
            self._end = _OVER
            self._lost(_OVER)


def _nobody(_: str) -> None:
    """Nobody is told before `open`."""
