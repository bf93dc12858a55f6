"""Serves the sessions of one data folder until it is told to end, is replaced, or has been idle for long."""

from __future__ import annotations

import asyncio
import os
import socket
import time
from collections.abc import AsyncIterator, Callable
from contextlib import suppress
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Any, Protocol, cast

import anyio
from mcp.server.context import ServerRequestContext
from mcp.server.lowlevel import Server

from agora import __version__
from agora.daemon import hello as greeting
from agora.daemon.clients import Clients
from agora.daemon.hello import Hello
from agora.daemon.lock import Lock
from agora.daemon.place import BACKLOG, Place
from agora.errors import AgoraError, ConfigError
from agora.protocol.lifecycle import State
from agora.protocol.peer import Peer
from agora.text.lines import Line, LineSplitter
from agora.transport.connection import serve_connection
from agora.transport.lifetime import Ending, on_signals
from agora.transport.options import LOG, ConnectionOptions, Log

HELLO_SECONDS = 5.0
CLOSE_SECONDS = 1.0
CHUNK = 65_536
MOST_CLIENTS = 512
PLACE_SECONDS = 1.0
"""How long a server whose lock or socket was taken away may serve beside the next one."""

BUSY_SECONDS = 0.5
FIRST_SECONDS = 30.0
"""How long a server waits for its first session, whatever `idle_seconds` is."""

_PEER: ContextVar[Peer] = ContextVar("agora_peer")


def find_peer(ctx: ServerRequestContext[Any, Any]) -> Peer:
    """Whose request it is; implements `agora.protocol.peer.FindPeer`."""
    del ctx
    return _PEER.get()


class MakesRoom(Exception):
    """What a session needs is another server, which it starts once this one has made room; and why."""


