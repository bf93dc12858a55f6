"""The messages of one event stream."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from contextlib import aclosing

import httpx2

from agora.backends.http_events import EventReader
from agora.backends.http_json import Message, Unreadable, read
from agora.backends.http_link import pieces


class MessageStream:
    """One answer of kind `text/event-stream`. `last_id` and `retry` are those of the stream that it resumes."""

    def __init__(self, response: httpx2.Response, last_id: str = "", retry: float | None = None) -> None:
        self._response = response
        self._events = EventReader(last_id)
        self._retry = retry
        self.heard = False
        """Whether it brought an event."""

    @property
    def last_id(self) -> str:
        """What a stream that goes on after this one is asked for with; empty if nothing says where it broke off."""
        return self._events.last_id

    @property
    def retry(self) -> float | None:
        """Seconds that the server asks to wait before that."""
        return self._retry if self._events.retry is None else self._events.retry / 1000

    async def messages(self) -> AsyncGenerator[Message]:
        """What it brings until it ends. Events that hold no message of the protocol are passed over.

        Raises: Cut; EventTooLarge.
        """
        async with aclosing(pieces(self._response)) as body:
            async for piece in body:
                for event in self._events.feed(piece):
                    self.heard = True
                    if event.kind != "message" or not event.data:
                        # An empty one only gives an id to resume from.
                        continue
                    try:
                        messages = await read(event.data)
                    except Unreadable:
                        continue
                    for message in messages:
                        yield message

    async def close(self) -> None:
        """Close the connection, unless the stream has ended by itself."""
        await self._response.aclose()


def kind_of(response: httpx2.Response) -> str:
    """The media type of an answer, without parameters, in lower case."""
    return str(response.headers.get("content-type", "")).partition(";")[0].strip().lower()
