"""Transports of lines: the server in this process, and `agora serve` behind pipes."""

from __future__ import annotations

import asyncio
import json
import math
import os
import subprocess
import sys
import threading
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Mapping
from contextlib import AbstractAsyncContextManager, asynccontextmanager, suppress
from dataclasses import dataclass
from itertools import count
from typing import Any, Protocol

import anyio
import anyio.to_thread
from anyio.streams.memory import MemoryObjectReceiveStream
from mcp.shared.message import SessionMessage
from mcp_types import jsonrpc_message_adapter
from tests.integration.clients import PATIENCE, environment
from tests.protocol.wires import Place, Wire, members

from agora.app.agora import Agora
from agora.config.load import load_settings
from agora.daemon import control
from agora.protocol.lifecycle import Lifecycle, State
from agora.protocol.peer import Peer
from agora.protocol.server import make_server
from agora.transport.connection import serve_connection
from agora.transport.options import ConnectionOptions

_numbers = count(1)


@dataclass(frozen=True)
class Ends:
    """A client's two ends of a connection that carries one message a line."""

    send: Callable[[bytes], Awaitable[None]]
    lines: MemoryObjectReceiveStream[bytes]


class Source(Protocol):
    """Where connections of lines come from."""

    def ends(self, *, fresh: bool) -> AbstractAsyncContextManager[Ends]:
        """A connection, for as long as the block runs."""
        ...

    def close(self) -> None:
        """End what serves them."""
        ...


class OverLines:
    """The way of a transport of lines."""

    def __init__(self, source: Source) -> None:
        self._source = source

    @asynccontextmanager
    async def transport(self, *, fresh: bool) -> AsyncIterator[Any]:
        """The streams that the SDK's client wants."""
        async with self._source.ends(fresh=fresh) as ends:
            arrived, read = anyio.create_memory_object_stream[SessionMessage | Exception](0)
            write, leaving = anyio.create_memory_object_stream[SessionMessage](0)

            async def take() -> None:
                with suppress(anyio.BrokenResourceError, anyio.ClosedResourceError):
                    async for line in ends.lines:
                        await arrived.send(SessionMessage(jsonrpc_message_adapter.validate_json(line)))
                arrived.close()

            async def give() -> None:
                async for message in leaving:
                    await ends.send(message.message.model_dump_json(by_alias=True, exclude_unset=True).encode())

            async with arrived, read, write, leaving, anyio.create_task_group() as tasks:
                tasks.start_soon(take)
                tasks.start_soon(give)
                yield read, write
                tasks.cancel_scope.cancel()

    @asynccontextmanager
    async def wire(self, era: str, *, fresh: bool) -> AsyncIterator[Wire]:
        del era
        async with self._source.ends(fresh=fresh) as ends:
            yield LineWire(ends)

    def close(self) -> None:
        self._source.close()


class LineWire:
    """Sends lines; whatever comes back is one JSON-RPC message a line."""

    def __init__(self, ends: Ends) -> None:
        self._ends = ends
        self.told: list[dict[str, Any]] = []
        """Notifications that have come."""

    async def say(self, message: bytes) -> dict[str, Any] | None:
        await self._ends.send(message)
        if (number := _id_of(message)) is not None:
            return await self.answer(number)
        # Lines are taken in their order, so what is answered at all is answered before the next one.
        barrier = f"barrier-{next(_numbers)}"
        await self._ends.send(json.dumps({"jsonrpc": "2.0", "id": barrier, "method": "ping"}).encode())
        answers = []
        while (answer := await self._next())["id"] != barrier:
            answers.append(answer)
        assert len(answers) < 2, answers
        return answers[0] if answers else None

    async def post(self, message: bytes) -> None:
        """Send one message without waiting for anything."""
        await self._ends.send(message)

    async def answer(self, number: object) -> dict[str, Any]:
        """The next answer, which must be the one to that request."""
        answer = await self._next()
        assert answer["id"] == number, answer
        return answer

    async def _next(self) -> dict[str, Any]:
        with anyio.fail_after(PATIENCE):
            while True:
                message: dict[str, Any] = json.loads(await self._ends.lines.receive())
                assert message["jsonrpc"] == "2.0"
                if "method" not in message:
                    return message
                self.told.append(message)


def _id_of(message: bytes) -> object:
    """The id by which a message will be answered, if it has one that can be."""
    given = members(message).get("id")
    return given if isinstance(given, int | str) and not isinstance(given, bool) else None