class Serving(Protocol):
    """Something that listens at an address of its own."""

    @property
    def url(self) -> str:
        """What clients are configured with."""
        ...

    @property
    def address(self) -> str:
        """`HOST:PORT`, the port in numbers."""
        ...

    async def serve(self, stop: anyio.Event, on_ready: Callable[[], None]) -> None:
        """Serve until `stop` is set."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Terms:
    """How a shared server behaves.

    `open_http` makes what serves HTTP at an address, with or without asking for tokens. `admit` raises an AgoraError
    for a session that this server must not serve, `MakesRoom` for one that another must, and returns the settings in
    which one that was open before and is served all the same differs. `open_peer` makes what the protocol layer knows
    of a session. `safe` names the tools whose calls change nothing. `on_stopped` is called when a person ends the
    server, `on_replaced` when it makes room for another. `busy` tells whether there is work beside the sessions, which
    an idle server finishes first. `begun` is what a restart starts the next server with: its options and variables.
    """

    admit: Callable[[Hello], list[str]]
    open_peer: Callable[[Hello], Peer]
    safe: tuple[str, ...]
    idle_seconds: float
    drain_seconds: float
    line_bytes: int
    on_stopped: Callable[[], None] = lambda: None
    on_replaced: Callable[[], None] = lambda: None
    busy: Callable[[], bool] = lambda: False
    begun: Callable[[], dict[str, dict[str, str]]] = lambda: {"options": {}, "env": {}}
    open_http: Callable[[str, bool], Serving] | None = None
    log: Log = LOG


class SharedServer:
    """The server's part in each connection, and its end."""

    def __init__(self, server: Server[Any], place: Place, lock: Lock, terms: Terms) -> None:
        self._server = server
        self._place = place
        self._lock = lock
        self._terms = terms
        self.clients = Clients()
        self._stop = anyio.Event()
        self._connections = 0
        # Who has not said yet what it is: nothing of it is under way.
        self._silent: set[tuple[asyncio.StreamReader, asyncio.StreamWriter]] = set()
        self._quiet = anyio.Event()
        self._listening: asyncio.Server | None = None
        self._began = time.time()
        self.on_end: Callable[[str], None] = lambda _: None
        """Told once that the end has begun."""

    def details(self) -> dict[str, Any]:
        """What `agora_status` and `agora server status` say of the server."""
        return {
            "shared": True,
            "pid": os.getpid(),
            "version": __version__,
            "seconds": round(time.time() - self._began, 1),
            "clients": len(self.clients),
            "sessions": self.clients.total,
        }

    def end(self, reason: str) -> None:
        """Make room for another server and bring the sessions to their end; later calls do nothing. Event loop only."""
        if self._stop.is_set():
            return
        self.on_end(reason)
        self._terms.log.debug("the shared server ends: %s", reason)
        # In this order: nobody may find the socket and not the lock, and start a second server for nothing. The event
        # loop has to let the socket go before it is closed.
        self._place.leave()
        if self._listening is not None:
            self._listening.close()
        self._place.close()
        self._lock.release()
        self._stop.set()
        for reader, writer in self._silent:
            # What has come is answered. Who has said nothing finds the next server.
            cast("asyncio.ReadTransport", writer.transport).pause_reading()
            reader.feed_eof()

    def _replaced(self, reason: str) -> None:
        if not self._stop.is_set():
            self._terms.on_replaced()
            self.end(reason)

    async def serve(self, on_ready: Callable[[], None]) -> None:
        """Serve until `end`; returns when every session is over."""
        self._listening = await asyncio.start_server(
            self._connected, sock=self._place.sock, limit=CHUNK, backlog=BACKLOG
        )
        on_ready()
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(self._watch_idleness)
            tasks.start_soon(self._watch_place)
            await self._stop.wait()
            with anyio.move_on_after(self._terms.drain_seconds + 1.0):
                while self._connections:
                    self._quiet = anyio.Event()
                    await self._quiet.wait()
            tasks.cancel_scope.cancel()

    async def _watch_idleness(self) -> None:
        while True:
            # Whoever started it is on the way.
            patience = max(self._terms.idle_seconds, 0.0 if self.clients.total else FIRST_SECONDS)
            idle = time.monotonic() - self.clients.idle_since
            if not self._connections and idle >= patience:
                if not self._terms.busy():
                    self.end("no session for a while")
                    return
                await anyio.sleep(BUSY_SECONDS)
                continue
            await anyio.sleep(min(max(0.05, patience - idle), 5.0, max(0.05, self._terms.idle_seconds)))

    async def _watch_place(self) -> None:
        """End when the next server could start beside this one: then sessions would be served by two."""
        while not self._stop.is_set():
            for found, path in ((self._lock.is_there(), self._lock.path), (self._place.is_there(), self._place.file)):
                if not found:
                    self._terms.log.warning("deleted or replaced, so that the server makes room for another: %s", path)
                    self.end(f"{path.name} was deleted or replaced")
                    return
            await anyio.sleep(PLACE_SECONDS)

    async def _connected(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._connections += 1
        try:
            await self._converse(reader, writer)
        except (ConnectionError, TimeoutError):
            pass
        except asyncio.CancelledError:
            # The server's end has waited for long enough. Python 3.11 takes it for a mistake if it leaves this.
            pass
        except Exception as problem:  # noqa: BLE001 - the outermost frame of a connection: the others go on
            self._terms.log.warning("a connection failed: %s", type(problem).__name__)
        finally:
            self._connections -= 1
            self._quiet.set()
            writer.close()
            with suppress(OSError, asyncio.CancelledError):
                with anyio.move_on_after(CLOSE_SECONDS):
                    await writer.wait_closed()
            # A client that reads nothing would keep what was written to it, and this, for ever.
            writer.transport.abort()

    async def _converse(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        both = (reader, writer)
        self._silent.add(both)
        try:
            line, rest = await _first_line(reader)
        finally:
            self._silent.remove(both)
        if line is None:
            return
        try:
            said = greeting.read(line)
            self._require_own(writer, said)
            if said.command == "http":
                await self._http(said, reader, writer)
                return
            if said.command is not None:
                await self._obey(said, writer)
                return
            differing = self._terms.admit(said)
            # Before the answer: a session that is let in and sent away would come again and again.
            peer = self._terms.open_peer(said)
        except AgoraError as error:
            await self._refuse(writer, **error.details())
            return
        except MakesRoom as reason:
            await self._refuse(writer, again=True, message=str(reason))
            self._replaced(str(reason))
            return
        if self._stop.is_set() or len(self.clients) >= MOST_CLIENTS:
            await self._refuse(writer, again=self._stop.is_set(), message="too many sessions")
            return
        drain = self._terms.drain_seconds
        safe = list(self._terms.safe)
        found = {"ok": True, "version": __version__, "safe": safe, "drain": drain, "differing": differing}
        writer.write(greeting.answer(found))
        await self._session(said, peer, reader, writer, rest)

    async def _refuse(self, writer: asyncio.StreamWriter, **said: Any) -> None:  # noqa: ANN401 - JSON
        writer.write(greeting.answer({"ok": False, **said}))
        await writer.drain()

    def _require_own(self, writer: asyncio.StreamWriter, said: Hello) -> None:
        sock: socket.socket = writer.get_extra_info("socket")
        if not self._place.admits(sock, said.token):
            raise ConnectionAbortedError

    async def _session(
        self, said: Hello, peer: Peer, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, rest: bytes
    ) -> None:
        async def lines() -> AsyncIterator[Line]:
            splitter = LineSplitter(self._terms.line_bytes)
            for line in splitter.feed(rest):
                yield line
            # What is left at the end has no newline: half a line of a process that was killed. It is not done.
            while chunk := await _some(reader):
                for line in splitter.feed(chunk):
                    yield line

        async def write(frame: bytes) -> None:
            try:
                writer.write(frame)
                await writer.drain()
            except ConnectionError:
                raise anyio.BrokenResourceError from None

        with self.clients.present(said, peer) as client:
            token = _PEER.set(peer)
            if peer.lifecycle is not None:
                peer.lifecycle.move(State.LISTENING)
            try:
                await serve_connection(
                    self._server,
                    lines(),
                    write,
                    stop=self._stop,
                    options=ConnectionOptions(
                        drain_seconds=self._terms.drain_seconds,
                        log=self._terms.log,
                        request_prefix=f"{os.getpid()}.{client.number}.",
                    ),
                )
            finally:
                _PEER.reset(token)

    async def _http(self, said: Hello, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Serve HTTP for as long as the process that asked for it stays."""
        differing = self._terms.admit(said)
        wanted = said.arguments or {}
        address, authenticate = wanted.get("address"), wanted.get("authenticate")
        if self._terms.open_http is None or not isinstance(address, str) or not isinstance(authenticate, bool):
            raise ConfigError("this server serves no HTTP there", hint="Use `agora serve --http HOST:PORT`.")
        serving = await anyio.to_thread.run_sync(self._terms.open_http, address, authenticate)
        stop = anyio.Event()

        async def until_unwanted() -> None:
            while await _some(reader):
                pass
            stop.set()

        async def until_ended() -> None:
            await self._stop.wait()
            stop.set()

        async with anyio.create_task_group() as tasks:
            tasks.start_soon(until_unwanted)
            tasks.start_soon(until_ended)
            found = {"url": serving.url, "address": serving.address, "drain": self._terms.drain_seconds}
            ready = greeting.answer({"ok": True, **found, "differing": differing})
            await serving.serve(stop, lambda: writer.write(ready))
            tasks.cancel_scope.cancel()

    async def _obey(self, said: Hello, writer: asyncio.StreamWriter) -> None:
        found: dict[str, Any]
        match said.command:
            case "status":
                found = {**self.details(), "home": said.home, "connections": self.clients.details()}
            case "stop":
                # A server that ends already must leave no mark: the next one may run, which nobody has stopped.
                if not self._stop.is_set():
                    self._terms.on_stopped()
                found = {**self.details(), "drain": self._terms.drain_seconds}
            case "restart":
                if not self._stop.is_set():
                    self._terms.on_replaced()
                found = {**self.details(), "drain": self._terms.drain_seconds, "begun": self._terms.begun()}
            case _:
                raise ConfigError(f"unknown command {said.command!r}", hint="See `agora server --help`.")
        writer.write(greeting.answer({"ok": True, **found}))
        await writer.drain()
        if said.command in {"stop", "restart"}:
            self.end(f"`agora server {said.command}`")


async def _first_line(reader: asyncio.StreamReader) -> tuple[bytes | None, bytes]:
    """The greeting and what came after it; None if it does not end, or is longer than any.

    Raises: TimeoutError if it does not come in time.
    """
    got = b""
    with anyio.fail_after(HELLO_SECONDS):
        while b"\n" not in got:
            chunk = await reader.read(CHUNK)
            got += chunk
            if not chunk or len(got) > greeting.LIMIT:
                return None, b""
    line, _, rest = got.partition(b"\n")
    return line, rest


async def _some(reader: asyncio.StreamReader) -> bytes:
    try:
        return await reader.read(CHUNK)
    except ConnectionError:
        return b""


def run_server(shared: SharedServer, *, on_ready: Callable[[], None], on_stop: Callable[[], None], terms: Terms) -> int:
    """Run a shared server to its end; the process's exit status. Main thread only; the last thing a process does.

    SIGTERM, SIGINT, SIGHUP and Ctrl-Break end it as `agora server stop` does.
    """
    ending = Ending(on_stop, terms.drain_seconds + 2.0, terms.log)
    # Whatever still hangs then, the process ends.
    shared.on_end = ending.begin

    async def serve() -> None:
        loop = asyncio.get_running_loop()

        def end(reason: str) -> None:
            # The loop may be closed already: then there is nothing left to stop.
            with suppress(RuntimeError):
                loop.call_soon_threadsafe(shared.end, reason)

        on_signals(end)
        await shared.serve(on_ready)

    try:
        anyio.run(serve)
    finally:
        status = ending.finish()
    return status
