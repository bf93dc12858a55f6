"""A whole server process over stdio, from its first byte to its exit status."""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import suppress
from typing import Any

import anyio
from mcp.server.lowlevel import Server

from agora.text.lines import MAX_LINE_BYTES, Line
from agora.transport.connection import serve_connection
from agora.transport.lifetime import Ending, on_parent_death, on_signals
from agora.transport.options import ConnectionOptions
from agora.transport.pipes import PipeFrames, PipeLines
from agora.transport.stdio import claim_stdio

_DEFAULTS = ConnectionOptions()


def run_stdio(
    make_server: Callable[[], Awaitable[Server[Any]] | Server[Any]],
    *,
    on_ready: Callable[[], None] | None = None,
    on_stop: Callable[[], None] | None = None,
    options: ConnectionOptions = _DEFAULTS,
    max_line_bytes: int = MAX_LINE_BYTES,
) -> int:
    """Serve one client on standard input and output; returns the process's exit status.

    `make_server` runs in the event loop, once the streams are claimed; what the client sends meanwhile waits.
    `on_ready` is called when it is done, before the first message. `on_stop` is called once at the end,
    also if `make_server` failed, in a thread of its own.

    Ends on the end of input, SIGTERM, SIGINT, SIGHUP, Ctrl-Break, when the client reads no more and when the
    parent process is gone: the status is then 0, or 1 if `on_stop` failed. From there the process has
    `options.drain_seconds` + 0.35 s (1.85 s by default) to exit; after that it is ended hard (see `Ending`),
    so this is the last thing that a process does. Main thread only.

    Raises:
        ConfigError: standard input or output is closed.
        Exception: whatever `make_server` or `on_ready` raised.
    """
    streams = claim_stdio()
    ending = Ending(on_stop, options.drain_seconds, options.log)

    async def serve() -> None:
        loop = asyncio.get_running_loop()
        stop = anyio.Event()
        starting = anyio.CancelScope()

        def stop_now() -> None:
            stop.set()
            starting.cancel()

        def end(reason: str) -> None:
            ending.begin(reason)
            # The loop may be closed already: then there is nothing left to stop.
            with suppress(RuntimeError):
                loop.call_soon_threadsafe(stop_now)

        async def lines() -> AsyncIterator[Line]:
            async for line in PipeLines(streams.read_fd, max_line_bytes):
                yield line
            ending.begin("end of input")

        async def write(frame: bytes) -> None:
            try:
                await frames.write(frame)
            except anyio.BrokenResourceError:
                ending.begin("the client reads no more")
                raise

        on_signals(end)
        on_parent_death(streams.parent, end)
        frames = PipeFrames(streams.write_fd)
        with starting:
            made = make_server()
            server = await made if inspect.isawaitable(made) else made
        if starting.cancelled_caught:
            return
        if on_ready is not None:
            on_ready()
        await serve_connection(server, lines(), write, stop=stop, options=options)

    try:
        anyio.run(serve)
    finally:
        status = ending.finish()
    return status
