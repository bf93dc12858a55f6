"""Blocking pipes for an event loop: one daemon thread reads a descriptor, one writes another.

Threads, because this works for pipes, files and consoles on every platform. Daemons, because a blocked
read cannot be interrupted and must not keep the process.
"""

from __future__ import annotations

import asyncio
import os
import select
import sys
import threading
import time
from contextlib import suppress
from queue import SimpleQueue
from typing import Self

import anyio

from agora.text.lines import MAX_LINE_BYTES, Line, LineSplitter

CHUNK_BYTES = 64 * 1024

# The reader stops when lines of this size wait for the loop; one longer line may always be on its way.
READ_AHEAD_BYTES = 1024 * 1024

# What a waiting line costs besides its bytes: blank input must not be free.
_LINE_OVERHEAD = 128


class PipeLines:
    """The lines of a descriptor as an async iterator, read ahead no further than `READ_AHEAD_BYTES`.

    Made inside a running event loop; reading starts at once. An error of the descriptor ends the lines as
    the end of input does.
    """

    def __init__(self, fd: int, max_line_bytes: int = MAX_LINE_BYTES) -> None:
        self._fd = fd
        self._splitter = LineSplitter(max_line_bytes)
        self._loop = asyncio.get_running_loop()
        self._waiting = 0
        self._room = threading.Condition()
        # None is the end. Bounded by `_waiting`: a bound of its own would block the loop, not the thread.
        self._lines: asyncio.Queue[Line | None] = asyncio.Queue()
        threading.Thread(target=self._pump, name="agora-stdin", daemon=True).start()

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> Line:
        line = await self._lines.get()
        if line is None:
            raise StopAsyncIteration
        with self._room:
            self._waiting -= _cost(line)
            self._room.notify()
        return line

    def _pump(self) -> None:
        # A RuntimeError says that the loop is closed: nobody wants the rest.
        with suppress(RuntimeError):
            while chunk := _read(self._fd):
                for line in self._splitter.feed(chunk):
                    self._put(line)
            for line in self._splitter.finish():
                self._put(line)
            self._loop.call_soon_threadsafe(self._lines.put_nowait, None)

    def _put(self, line: Line) -> None:
        cost = _cost(line)
        with self._room:
            self._room.wait_for(lambda: self._waiting == 0 or self._waiting + cost <= READ_AHEAD_BYTES)
            self._waiting += cost
        self._loop.call_soon_threadsafe(self._lines.put_nowait, line)


class PipeFrames:
    """Writes whole frames to a descriptor without ever blocking the event loop."""

    def __init__(self, fd: int) -> None:
        self._fd = fd
        self._loop = asyncio.get_running_loop()
        self._queue: SimpleQueue[tuple[bytes, asyncio.Future[None]]] = SimpleQueue()
        threading.Thread(target=self._pump, name="agora-stdout", daemon=True).start()

    async def write(self, frame: bytes) -> None:
        """Return when all of `frame` is in the pipe. A cancelled call still writes all of it.

        Raises:
            anyio.BrokenResourceError: nobody reads any more.
        """
        written = self._loop.create_future()
        self._queue.put((frame, written))
        await written

    def _pump(self) -> None:
        with suppress(RuntimeError):
            while True:
                frame, written = self._queue.get()
                try:
                    _write_all(self._fd, frame)
                except OSError:
                    self._loop.call_soon_threadsafe(_resolve, written, anyio.BrokenResourceError())
                else:
                    self._loop.call_soon_threadsafe(_resolve, written, None)


def _resolve(future: asyncio.Future[None], problem: Exception | None) -> None:
    if future.done():
        return
    if problem is None:
        future.set_result(None)
    else:
        future.set_exception(problem)


def _cost(line: Line) -> int:
    return _LINE_OVERHEAD + (len(line) if isinstance(line, bytes) else 0)


def _read(fd: int) -> bytes:
    """The next bytes of `fd`; none at its end, and none when it can no longer be read."""
    while True:
        try:
            return os.read(fd, CHUNK_BYTES)
        except BlockingIOError:
            _wait(fd, writing=False)
        except OSError:
            return b""


def _write_all(fd: int, frame: bytes) -> None:
    rest = memoryview(frame)
    while rest:
        try:
            rest = rest[os.write(fd, rest) :]
        except BlockingIOError:
            _wait(fd, writing=True)


def _wait(fd: int, *, writing: bool) -> None:
    """Return when a non-blocking `fd` may go on. The other side of a pipe may have made it so."""
    if sys.platform == "win32":
        time.sleep(0.01)  # `select` takes sockets alone there
    else:
        select.select([] if writing else [fd], [fd] if writing else [], [])
