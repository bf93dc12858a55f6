"""For tests of the HTTP channel: a client on it, the SDK's server as a process, and a server that misbehaves."""

from __future__ import annotations

import asyncio
import contextlib
import json
import ssl
import subprocess
import sys
import threading
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine, Iterator
from dataclasses import dataclass, field
from functools import wraps
from pathlib import Path
from typing import Any, ParamSpec

from agora.backends.http import HttpChannel
from agora.config.backends import BackendTable

PATIENCE = 20.0
"""Seconds that anything may take in a test: far more than it needs."""

SESSION = "2025-11-25"
STATELESS = "2026-07-28"
_META = {
    "io.modelcontextprotocol/protocolVersion": STATELESS,
    "io.modelcontextprotocol/clientCapabilities": {},
    "io.modelcontextprotocol/clientInfo": {"name": "test", "version": "1"},
}

Parameters = ParamSpec("Parameters")


def on_a_loop(test: Callable[Parameters, Coroutine[Any, Any, None]]) -> Callable[Parameters, None]:
    """A test that runs on an event loop of its own, and not for ever."""

    @wraps(test)
    def run(*args: Parameters.args, **kwargs: Parameters.kwargs) -> None:
        async def bounded() -> None:
            async with asyncio.timeout(2 * PATIENCE):
                await test(*args, **kwargs)
            others = {task.get_name() for task in asyncio.all_tasks() if task is not asyncio.current_task()}
            assert not {name for name in others if name.startswith("agora-")}

        asyncio.run(bounded())

    return run


class Client:
    """Somebody who speaks over a channel: what was delivered, and what was lost."""

    def __init__(self, url: str, **table: Any) -> None:
        self.table = BackendTable("far", "http", url=url, **table)
        self.channel = HttpChannel(self.table)
        self.came: list[dict[str, Any]] = []
        self.lost: list[str] = []
        self.answers_requests = True
        self._numbers = iter(range(1, 1_000_000))
        self._news = asyncio.Event()
        self._gone = asyncio.Event()
        self._tasks: set[asyncio.Task[None]] = set()

    def deliver(self, message: dict[str, Any]) -> None:
        self.came.append(message)
        self._news.set()
        if message.get("method") == "roots/list" and self.answers_requests:
            answer = {"jsonrpc": "2.0", "id": message["id"], "result": {"roots": [{"uri": "file:///here"}]}}
            task = asyncio.create_task(self.channel.send(answer))
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)

    async def ask(self, method: str, **params: Any) -> dict[str, Any]:
        """The answer to a request; what `send` raises."""
        number = next(self._numbers)
        await self.channel.send({"jsonrpc": "2.0", "id": number, "method": method, "params": params})
        return next(message for message in self.came if message.get("id") == number and "method" not in message)

    async def call(self, tool: str, **arguments: Any) -> str:
        """The text that a tool answers."""
        answer = await self.ask("tools/call", name=tool, arguments=arguments)
        return str(answer["result"]["content"][0]["text"])

    async def call_stateless(self, tool: str, **arguments: Any) -> dict[str, Any]:
        return await self.ask("tools/call", name=tool, arguments=arguments, _meta=_META)

    async def ask_stateless(self, method: str, **params: Any) -> dict[str, Any]:
        return await self.ask(method, **params, _meta=_META)

    async def notify(self, method: str, **params: Any) -> None:
        await self.channel.send({"jsonrpc": "2.0", "method": method, "params": params})

    async def shake_hands(self) -> dict[str, Any]:
        """The handshake of a session."""
        told = {"protocolVersion": SESSION, "capabilities": {"roots": {}}, "clientInfo": {"name": "t", "version": "1"}}
        answer = await self.ask("initialize", **told)
        self.channel.negotiated(answer["result"]["protocolVersion"])
        await self.notify("notifications/initialized")
        return answer

    async def until(self, found: Callable[[], bool]) -> None:
        """Wait until something was delivered that makes `found` true."""
        async with asyncio.timeout(PATIENCE):
            while not found():
                self._news.clear()
                await self._news.wait()

    async def quiet(self) -> None:
        """Wait until the channel reads on no stream whose answer has come."""
        reading = [task for task in asyncio.all_tasks() if task.get_name() == "agora-backend-ending"]
        await asyncio.gather(*reading)

    async def unheard(self) -> None:
        """Wait until the channel has given up to listen for what comes unasked."""
        listening = [task for task in asyncio.all_tasks() if task.get_name() == "agora-backend-events"]
        await asyncio.wait_for(asyncio.gather(*listening), PATIENCE)

    async def until_lost(self) -> None:
        async with asyncio.timeout(PATIENCE):
            await self._gone.wait()

    def lose(self, reason: str) -> None:
        self.lost.append(reason)
        self._gone.set()

    def alive(self) -> bool:
        return self.channel.alive

    def methods(self) -> list[str]:
        return [message["method"] for message in self.came if "method" in message]


