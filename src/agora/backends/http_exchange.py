"""One message and what answers it, over Streamable HTTP."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Callable
from contextlib import aclosing, suppress

import httpx2

from agora.backends.http_events import LARGEST, EventTooLarge
from agora.backends.http_headers import MessageHeaders
from agora.backends.http_json import Message, Unreadable, error_in, is_answer, read, written
from agora.backends.http_link import Cut, Link, pieces
from agora.backends.http_listener import MAY_PASS, Listener, open_stream
from agora.backends.http_stream import MessageStream, kind_of
from agora.backends.http_wording import Wording, no_such_session
from agora.config.backends import BackendTable
from agora.errors import BackendError

_GOODBYE = 1.0
"""Seconds that telling the server of the end may take, and again closing the connections."""

_ENDING = 0.5
"""Seconds after an answer in which its stream may end: only then does its connection serve the next request."""

_REFUSAL, _REFUSAL_SECONDS = 65_536, 2.0
"""Bytes that are read of an answer that is none, to see why, and seconds that this may take."""

_AGAIN = (0.25, 0.5)
"""Seconds before a stream is asked for again that could not be resumed; after that nobody knows what became of it."""

_USUAL_WAIT, _SHORTEST_WAIT, _LONGEST_WAIT = 0.1, 0.02, 30.0
"""Seconds before a stream is resumed, where the server asks for none; and bounds for what it asks for."""

_UNREAD = frozenset({-32000, -32001, -32600})
"""Codes of the protocol by which servers refuse a request before they look at what it asks for."""

_MAYBE = "What the call asks for may have happened."


class Exchanges:
    """The requests of one session. Imports the client and reads certificates: make it in a thread.

    Raises: WrongTable.
    """

    def __init__(self, backend: BackendTable, wording: Wording, headers: MessageHeaders) -> None:
        self._link = Link(backend)
        self._patience = backend.timeout
        self._wording = wording
        self._headers = headers
        self._deliver: Callable[[Message], None] = _nobody
        self._lose: Callable[[], None] = _nothing
        self._initialized = False
        self._listener: asyncio.Task[None] | None = None
        self._ending: set[asyncio.Task[None]] = set()

    def begin(self, deliver: Callable[[Message], None], lose: Callable[[], None]) -> None:
        """Name who gets what comes, and who is told that the server has ended the session."""
        self._deliver, self._lose = deliver, lose

    async def post(self, message: Message) -> None:
        """As `Channel.send`."""
        asks = "method" in message and "id" in message
        try:
            # Only an answer may take its time: what asks for none is taken, or refused, at once.
            response = await self._link.request(
                "POST", self._headers.of(message), written(message), seconds=None if asks else self._patience
            )
        except Cut as cut:
            raise self._cut(cut) from None
        open_still = True
        try:
            if not 200 <= response.status_code < 300:
                await self._refused(response, message)
            elif asks:
                open_still = await self._answered(response, message)
            elif message.get("method") == "notifications/initialized":
                self._initialized = True
                self.listen()
        except Cut as cut:
            raise self._cut(cut) from None
        except EventTooLarge:
            raise self._wording.too_large(LARGEST) from None
        finally:
            if open_still:
                await response.aclose()

    def listen(self) -> None:
        """Open the stream for what comes unasked, once the handshake is over and if there is a session for it."""
        ready = self._initialized and self._headers.session and self._headers.protocol
        if ready and self._listener is None and not self._headers.stateless({}):
            listener = Listener(self._link, self._headers, self._deliver, self._lose)
            self._listener = asyncio.create_task(listener.run(), name="agora-backend-events")

    async def close(self, *, goodbye: bool) -> None:
        """Close all connections; before that, with `goodbye`, end the session at the server."""
        tasks = [*self._ending, *([self._listener] if self._listener else [])]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        try:
            if goodbye and self._headers.session:
                with suppress(Cut, TimeoutError):
                    async with asyncio.timeout(_GOODBYE):
                        response = await self._link.request("DELETE", self._headers.of_session(), seconds=_GOODBYE)
                        await response.aclose()
        finally:
            with suppress(TimeoutError):
                async with asyncio.timeout(_GOODBYE):
                    await self._link.close()

    def _cut(self, cut: Cut) -> BackendError:
        return self._wording.unknown(cut.reason) if cut.sent else self._wording.unreachable(cut.reason)

    async def _answered(self, response: httpx2.Response, message: Message) -> bool:
        """Deliver what answers the request; whether the response is still to be closed."""
        if message["method"] == "initialize":
            self._headers.session = response.headers.get("mcp-session-id", "")
        kind = kind_of(response)
        if kind == "text/event-stream":
            await self._streamed(MessageStream(response), message)
            return False
        if kind != "application/json":
            came = f"it answers a request with {kind or 'nothing'} (status {response.status_code})"
            raise self._wording.wrong(came, _MAYBE)
        try:
            found = await read(await self._body(response, LARGEST))
        except Unreadable as error:
            raise self._wording.wrong(f"its answer cannot be read: {error}", _MAYBE) from None
        if not self._take(found, message):
            raise self._wording.wrong("what it sends does not answer the request", _MAYBE)
        return True

    async def _streamed(self, stream: MessageStream, message: Message) -> None:
        """Deliver what comes until the answer is there, on as many streams as it takes. Closes them."""
        barren = 0
        while True:
            messages = stream.messages()
            reason = "its stream ended before the answer"
            try:
                async for found in messages:
                    if self._take([found], message):
                        self._leave(messages, stream)
                        return
            except Cut as cut:
                reason = cut.reason
            except BaseException:
                await messages.aclose()
                await stream.close()
                raise
            await stream.close()
            if not stream.last_id:
                raise self._wording.unknown(reason)
            barren = 0 if stream.heard else barren + 1
            stream = await self._resumed(stream, reason, barren)

    async def _resumed(self, before: MessageStream, reason: str, barren: int) -> MessageStream:
        """The stream that goes on where `before` broke off; later after `barren` ones in a row that brought nothing.

        Raises: OutcomeUnknown if there is none.
        """
        asked = _USUAL_WAIT if before.retry is None else before.retry
        asked = max(_SHORTEST_WAIT, asked) * 2 ** min(barren, 10)
        for wait in (min(_LONGEST_WAIT, asked), *_AGAIN):
            await asyncio.sleep(wait)
            try:
                response = await open_stream(self._link, self._headers, before.last_id)
            except Cut:
                continue
            if response.status_code == 200 and kind_of(response) == "text/event-stream":
                return MessageStream(response, before.last_id, before.retry)
            await response.aclose()
            if response.status_code < 500 and response.status_code not in MAY_PASS:
                if response.status_code == 404 and self._headers.session:
                    self._lose()
                break
        raise self._wording.unknown(f"{reason}, and it could not be resumed")

    def _leave(self, messages: AsyncGenerator[Message], stream: MessageStream) -> None:
        """Read on for a moment, so that the connection is free for the next request; nobody waits for that."""

        async def ending() -> None:
            try:
                with suppress(Cut, EventTooLarge, TimeoutError):
                    async with asyncio.timeout(_ENDING), aclosing(messages):
                        async for more in messages:
                            self._deliver(more)
            finally:
                await stream.close()

        task = asyncio.create_task(ending(), name="agora-backend-ending")
        self._ending.add(task)
        task.add_done_callback(self._ending.discard)

    def _take(self, found: list[Message], message: Message) -> bool:
        """Deliver messages; whether one of them answers `message`."""
        answered = False
        for one in found:
            if not answered and is_answer(one) and _is_for(one, message["id"]):
                answered = True
                one["id"] = message["id"]
                if message["method"] == "tools/list" and self._headers.stateless(message):
                    self._headers.learn(one.get("result"))
            self._deliver(one)
        return answered

    async def _refused(self, response: httpx2.Response, message: Message) -> None:
        """Deliver the answer that came with a status of failure, or raise what the status means."""
        status = response.status_code
        body = b""
        with suppress(Cut, TimeoutError):
            async with asyncio.timeout(_REFUSAL_SECONDS):
                body = bytes(await self._body(response, _REFUSAL, whole=False))
        found: list[Message] = []
        with suppress(Unreadable):
            found = await read(body)
        error = error_in(found)
        asks = "method" in message and "id" in message
        ours = error is not None and asks and found[0].get("id") == message["id"]
        read_it = ours and error is not None and error["code"] not in _UNREAD
        unknown = status == 404 or (status == 400 and no_such_session(error, body))
        if unknown and self._headers.session and message.get("method") != "initialize" and not read_it:
            # A message of a session that is not known was not dealt with, and never will be.
            self._lose()
            raise self._wording.forgotten()
        if error is not None and asks and status not in {401, 403, 429, 503} and (ours or status < 500):
            self._deliver({"jsonrpc": "2.0", "id": message["id"], "error": error})
            return
        first = message.get("method") == "initialize"
        raise self._wording.refusal(status, response.headers, body, first=first)

    async def _body(self, response: httpx2.Response, most: int, *, whole: bool = True) -> bytearray:
        """The body; with more than `most` bytes an error, or where it need not be whole, its beginning.

        Raises: Cut; BackendProtocolError.
        """
        body = bytearray()
        length = response.headers.get("content-length", "")
        if whole and length.isdecimal() and len(length) < 20 and int(length) > most:
            raise self._wording.too_large(most)
        async with aclosing(pieces(response)) as coming:
            async for piece in coming:
                body += piece
                if len(body) > most:
                    if not whole:
                        del body[most:]
                        break
                    raise self._wording.too_large(most)
        return body


def _is_for(answer: Message, ours: object) -> bool:
    """Whether an answer is the one to the request `ours`. Some make a text of a number, and some errors have no id."""
    came = answer.get("id")
    return came == ours or came == str(ours) or (came is None and "error" in answer)


def _nobody(_: Message) -> None:
    """Nobody is there before `begin`."""


def _nothing() -> None:
    """As `_nobody`."""
