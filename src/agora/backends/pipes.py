"""The writing ends of pipes to a child, which may read slowly, or never."""

from __future__ import annotations

import asyncio
import os
from contextlib import suppress
from typing import IO, Protocol


class Writer(Protocol):
    """Writes one message at a time; who wants to write another waits for the first."""

    @property
    def cut(self) -> bool:
        """Whether the last message may have been written in part: another one after it would make no sense."""
        ...

    async def write(self, data: bytes) -> None:
        """Write all of `data`; returns when the pipe has taken it. May be cancelled.

        Raises: OSError if the other end is closed; `cut` then says whether some of it may have arrived.
        """
        ...

    def close(self) -> None:
        """End the child's input; a write under way fails."""
        ...


class PipeWriter:
    """On POSIX: knows of every byte whether it was written."""

    def __init__(self, pipe: IO[bytes]) -> None:
        """`pipe` is an unbuffered file; it is closed by `close`."""
        self._pipe = pipe
        self._fd = pipe.fileno()
        self._waiting: asyncio.Future[None] | None = None
        self._closed = False
        self.cut = False
        os.set_blocking(self._fd, False)

    async def write(self, data: bytes) -> None:
        """As `Writer.write`."""
        rest = memoryview(data)
        while True:
            if self._closed:
                raise BrokenPipeError("closed")
            with suppress(BlockingIOError):
                rest = rest[os.write(self._fd, rest) :]
            self.cut = 0 < len(rest) < len(data)
            if not rest:
                return
            await self._writable()

    async def _writable(self) -> None:
        loop = asyncio.get_running_loop()
        self._waiting = waiting = loop.create_future()
        loop.add_writer(self._fd, _wake, waiting)
        try:
            await waiting
        finally:
            self._waiting = None
            if not self._closed:
                loop.remove_writer(self._fd)

    def close(self) -> None:
        """As `Writer.close`."""
        if self._closed:
            return
        self._closed = True
        if self._waiting is not None:
            self._waiting.get_loop().remove_writer(self._fd)
            _wake(self._waiting)
        with suppress(OSError):
            self._pipe.close()


class TransportWriter(asyncio.BaseProtocol):
    """Through the event loop's own pipes, which Windows needs: once a write has begun, any of it may have arrived."""

    def __init__(self) -> None:
        self._transport: asyncio.WriteTransport | None = None
        self._waiting: asyncio.Future[None] | None = None
        self._lost = False
        self.cut = False

    @classmethod
    async def connected(cls, pipe: IO[bytes]) -> TransportWriter:
        """A writer to `pipe`, which is closed by `close`."""
        _, writer = await asyncio.get_running_loop().connect_write_pipe(cls, pipe)
        return writer

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Called by the event loop."""
        assert isinstance(transport, asyncio.WriteTransport)
        self._transport = transport
        # Everything is written before `write` returns.
        transport.set_write_buffer_limits(0)

    async def write(self, data: bytes) -> None:
        """As `Writer.write`."""
        transport = self._transport
        assert transport is not None
        if self._lost or transport.is_closing():
            raise BrokenPipeError("closed")
        transport.write(data)
        if transport.is_closing():
            # It failed at once.
            raise BrokenPipeError("closed")
        if transport.get_write_buffer_size():
            self.cut = True
            self._waiting = waiting = asyncio.get_running_loop().create_future()
            try:
                await waiting
            finally:
                self._waiting = None
            if self._lost:
                raise BrokenPipeError("closed")
        self.cut = False

    def pause_writing(self) -> None:
        """Called by the event loop when not all could be written at once."""

    def resume_writing(self) -> None:
        """Called by the event loop when all is written."""
        if self._waiting is not None:
            _wake(self._waiting)

    def connection_lost(self, exc: Exception | None) -> None:
        """Called by the event loop when the other end is closed."""
        del exc
        self._lost = True
        if self._waiting is not None:
            _wake(self._waiting)

    def close(self) -> None:
        """As `Writer.close`."""
        # Not twice: Python 3.11 stumbles over a second one.
        if self._transport is not None and not self._transport.is_closing():
            self._transport.abort()


def _wake(waiting: asyncio.Future[None]) -> None:
    if not waiting.done():
        waiting.set_result(None)