@contextlib.asynccontextmanager
async def client(url: str, *, hands: bool = True, **table: Any) -> AsyncIterator[Client]:
    """An open channel, closed at the end; with `hands` after the handshake."""
    made = Client(url, **table)
    try:
        await made.channel.open(made.deliver, made.lose)
        if hands:
            await made.shake_hands()
        yield made
    finally:
        async with asyncio.timeout(3):
            await made.channel.close()


class Process:
    """The SDK's server in a process of its own, killed at the end."""

    def __init__(self, *options: str, port: int = 0) -> None:
        program = str(Path(__file__).with_name("http_server.py"))
        self._process = subprocess.Popen(
            [sys.executable, "-P", program, str(port), *options], stdout=subprocess.PIPE, text=True
        )
        assert self._process.stdout is not None
        watch = threading.Timer(PATIENCE, self._process.kill)
        watch.start()
        line = self._process.stdout.readline()
        watch.cancel()
        assert line, "the server did not start"
        self.port = int(line)
        self.url = f"http://127.0.0.1:{self.port}/mcp"

    def kill(self) -> None:
        self._process.kill()
        self._process.wait(PATIENCE)
        if self._process.stdout is not None:
            self._process.stdout.close()


@contextlib.contextmanager
def process(*options: str, port: int = 0) -> Iterator[Process]:
    started = Process(*options, port=port)
    try:
        yield started
    finally:
        started.kill()


@dataclass(frozen=True)
class Asked:
    """One request as it came, and the number of its connection."""

    method: str
    path: str
    headers: dict[str, str]
    body: Any
    connection: int


@dataclass
class Reply:
    """How a handler answers: at once, in pieces, or not at all."""

    asked: Asked
    reader: asyncio.StreamReader
    writer: asyncio.StreamWriter
    kept: bool = True
    """Whether the connection serves another request."""

    async def raw(self, data: bytes) -> None:
        self.writer.write(data)
        await self.writer.drain()

    async def send(self, status: int, body: bytes | object = b"", kind: str = "application/json", **more: str) -> None:
        content = body if isinstance(body, bytes) else json.dumps(body).encode()
        lines = [f"HTTP/1.1 {status} Whatever", f"content-type: {kind}", f"content-length: {len(content)}"]
        lines += [f"{name.replace('_', '-')}: {value}" for name, value in more.items()]
        await self.raw("\r\n".join([*lines, "", ""]).encode() + content)

    async def result(self, result: object = None, **more: str) -> None:
        """The usual answer to a request."""
        await self.send(200, {"jsonrpc": "2.0", "id": self.asked.body["id"], "result": result or {}}, **more)

    async def begin_events(self, **more: str) -> None:
        lines = ["HTTP/1.1 200 OK", "content-type: text/event-stream", "transfer-encoding: chunked"]
        lines += [f"{name.replace('_', '-')}: {value}" for name, value in more.items()]
        await self.raw("\r\n".join([*lines, "", ""]).encode())

    async def chunk(self, data: bytes) -> None:
        await self.raw(f"{len(data):x}\r\n".encode() + data + b"\r\n")

    async def event(self, message: object, number: str = "") -> None:
        head = f"id: {number}\n" if number else ""
        await self.chunk(f"{head}data: {json.dumps(message)}\n\n".encode())

    async def answer_event(self, result: object = None, number: str = "", to: object = None) -> None:
        asked = self.asked.body["id"] if to is None else to
        await self.event({"jsonrpc": "2.0", "id": asked, "result": result or {}}, number)

    async def end(self) -> None:
        """The end of an event stream."""
        await self.raw(b"0\r\n\r\n")

    def cut(self) -> None:
        """Break off, without any end."""
        self.kept = False
        transport = self.writer.transport
        transport.abort()

    def hang_up(self) -> None:
        self.kept = False

    async def end_of_client(self) -> None:
        """Wait until the client has closed the connection."""
        self.kept = False
        with contextlib.suppress(ConnectionError):
            await self.reader.read()


