"""The per-connection loop without any pipe: lines from a list or a queue, frames into a list."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any

import anyio
import anyio.lowlevel
from mcp.server.context import ServerRequestContext
from mcp.server.lowlevel import Server
from mcp_types import CallToolRequestParams, CallToolResult

from agora.transport.connection import serve_connection
from agora.transport.options import ConnectionOptions
from agora.transport.text import BadText

META = {
    "io.modelcontextprotocol/protocolVersion": "2026-07-28",
    "io.modelcontextprotocol/clientCapabilities": {},
}


async def wait_or_echo(_ctx: ServerRequestContext[Any], params: CallToolRequestParams) -> CallToolResult:
    if params.name == "wait":
        await anyio.sleep_forever()
    return CallToolResult(content=[], structured_content={"got": params.arguments or {}})


class Peer:
    """A client in memory."""

    def __init__(self) -> None:
        self.frames: list[dict[str, Any]] = []
        self._send, self._receive = anyio.create_memory_object_stream[bytes](100)
        self._arrived = anyio.Event()

    def send(self, **message: Any) -> None:
        self._send.send_nowait(json.dumps({"jsonrpc": "2.0", **message}).encode())

    def call(self, request_id: object, tool: str, **arguments: Any) -> None:
        params = {"name": tool, "arguments": arguments, "_meta": META}
        self.send(id=request_id, method="tools/call", params=params)

    def cancel(self, request_id: object) -> None:
        self.send(method="notifications/cancelled", params={"requestId": request_id})

    def end(self) -> None:
        self._send.close()

    async def lines(self) -> AsyncIterator[bytes]:
        with self._receive:
            async for line in self._receive:
                yield line

    async def write(self, frame: bytes) -> None:
        assert frame.endswith(b"\n")
        self.frames.append(json.loads(frame))
        self._arrived.set()
        self._arrived = anyio.Event()

    async def frame(self, number: int) -> dict[str, Any]:
        while len(self.frames) <= number:
            await self._arrived.wait()
        return self.frames[number]


def converse(
    talk: Callable[[Peer], Awaitable[None]],
    *,
    server: Server[Any] | None = None,
    options: ConnectionOptions | None = None,
    stop: bool = False,
    peer: Peer | None = None,
) -> list[dict[str, Any]]:
    """Every frame of a connection on which the client does `talk` and then ends."""
    peer = peer or Peer()

    async def run() -> None:
        stopped = anyio.Event()
        with anyio.fail_after(10):
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(serve, stopped)
                await talk(peer)
                if stop:
                    stopped.set()
                else:
                    peer.end()
        peer.end()

    async def serve(stopped: anyio.Event) -> None:
        await serve_connection(
            server or Server("test", on_call_tool=wait_or_echo),
            peer.lines(),
            peer.write,
            stop=stopped,
            options=options or ConnectionOptions(drain_seconds=0.05),
        )

    anyio.run(run)
    return peer.frames


def test_a_text_id_and_a_number_that_look_alike_are_two_requests() -> None:
    async def talk(peer: Peer) -> None:
        peer.call(7, "echo", n=1)
        peer.call("7", "echo", n=2)
        await peer.frame(1)

    frames = converse(talk)
    assert {repr(f["id"]): f["result"]["structuredContent"]["got"]["n"] for f in frames} == {"7": 1, "'7'": 2}


def test_a_cancellation_that_could_mean_two_requests_ends_neither() -> None:
    async def talk(peer: Peer) -> None:
        peer.call(7, "wait")
        peer.call("7", "wait")
        peer.cancel("7")
        peer.call("probe", "echo")
        await peer.frame(0)

    frames = converse(talk)
    # Both are still there at the end, and are told so.
    assert sorted(repr(f["id"]) for f in frames if f.get("result", {}).get("isError")) == ["'7'", "7"]


def test_a_cancellation_may_spell_the_id_as_text() -> None:
    async def talk(peer: Peer) -> None:
        peer.call(7, "wait")
        peer.cancel("7")
        peer.call(8, "echo")
        await peer.frame(0)

    assert [f["id"] for f in converse(talk)] == [8]


def test_a_cancelled_id_is_free_again_when_its_handler_has_ended() -> None:
    async def talk(peer: Peer) -> None:
        peer.call(7, "wait")
        peer.cancel(7)
        peer.call(8, "echo")
        await peer.frame(0)
        peer.call(7, "echo")
        await peer.frame(1)

    assert "result" in converse(talk)[1]


def test_a_stop_ends_the_connection_while_the_input_is_open() -> None:
    async def talk(peer: Peer) -> None:
        peer.call(1, "wait")
        peer.call(2, "echo")
        await peer.frame(0)

    frames = converse(talk, stop=True)
    assert [(f["id"], f["result"].get("isError", False)) for f in frames] == [(2, False), (1, True)]


def test_a_server_that_cannot_start_answers_each_request_and_the_connection_lives() -> None:
    @asynccontextmanager
    async def broken(server: Server[Any]) -> AsyncIterator[dict[str, Any]]:
        if server.name == "test":
            message = "secret"
            raise RuntimeError(message)
        yield {}

    async def talk(peer: Peer) -> None:
        for number in range(3):
            peer.call(number, "echo")
            await peer.frame(number)

    frames = converse(talk, server=Server("test", on_call_tool=wait_or_echo, lifespan=broken))
    assert [f["error"] for f in frames] == [{"code": -32603, "message": "Internal error"}] * 3


def test_a_peer_that_is_gone_ends_the_connection_without_a_drain() -> None:
    async def run() -> None:
        async def nobody(_frame: bytes) -> None:
            raise anyio.BrokenResourceError

        peer = Peer()
        peer.call(1, "wait")
        peer.call(2, "echo")
        server = Server("test", on_call_tool=wait_or_echo)
        with anyio.fail_after(5):
            await serve_connection(server, peer.lines(), nobody, options=ConnectionOptions(drain_seconds=60))
        peer.end()

    anyio.run(run)


def test_frames_are_written_one_after_the_other() -> None:
    busy = False

    async def run() -> None:
        async def slowly(_frame: bytes) -> None:
            nonlocal busy
            assert not busy
            busy = True
            await anyio.sleep(0.001)
            busy = False

        peer = Peer()
        for number in range(20):
            peer.call(number, "echo")
        peer.end()
        await serve_connection(Server("test", on_call_tool=wait_or_echo), peer.lines(), slowly)

    anyio.run(run)


def test_the_refusal_of_bad_text_can_be_made_by_the_server() -> None:
    seen: list[BadText] = []

    def refuse(bad: BadText) -> dict[str, Any]:
        seen.append(bad)
        return {"content": [], "isError": True, "own": 1}

    async def talk(peer: Peer) -> None:
        peer.call(1, "echo", tags=["\ud800"])
        await peer.frame(0)

    frames = converse(talk, options=ConnectionOptions(drain_seconds=0.05, refuse_text=refuse))
    assert frames[0]["result"] == {"content": [], "isError": True, "own": 1}
    assert seen == [BadText("params.arguments.tags[0]", "\ud800", tool="echo", modern=True)]
    assert seen[0].param == "tags[0]"


class _HastyPeer(Peer):
    """Reads an answer and uses its id again before the server's write has returned."""

    async def write(self, frame: bytes) -> None:
        await super().write(frame)
        if len(self.frames) == 1:
            self.send(id=1, method="ping")
            for _ in range(20):
                await anyio.lowlevel.checkpoint()


def test_an_id_is_free_again_as_soon_as_its_answer_can_be_read() -> None:
    peer = _HastyPeer()

    async def talk(peer: Peer) -> None:
        peer.send(id=1, method="ping")
        await peer.frame(1)

    assert [frame.get("result") for frame in converse(talk, peer=peer)] == [{}, {}]
