"""The stream on which a server sends what nobody asked for: notifications, and requests of its own."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Callable
from contextlib import aclosing

import httpx2

from agora.backends.http_events import EventTooLarge
from agora.backends.http_headers import MessageHeaders
from agora.backends.http_json import Message
from agora.backends.http_link import Cut, Link
from agora.backends.http_stream import MessageStream, kind_of

_SHORTEST_WAIT, _FIRST_WAIT, _LONGEST_WAIT = 0.1, 1.0, 60.0
"""Seconds before a new stream: at least; where the server names none, doubled for each that fails; and at most."""

_SESSION_UNKNOWN = 404
MAY_PASS = frozenset({408, 409, 425, 429})
"""Statuses of refusal that are no last word; 409 where it has not noticed yet that the stream before is gone."""


class Listener:
    """Opens the stream again whenever it ends, for as long as the session lives."""

    def __init__(
        self, link: Link, headers: MessageHeaders, deliver: Callable[[Message], None], over: Callable[[], None]
    ) -> None:
        self._link = link
        self._headers = headers
        self._deliver = deliver
        self._over = over
        self._last_id = ""
        self._retry: float | None = None
        self._offered = False

    async def run(self) -> None:
        """Deliver what comes; returns when the server offers no such stream, or knows the session no longer."""
        failed = 0
        while True:
            try:
                heard = await self._once()
            except (Cut, EventTooLarge) as error:
                if isinstance(error, EventTooLarge):
                    # To go on from where it was would bring it again.
                    self._last_id = ""
                heard = False
            if heard is None:
                return
            failed = 0 if heard else failed + 1
            await asyncio.sleep(self._wait(failed))

    async def _once(self) -> bool | None:
        """One stream until it ends: whether it brought something; None if there will never be one.

        Raises: Cut; EventTooLarge.
        """
        response = await open_stream(self._link, self._headers, self._last_id)
        try:
            if response.status_code != 200 or kind_of(response) != "text/event-stream":
                return self._refused(response.status_code)
            self._offered = True
            stream = MessageStream(response, self._last_id, self._retry)
            try:
                async with aclosing(stream.messages()) as messages:
                    async for message in messages:
                        self._deliver(message)
            finally:
                self._last_id, self._retry = stream.last_id, stream.retry
            return stream.heard
        finally:
            await response.aclose()

    def _refused(self, status: int) -> bool | None:
        if status >= 500 or status in MAY_PASS:
            return False
        # A server without this stream may answer 404 too; only where there was one, it is the session that is gone.
        if status == _SESSION_UNKNOWN and self._offered:
            self._over()
        return None

    def _wait(self, failed: int) -> float:
        asked = _FIRST_WAIT if self._retry is None else self._retry
        # Spread, so that not all clients of a server that restarts come at once.
        spread = random.uniform(1, 1.25)  # noqa: S311 - keeps clients apart, hides nothing
        return min(_LONGEST_WAIT, max(_SHORTEST_WAIT, asked) * float(2 ** min(failed, 10))) * spread


async def open_stream(link: Link, headers: MessageHeaders, last_id: str) -> httpx2.Response:
    """The answer to a GET for events, after the event `last_id` where there is one; to be closed.

    Raises: Cut.
    """
    asked = headers.of_session() | {"accept": "text/event-stream", "cache-control": "no-store"}
    if last_id:
        asked["last-event-id"] = last_id.encode()
    return await link.request("GET", asked, seconds=None)