class InMemory:
    """The whole server in this process, behind Agora's own loop for a connection."""

    def __init__(self, place: Place) -> None:
        given = {key: str(value) for key, value in place.settings.items()}
        self._agora = Agora(load_settings({"home": str(place.home)} | given, env={}))
        self._services = self._agora.services()

    @asynccontextmanager
    async def ends(self, *, fresh: bool) -> AsyncIterator[Ends]:
        # Each is new: there is nothing to wait for.
        del fresh
        log = self._agora.log
        lifecycle = Lifecycle(log, "memory")
        lifecycle.move(State.LISTENING)
        peer = Peer(self._agora.connection(lifecycle=lifecycle), log)
        server = make_server(self._services, lambda _: peer, log)
        to_server, asked = anyio.create_memory_object_stream[bytes](math.inf)
        to_client, told = anyio.create_memory_object_stream[bytes](math.inf)

        async def lines() -> AsyncIterator[bytes]:
            async for line in asked:
                yield line

        over = anyio.Event()

        async def serve() -> None:
            await serve_connection(server, lines(), to_client.send, options=ConnectionOptions(drain_seconds=0.05))
            over.set()

        async with to_server, asked, to_client, told, anyio.create_task_group() as tasks:
            tasks.start_soon(serve)
            try:
                yield Ends(to_server.send, told)
            finally:
                to_server.close()
                peer.close()
                # Also when the test has failed: a loop that is cancelled leaves streams open, and that is reported.
                with anyio.CancelScope(shield=True), anyio.move_on_after(PATIENCE):
                    await over.wait()

    def close(self) -> None:
        self._agora.close()


class Pipes:
    """`agora serve` processes, one a client; one whose client has left serves the next."""

    def __init__(self, place: Place, *, environment: Mapping[str, str]) -> None:
        """`environment` is what tells this transport from another `agora serve`."""
        self._place = place
        self._environment = environment
        self._idle: list[_Process] = []
        self._all: list[_Process] = []

    @asynccontextmanager
    async def ends(self, *, fresh: bool) -> AsyncIterator[Ends]:
        process = self._start() if fresh or not self._idle else self._idle.pop()
        clean = False
        try:
            async with process.attached() as ends:
                yield ends
                if not fresh:
                    await _left(ends)
                    clean = True
        finally:
            # Nobody waits here for the end of one whose input has ended.
            if clean:
                self._idle.append(process)
            else:
                process.hang_up()

    def _start(self) -> _Process:
        self._place.home.mkdir(parents=True, exist_ok=True)
        self._all.append(_Process(self._place, self._environment))
        return self._all[-1]

    def close(self) -> None:
        for process in self._all:
            process.hang_up()
        for process in self._all:
            process.end()


class SharedPipes(Pipes):
    """`agora serve` processes that pass lines to one shared server."""

    def __init__(self, place: Place) -> None:
        super().__init__(place, environment={"AGORA_SERVER_SHARED": "true"})

    def close(self) -> None:
        super().close()
        control.stop(self._place.home)


async def _left(ends: Ends) -> None:
    """Return when nothing that an earlier client asked for can still be answered."""
    name = f"left-{next(_numbers)}"
    await ends.send(json.dumps({"jsonrpc": "2.0", "id": name, "method": "ping"}).encode())
    with anyio.fail_after(PATIENCE):
        async for line in ends.lines:
            if json.loads(line).get("id") == name:
                return


class _Process:
    """One `agora serve`, and the client that is attached to it."""

    def __init__(self, place: Place, extra: Mapping[str, str]) -> None:
        with (place.home / f"stdio-{next(_numbers)}.txt").open("wb") as errors:
            self._process = subprocess.Popen(
                [sys.executable, "-m", "agora", "serve"],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=errors,
                env={**environment(place.home, place.settings), **extra},
                cwd=place.home,
                bufsize=0,
            )
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._stdin = self._process.stdin
        self._output = os.fdopen(os.dup(self._process.stdout.fileno()), "rb")
        self._lock = threading.Lock()
        self._taker: Callable[[bytes | None], None] | None = None
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    @asynccontextmanager
    async def attached(self) -> AsyncIterator[Ends]:
        told, lines = anyio.create_memory_object_stream[bytes](math.inf)
        loop = asyncio.get_running_loop()

        def take(line: bytes | None) -> None:
            # Its client may be leaving.
            with suppress(anyio.ClosedResourceError, anyio.BrokenResourceError):
                if line is None:
                    told.close()
                else:
                    told.send_nowait(line)

        with told, lines:
            with self._lock:
                self._taker = lambda line: _soon(loop, take, line)
            try:
                yield Ends(self._send, lines)
            finally:
                with self._lock:
                    self._taker = None

    async def _send(self, line: bytes) -> None:
        # A thread: a pipe that is full must not stop the loop that reads the other one.
        await anyio.to_thread.run_sync(self._write, line + b"\n")

    def _write(self, data: bytes) -> None:
        rest = memoryview(data)
        while rest:
            rest = rest[self._stdin.write(rest) :]

    def _read(self) -> None:
        for line in self._lines():
            with self._lock:
                if self._taker is not None:
                    self._taker(line)

    def _lines(self) -> Iterator[bytes | None]:
        """Every line, then None for the end."""
        yield from self._output
        yield None

    def hang_up(self) -> None:
        """End its input, as a client does."""
        with suppress(OSError):
            self._stdin.close()

    def end(self) -> None:
        """Wait for its end; kill what stays."""
        try:
            self._process.wait(PATIENCE)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        self._reader.join(PATIENCE)
        self._output.close()
        if self._process.stdout is not None:
            self._process.stdout.close()


def _soon(loop: asyncio.AbstractEventLoop, take: Callable[[bytes | None], None], line: bytes | None) -> None:
    # The test, and its loop with it, may be over.
    with suppress(RuntimeError):
        loop.call_soon_threadsafe(take, line)