Handler = Callable[[Reply], Awaitable[None]]


@dataclass
class Rude:
    """A server on loopback that answers each request with the next handler of its script, then as servers do."""

    script: list[Handler] = field(default_factory=list)
    streams: list[Handler] = field(default_factory=list)
    """The same for GET; a server without any has no such stream."""
    session: str = "s-1"
    asked: list[Asked] = field(default_factory=list)
    port: int = 0
    connections: int = 0
    _server: asyncio.Server | None = None
    _open: set[asyncio.StreamWriter] = field(default_factory=set)
    _tasks: set[asyncio.Task[None]] = field(default_factory=set)
    _news: asyncio.Event = field(default_factory=asyncio.Event)

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}/mcp"

    def bodies(self, method: str) -> list[Asked]:
        """The messages with this method."""
        return [one for one in self.asked if isinstance(one.body, dict) and one.body.get("method") == method]

    async def until(self, found: Callable[[], bool]) -> None:
        """Wait until a connection or a request, or the end of a connection, makes `found` true."""
        async with asyncio.timeout(PATIENCE):
            while not found():
                self._news.clear()
                await self._news.wait()

    @contextlib.asynccontextmanager
    async def running(self, secure: ssl.SSLContext | None = None) -> AsyncIterator[Rude]:
        self._server = await asyncio.start_server(self._serve, "127.0.0.1", self.port, ssl=secure)
        self.port = self._server.sockets[0].getsockname()[1]
        try:
            yield self
        finally:
            await self.stop()

    async def stop(self) -> None:
        """Close everything, as the end of a process does."""
        if self._server is not None:
            self._server.close()
            self._server = None
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    async def usual(self, reply: Reply) -> None:
        body = reply.asked.body
        if reply.asked.method == "GET":
            await reply.send(405)
        elif reply.asked.method == "DELETE":
            await reply.send(204)
        elif "id" not in body or "method" not in body:
            await reply.send(202)
        elif body["method"] == "initialize":
            told = {"protocolVersion": SESSION, "capabilities": {}, "serverInfo": {"name": "rude", "version": "1"}}
            await reply.result(told, **({"mcp_session_id": self.session} if self.session else {}))
        else:
            await reply.result({"content": [{"type": "text", "text": "fine"}]})

    async def close_idle(self) -> None:
        """Close every connection that waits for a request; returns when they are closed."""
        for writer in self._open:
            writer.close()
        await self.until(lambda: not self._open)

    def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.connections += 1
        self._news.set()
        task = asyncio.create_task(self._connection(reader, writer, self.connections))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _connection(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, number: int) -> None:
        try:
            while True:
                self._open.add(writer)
                head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1").split("\r\n")
                self._open.discard(writer)
                method, path, _ = head[0].split(" ")
                headers = {
                    name.lower(): value.strip() for name, _, value in (line.partition(":") for line in head[1:] if line)
                }
                content = await reader.readexactly(int(headers.get("content-length", 0)))
                asked = Asked(method, path, headers, json.loads(content) if content else None, number)
                self.asked.append(asked)
                self._news.set()
                reply = Reply(asked, reader, writer)
                script = self.streams if method == "GET" else self.script
                await (script.pop(0) if script else self.usual)(reply)
                if not reply.kept:
                    return
        except (asyncio.IncompleteReadError, ConnectionError):
            pass
        finally:
            self._open.discard(writer)
            writer.close()
            self._news.set()
