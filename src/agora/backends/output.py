"""What a child writes on standard output and standard error, read as fast as it comes and in its order."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable
from typing import Any

from agora.backends.messages import LARGE, answered_id, messages, unreadable
from agora.backends.words import Skipped, Tail
from agora.text.lines import ENDS, Line, LineSplitter, Oversized

Deliver = Callable[[dict[str, Any]], None]

_TURN = 100_000
"""Bytes that are read in one turn of the event loop, at most: the other backends' turn comes after a millisecond."""
_EACH = 200
"""What a line costs beside its bytes, in the time of as many bytes."""


class Output(asyncio.Protocol):
    """Standard output: delivers every message in order and notes what is none.

    Never more than what one read brings waits here beside the line that is being read.
    """

    def __init__(self, deliver: Deliver, skipped: Skipped, line_bytes: int) -> None:
        self._deliver = deliver
        self._skipped = skipped
        self._limit = line_bytes
        self._splitter = LineSplitter(line_bytes)
        self._lines: deque[Line] = deque()
        self.busy = False
        """Whether something was read that is not delivered yet."""
        self._muted = False
        self._held = False
        self._over = False
        self._transport: asyncio.ReadTransport | None = None
        self.ended: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        """Done when nothing comes any more and everything is delivered."""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Called by the event loop."""
        assert isinstance(transport, asyncio.ReadTransport)
        self._transport = transport

    def data_received(self, data: bytes) -> None:
        """Called by the event loop."""
        if not self._muted:
            self._lines.extend(self._splitter.feed(data))
            self._go_on()

    def connection_lost(self, exc: Exception | None) -> None:
        """Called by the event loop at the end of the stream, or once it is closed here."""
        del exc
        self._over = True
        self._lines.extend(self._splitter.finish())
        self._go_on()

    def mute(self) -> None:
        """Read on and deliver nothing."""
        self._muted = True

    def close(self) -> None:
        """Read no more; what has been read is still delivered."""
        if self._transport is not None:
            self._transport.close()

    def _go_on(self) -> None:
        if self.busy:
            return
        left = _TURN
        while self._lines and left > 0 and not self.busy:
            line = self._lines.popleft()
            if isinstance(line, bytes) and len(line) > LARGE:
                self._read_in_thread(line)
            else:
                self._take(line)
                left -= _EACH + (len(line) if isinstance(line, bytes) else 0)
        if self._lines and not self.busy:
            self.busy = True
            asyncio.get_running_loop().call_soon(self._next)
        self._hold()
        if self._over and not self.busy and not self.ended.done():
            self.ended.set_result(None)

    def _next(self) -> None:
        self.busy = False
        self._go_on()

    def _hold(self) -> None:
        """Read on only when all that was read is delivered."""
        transport = self._transport
        if transport is None or self._over or transport.is_closing() or self._held == self.busy:
            return
        self._held = self.busy
        if self._held:
            transport.pause_reading()
        else:
            transport.resume_reading()

    def _read_in_thread(self, line: bytes) -> None:
        self.busy = True

        def done(reading: asyncio.Future[tuple[list[dict[str, Any]], bool]]) -> None:
            self._give(line, *reading.result())
            self._next()

        asyncio.get_running_loop().run_in_executor(None, messages, line).add_done_callback(done)

    def _take(self, line: Line) -> None:
        if isinstance(line, Oversized):
            self._skip(line.head, line.tail, f"its answer is longer than {self._limit:,} bytes")
        else:
            self._give(line, *messages(line))

    def _give(self, line: bytes, found: list[dict[str, Any]], clean: bool) -> None:
        if self._muted:
            return
        for message in found:
            self._deliver(message)
        if not clean:
            self._skip(line[:ENDS], line[-ENDS:], "its answer is not JSON")

    def _skip(self, head: bytes, tail: bytes, words: str) -> None:
        if self._muted:
            return
        self._skipped.add(head)
        number = answered_id(head, tail)
        if number is not None:
            # Whoever waits for it would wait in vain.
            self._deliver(unreadable(number, words))


class Errors(asyncio.Protocol):
    """Standard error: read all the time, so that the child never waits for it, and its end kept."""

    def __init__(self, tail: Tail) -> None:
        self._tail = tail
        self._transport: asyncio.BaseTransport | None = None
        self.ended: asyncio.Future[None] = asyncio.get_running_loop().create_future()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Called by the event loop."""
        self._transport = transport

    def data_received(self, data: bytes) -> None:
        """Called by the event loop."""
        self._tail.add(data)

    def connection_lost(self, exc: Exception | None) -> None:
        """Called by the event loop."""
        del exc
        if not self.ended.done():
            self.ended.set_result(None)

    def close(self) -> None:
        """Read no more."""
        if self._transport is not None:
            self._transport.close()
