"""The stream on which a server sends what nobody asked for."""

from __future__ import annotations

import asyncio

import pytest
from tests.integration.backends.http_rig import Asked, Handler, Reply, Rude, client, on_a_loop

NEWS = {"jsonrpc": "2.0", "method": "notifications/tools/list_changed", "params": {}}


def streams(server: Rude) -> list[Asked]:
    """The requests for the stream."""
    return [asked for asked in server.asked if asked.method == "GET"]


async def news(reply: Reply) -> None:
    """One event, then nothing until the client goes."""
    await reply.begin_events()
    await reply.chunk(b"retry: 100\n\n")
    await reply.event(NEWS, "n-1")
    await reply.end_of_client()


async def ends(reply: Reply) -> None:
    await reply.begin_events()
    await reply.chunk(b"retry: 100\n\n")
    await reply.event(NEWS, "n-1")
    await reply.end()


async def breaks(reply: Reply) -> None:
    await reply.begin_events()
    await reply.chunk(b"retry: 100\n\n")
    await reply.event(NEWS, "n-1")
    reply.cut()


async def busy(reply: Reply) -> None:
    await reply.send(503)


async def taken(reply: Reply) -> None:
    await reply.send(409, b"only one stream", "text/plain")


async def gone(reply: Reply) -> None:
    await reply.send(404)


@on_a_loop
async def test_it_is_opened_once_the_handshake_is_over_and_ends_with_the_channel() -> None:
    async with Rude(streams=[news]).running() as server:
        async with client(server.url, hands=False) as one:
            await one.ask("initialize")
            one.channel.negotiated("2025-11-25")
            assert streams(server) == []
            await one.notify("notifications/initialized")
            await one.until(lambda: NEWS in one.came)
            (asked,) = streams(server)
            assert asked.headers["accept"] == "text/event-stream"
            assert asked.headers["mcp-session-id"] == "s-1"
            assert asked.headers["mcp-protocol-version"] == "2025-11-25"
            assert "last-event-id" not in asked.headers
            # It takes no connection from calls.
            assert await one.call("echo") == "fine"
        assert one.lost == []


@pytest.mark.parametrize("end", [ends, breaks])
@pytest.mark.parametrize("between", [[], [busy], [taken]])
@on_a_loop
async def test_it_is_opened_again_after_the_last_event_whenever_it_ends(end: Handler, between: list[Handler]) -> None:
    async with Rude(streams=[end, *between, news]).running() as server, client(server.url) as one:
        await one.until(lambda: one.came.count(NEWS) == 2)
        assert [asked.headers.get("last-event-id") for asked in streams(server)] == [None] + ["n-1"] * (
            1 + len(between)
        )
        assert await one.call("echo") == "fine"


@on_a_loop
async def test_it_is_opened_again_when_the_server_is_back() -> None:
    server = Rude(streams=[news, news])
    async with server.running(), client(server.url) as one:
        await one.until(lambda: one.came.count(NEWS) == 1)
        async with asyncio.timeout(10):
            await server.stop()
        assert one.alive()
        async with server.running():
            await one.until(lambda: one.came.count(NEWS) == 2)
            assert await one.call("echo") == "fine"
    assert one.lost == []


@on_a_loop
async def test_a_server_that_forgot_the_session_ends_it_though_nobody_calls() -> None:
    async with Rude(streams=[ends, gone]).running() as server, client(server.url) as one:
        await server.until(lambda: len(streams(server)) == 2)
        await one.until_lost()
        assert one.lost == ["the server knows the session no longer"]
        assert not one.alive()


@pytest.mark.parametrize("status", [405, 404, 400, 401])
@on_a_loop
async def test_a_server_without_it_is_asked_once(status: int) -> None:
    async def no(reply: Reply) -> None:
        await reply.send(status)

    async with Rude(streams=[no]).running() as server, client(server.url) as one:
        await one.unheard()
        assert len(streams(server)) == 1
        assert await one.call("echo") == "fine"
        assert one.lost == []


@on_a_loop
async def test_without_a_session_nobody_asks_for_it() -> None:
    async with Rude(session="", streams=[news]).running() as server, client(server.url) as one:
        assert await one.call("echo") == "fine"
        await one.unheard()
        assert streams(server) == []
    assert [asked.method for asked in server.asked if asked.method == "DELETE"] == []


@on_a_loop
async def test_an_event_that_is_too_large_is_not_asked_for_again() -> None:
    async def endless(reply: Reply) -> None:
        reply.hang_up()
        await reply.raw(
            b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\n\r\nretry: 100\nid: n-1\ndata: 1\n\ndata: "
        )
        for _ in range(100):
            await reply.raw(b"x" * (1 << 20))

    async with Rude(streams=[endless, news]).running() as server, client(server.url) as one:
        await one.until(lambda: one.came.count(NEWS) == 1)
        assert [asked.headers.get("last-event-id") for asked in streams(server)] == [None, None]
