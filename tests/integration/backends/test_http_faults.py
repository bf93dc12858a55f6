"""What a server that misbehaves does to a call, and to the next one."""

from __future__ import annotations

import asyncio
import json
import time
from typing import Any

import pytest
from tests.integration.backends.http_rig import Client, Reply, Rude, client, on_a_loop

from agora.errors import BackendError, BackendProtocolError, BackendUnavailable, OutcomeUnknown
from agora.ports.backends import SessionForgotten

TOKEN = "tok-1234567890abcdef"  # noqa: S105 - of a server in this test


async def fails(one: Client, kind: type[BackendError], words: str | None = None) -> BackendError:
    """What the next call raises."""
    with pytest.raises(kind, match=words) as raised:
        await one.call("echo")
    # `kind` exactly: an unavailable backend is called again, an unknown outcome is not.
    assert type(raised.value) is kind
    assert raised.value.backend == "far"
    return raised.value


async def fine(one: Client) -> None:
    """The next call works, in the same session."""
    assert await one.call("echo") == "fine"
    assert one.lost == []


@on_a_loop
async def test_a_stream_that_is_cut_before_the_answer_leaves_the_outcome_unknown() -> None:
    async def cut(reply: Reply) -> None:
        await reply.begin_events()
        await reply.event({"jsonrpc": "2.0", "method": "notifications/message", "params": {}})
        reply.cut()

    async with Rude().running() as server, client(server.url) as one:
        server.script = [cut]
        await fails(one, OutcomeUnknown)
        assert "notifications/message" in one.methods()
        assert len(server.bodies("tools/call")) == 1
        await fine(one)


@on_a_loop
async def test_a_stream_that_ends_before_the_answer_leaves_the_outcome_unknown() -> None:
    async def end(reply: Reply) -> None:
        await reply.begin_events()
        await reply.end()

    async with Rude().running() as server, client(server.url) as one:
        server.script = [end]
        await fails(one, OutcomeUnknown, "ended before the answer")
        await fine(one)


@on_a_loop
async def test_a_stream_whose_events_have_ids_is_resumed_after_the_last_of_them() -> None:
    async def begun(reply: Reply) -> None:
        await reply.begin_events()
        await reply.chunk(b"id: e-1\nretry: 10\ndata:\n\n")
        await reply.event({"jsonrpc": "2.0", "method": "notifications/message", "params": {}}, "e-2")
        await reply.chunk(b"id: e-3\ndata: {")
        reply.cut()

    async def going_on(reply: Reply) -> None:
        await reply.begin_events()
        await reply.answer_event({"content": [{"type": "text", "text": "resumed"}]}, "e-3", 2)
        await reply.end()

    async with Rude().running() as server, client(server.url, hands=False) as one:
        await one.ask("initialize")
        server.script, server.streams = [begun], [going_on]
        assert await one.call("echo") == "resumed"
        resumed = [asked for asked in server.asked if asked.method == "GET" and "last-event-id" in asked.headers]
        assert [asked.headers["last-event-id"] for asked in resumed] == ["e-2"]
        assert {asked.headers["mcp-session-id"] for asked in resumed} == {"s-1"}
        await fine(one)


@on_a_loop
async def test_a_stream_that_cannot_be_resumed_leaves_the_outcome_unknown_before_long() -> None:
    async def begun(reply: Reply) -> None:
        await reply.begin_events()
        await reply.chunk(b"id: 1\ndata:\n\n")
        reply.cut()

    async with Rude().running() as server, client(server.url) as one:
        server.script = [begun]
        started = time.monotonic()
        await fails(one, OutcomeUnknown, "could not be resumed")
        assert time.monotonic() - started < 5
        await fine(one)


@on_a_loop
async def test_a_session_that_is_gone_when_a_stream_is_resumed_leaves_the_outcome_unknown() -> None:
    async def begun(reply: Reply) -> None:
        await reply.begin_events()
        await reply.chunk(b"id: 1\ndata:\n\n")
        reply.cut()

    async def gone(reply: Reply) -> None:
        await reply.send(404)

    async with Rude().running() as server, client(server.url, hands=False) as one:
        await one.ask("initialize")
        server.script, server.streams = [begun], [gone]
        await fails(one, OutcomeUnknown)
        assert one.lost == ["the server knows the session no longer"]
        await fails(one, BackendUnavailable, "session")


@pytest.mark.parametrize(
    ("status", "body"),
    [
        (404, {"jsonrpc": "2.0", "id": None, "error": {"code": -32001, "message": "Session not found"}}),
        (404, b"404 page not found"),
        (
            400,
            {"jsonrpc": "2.0", "id": None, "error": {"code": -32000, "message": "Bad Request: Server not initialized"}},
        ),
        (400, {"jsonrpc": "2.0", "id": 2, "error": {"code": -32000, "message": "No valid session ID provided"}}),
        (400, b"Invalid session ID"),
        (400, {"error": "Missing session"}),
    ],
)
@on_a_loop
async def test_a_server_that_knows_the_session_no_longer_ends_it(status: int, body: object) -> None:
    async def forgotten(reply: Reply) -> None:
        await reply.send(status, body)

    async with Rude().running() as server, client(server.url) as one:
        server.script = [forgotten]
        assert (await fails(one, SessionForgotten, "session")).retryable
        assert one.lost == ["the server knows the session no longer"]
        assert not one.alive()
        await fails(one, BackendUnavailable, "session")
        assert len(server.bodies("tools/call")) == 1
        async with client(server.url) as other:
            await fine(other)
    # A session that is over is not ended once more.
    assert [asked.headers["mcp-session-id"] for asked in server.asked if asked.method == "DELETE"] == ["s-1"]


@pytest.mark.parametrize(
    ("status", "code", "number"),
    [(404, -32601, 2), (400, -32602, 2), (400, -32602, None), (200, -32603, None), (500, -32603, 2)],
)
@on_a_loop
async def test_an_error_of_the_protocol_is_an_answer_whatever_its_status(
    status: int, code: int, number: int | None
) -> None:
    async def refused(reply: Reply) -> None:
        error = {"code": code, "message": "no such session of yours" if code == -32602 and number else "no"}
        await reply.send(status, {"jsonrpc": "2.0", "id": number, "error": error})

    async with Rude().running() as server, client(server.url) as one:
        server.script = [refused]
        assert (await one.ask("tools/call"))["error"]["code"] == code
        await fine(one)


@pytest.mark.parametrize("status", [401, 403])
@on_a_loop
async def test_a_server_that_wants_another_token_is_unavailable_and_the_hint_says_where_to_put_it(status: int) -> None:
    async def refused(reply: Reply) -> None:
        said = {"error": {"message": f"token {TOKEN} is\x1b[31m wrong"}}
        await reply.send(status, said, www_authenticate=f'Bearer realm="x", error="invalid_token {TOKEN}"')

    async with Rude().running() as server, client(server.url, bearer_token=TOKEN) as one:
        server.script = [refused]
        error = await fails(one, BackendUnavailable, 'asks for Bearer realm="x"')
        assert "`bearer_token`" in error.hint
        assert "`headers`" in error.hint
        for text in (str(error), error.hint, repr(error), repr(error.details())):
            assert TOKEN not in text
            assert "\x1b" not in text
        assert all(asked.headers["authorization"] == f"Bearer {TOKEN}" for asked in server.asked)
        await fine(one)


@pytest.mark.parametrize(
    ("status", "asked", "seconds"), [(503, "7", 7), (429, "1.5", 2), (503, "soon", None), (503, "0", None)]
)
@on_a_loop
async def test_a_busy_server_is_unavailable_for_as_long_as_it_says(
    status: int, asked: str, seconds: int | None
) -> None:
    async def busy(reply: Reply) -> None:
        await reply.send(status, b"come back", "text/plain", retry_after=asked)

    async with Rude().running() as server, client(server.url) as one:
        server.script = [busy]
        error = await fails(one, BackendUnavailable, "busy .*come back")
        assert isinstance(error, BackendUnavailable)
        assert error.retry_after == seconds
        assert error.details().get("retry_after") == seconds
        await fine(one)


@pytest.mark.parametrize("status", [500, 502, 504])
@on_a_loop
async def test_a_failure_of_the_server_or_of_a_proxy_leaves_the_outcome_unknown(status: int) -> None:
    async def failed(reply: Reply) -> None:
        await reply.send(status, b"<html>Bad Gateway</html>", "text/html")

    async with Rude().running() as server, client(server.url) as one:
        server.script = [failed]
        error = await fails(one, OutcomeUnknown, f"status {status}")
        assert "<html>" not in str(error)
        await fine(one)


@pytest.mark.parametrize("status", [404, 405])
@on_a_loop
async def test_an_address_without_mcp_says_so_at_the_handshake(status: int) -> None:
    async def no(reply: Reply) -> None:
        await reply.send(status, b"nothing here", "text/plain")

    async with Rude(script=[no]).running() as server:
        with pytest.raises(BackendProtocolError, match="no MCP server") as raised:
            async with client(server.url):
                pass
        assert "`url`" in raised.value.hint
        assert "HTTP+SSE" in raised.value.hint


@pytest.mark.parametrize(
    ("kind", "body"),
    [
        ("text/html", b"<html>log in</html>"),
        ("application/json", b"{"),
        ("application/json", b"[]"),
        ("application/json", b"7"),
        ("application/json", b'{"jsonrpc": "2.0", "id": 99, "result": {}}'),
        ("application/json", b'{"jsonrpc": "2.0", "id": 2, "result": NaN}'),
        ("application/json", b"[" * 100_000),
        ("application/json", b""),
    ],
)
@on_a_loop
async def test_an_answer_that_is_none_is_an_error_of_the_protocol(kind: str, body: bytes) -> None:
    async def junk(reply: Reply) -> None:
        await reply.send(200, body, kind)

    async with Rude().running() as server, client(server.url) as one:
        server.script = [junk]
        error = await fails(one, BackendProtocolError)
        assert "may have happened" in error.hint
        await fine(one)


@on_a_loop
async def test_a_batch_of_messages_is_taken_apart() -> None:
    async def batch(reply: Reply) -> None:
        note = {"jsonrpc": "2.0", "method": "notifications/message", "params": {}}
        answer = {"jsonrpc": "2.0", "id": str(reply.asked.body["id"]), "result": {"content": [{"text": "in a list"}]}}
        await reply.send(200, [note, answer])

    async with Rude().running() as server, client(server.url) as one:
        server.script = [batch]
        assert await one.call("echo") == "in a list"
        assert one.came[-2]["method"] == "notifications/message"


@on_a_loop
async def test_events_that_hold_no_message_are_passed_over() -> None:
    async def junk(reply: Reply) -> None:
        await reply.begin_events()
        await reply.chunk(b": hello\n\nevent: ping\ndata: 1\n\ndata: {broken\n\ndata: [1]\n\nwhatever\n\n\xff\xfe\n\n")
        await reply.chunk(b"event: other\ndata: {}\n\nid\ndata\n\ndata: \xff\n\n")
        await reply.answer_event({"content": [{"text": "at last"}]}, to=99)
        await reply.answer_event({"content": [{"text": "at last"}]})
        await reply.end()

    async with Rude().running() as server, client(server.url) as one:
        server.script = [junk]
        assert await one.call("echo") == "at last"
        await fine(one)


@on_a_loop
async def test_a_stream_may_be_cut_into_single_bytes() -> None:
    async def drip(reply: Reply) -> None:
        message = {"jsonrpc": "2.0", "id": reply.asked.body["id"], "result": {"content": [{"text": "grüße 🦊"}]}}
        first, second = json.dumps(message, ensure_ascii=False).split(", ", 1)
        await reply.begin_events()
        for byte in f"\ufeffevent: message\r\ndata: {first},\r\ndata: {second}\r\n\r\n".encode():
            await reply.chunk(bytes([byte]))
        await reply.end()

    async with Rude().running() as server, client(server.url) as one:
        server.script = [drip]
        assert await one.call("echo") == "grüße 🦊"
        await fine(one)


@on_a_loop
async def test_five_megabytes_in_one_event_come_whole() -> None:
    async def large(reply: Reply) -> None:
        await reply.begin_events()
        await reply.answer_event({"content": [{"text": "x" * 5_000_000}]})
        await reply.end()

    async with Rude().running() as server, client(server.url) as one:
        server.script = [large]
        assert len(await one.call("echo")) == 5_000_000
        await fine(one)


@pytest.mark.parametrize("where", ["body", "declared", "event"])
@on_a_loop
async def test_more_than_64_mib_at_once_are_not_read(where: str) -> None:
    sent = 0

    async def endless(reply: Reply) -> None:
        nonlocal sent
        reply.hang_up()
        if where == "declared":
            await reply.raw(b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: 99999999\r\n\r\n")
            return
        kind = "application/json" if where == "body" else "text/event-stream"
        await reply.raw(f"HTTP/1.1 200 OK\r\ncontent-type: {kind}\r\n\r\ndata: ".encode())
        while sent < 200 << 20:
            await reply.raw(b"x" * (1 << 20))
            sent += 1 << 20

    async with Rude().running() as server, client(server.url) as one:
        server.script = [endless]
        await fails(one, BackendProtocolError, "more than 64 MiB")
        assert sent < 100 << 20
        await fine(one)


@on_a_loop
async def test_a_redirect_to_another_origin_is_not_followed_and_gets_no_token() -> None:
    async with Rude().running() as other, Rude().running() as server:

        async def away(reply: Reply) -> None:
            await reply.send(307, location=f"{other.url}?secret=1")

        async with client(server.url, bearer_token=TOKEN) as one:
            for host in ("127.0.0.1", "localhost"):
                other_url = other.url.replace("127.0.0.1", host)
                server.script = [away]
                error = await fails(one, BackendProtocolError, f"sends to http://127.0.0.1:{other.port} ")
                assert "secret" not in str(error)
                assert other_url not in str(error)
            await fine(one)
        assert other.asked == []


@on_a_loop
async def test_a_redirect_within_the_origin_is_followed_with_everything() -> None:
    async def onwards(reply: Reply) -> None:
        await reply.send(reply.asked.body["params"]["status"], location="/mcp/")

    async with Rude().running() as server, client(server.url, bearer_token=TOKEN) as one:
        for status in (307, 308):
            server.script = [onwards]
            answer = await one.ask("tools/call", status=status)
            assert answer["result"]["content"][0]["text"] == "fine"
            before, after = server.bodies("tools/call")[-2:]
            assert (after.path, after.body, after.headers["authorization"]) == (
                "/mcp/",
                before.body,
                f"Bearer {TOKEN}",
            )
        server.script = [onwards] * 9
        with pytest.raises(BackendUnavailable, match="redirects"):
            await one.ask("tools/call", status=307)
        server.script = [onwards]
        with pytest.raises(BackendProtocolError, match="not followed"):
            await one.ask("tools/call", status=302)


@on_a_loop
async def test_taking_a_call_back_closes_its_exchange_and_leaves_the_others_alone() -> None:
    ended = asyncio.Event()

    async def never(reply: Reply) -> None:
        await reply.end_of_client()
        ended.set()

    async with Rude().running() as server, client(server.url) as one:
        server.script = [never]
        call = asyncio.create_task(one.call("echo"))
        await server.until(lambda: len(server.bodies("tools/call")) == 1)
        await fine(one)
        call.cancel()
        with pytest.raises(asyncio.CancelledError):
            await call
        async with asyncio.timeout(5):
            await ended.wait()
        await one.notify("notifications/cancelled", requestId=2)
        assert len(server.bodies("notifications/cancelled")) == 1
        await fine(one)


@on_a_loop
async def test_without_sessions_the_end_of_the_exchange_alone_says_that_a_call_is_taken_back() -> None:
    async with Rude(session="").running() as server, client(server.url, hands=False) as one:
        one.channel.negotiated("2026-07-28")
        await one.notify("notifications/cancelled", requestId=2)
        assert server.asked == []


@on_a_loop
async def test_closing_ends_calls_that_wait_and_the_session() -> None:
    async def never(reply: Reply) -> None:
        await reply.end_of_client()

    async with Rude().running() as server, client(server.url) as one:
        server.script = [never]
        call = asyncio.create_task(one.call("echo"))
        await server.until(lambda: len(server.bodies("tools/call")) == 1)
        await one.channel.close()
        with pytest.raises(OutcomeUnknown, match="closed"):
            await call
        await one.channel.close()
        assert [asked.method for asked in server.asked[-1:]] == ["DELETE"]
        assert server.asked[-1].headers["mcp-session-id"] == "s-1"
        with pytest.raises(BackendUnavailable, match="closed"):
            await one.call("echo")
        assert one.lost == []


@on_a_loop
async def test_a_server_that_does_not_answer_the_end_delays_it_by_a_second_at_most() -> None:
    async def never(reply: Reply) -> None:
        await reply.end_of_client()

    async with Rude().running() as server, client(server.url) as one:
        server.script = [never]
        started = time.monotonic()
        await one.channel.close()
        assert 0.5 < time.monotonic() - started < 3


@on_a_loop
async def test_connections_that_the_server_closed_while_idle_cost_no_call() -> None:
    async with Rude().running() as server, client(server.url) as one:
        for _ in range(5):
            await fine(one)
            before = server.connections
            await server.close_idle()
            await fine(one)
            assert server.connections == before + 1


@on_a_loop
async def test_a_connection_serves_call_after_call_also_where_answers_are_streams() -> None:
    async def streamed(reply: Reply) -> None:
        await reply.begin_events()
        await reply.answer_event({"content": [{"text": "fine"}]})
        await reply.end()

    async with Rude().running() as server, client(server.url) as one:
        await fine(one)
        before = server.connections
        for _ in range(10):
            server.script = [streamed]
            await fine(one)
            await one.quiet()
        assert server.connections == before


@on_a_loop
async def test_a_server_that_hangs_up_without_a_word_leaves_the_outcome_unknown() -> None:
    async def hang_up(reply: Reply) -> None:
        reply.hang_up()

    async def half(reply: Reply) -> None:
        await reply.raw(b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: 100\r\n\r\n{")
        reply.hang_up()

    async def garbage(reply: Reply) -> None:
        await reply.raw(b"SSH-2.0-whatever\r\n\r\n")
        reply.hang_up()

    async with Rude().running() as server, client(server.url) as one:
        for handler in (hang_up, half, garbage):
            server.script = [handler]
            await fails(one, OutcomeUnknown)
            await fine(one)
        assert len(server.bodies("tools/call")) == 6


@on_a_loop
async def test_nobody_there_is_told_within_a_second() -> None:
    async with Rude().running() as server, client(server.url) as one:
        await fine(one)
    started = time.monotonic()
    made = Client(server.url)
    await made.channel.open(made.deliver, made.lose)
    with pytest.raises(BackendUnavailable, match="nothing listens there"):
        await made.ask("initialize")
    assert time.monotonic() - started < 3
    await made.channel.close()


@pytest.mark.parametrize(
    ("url", "words"),
    [
        ("http://no-such-name.invalid:1/x", "name is not known|no connection in time"),
        ("https://127.0.0.1:{port}/x", "no connection in time"),
    ],
)
@on_a_loop
async def test_an_address_that_cannot_be_reached_is_told_without_its_path(url: str, words: str) -> None:
    async with Rude().running() as server:
        made = Client(url.format(port=server.port))
        await made.channel.open(made.deliver, made.lose)
        with pytest.raises(BackendUnavailable, match=words) as raised:
            await made.ask("initialize")
        assert "/x" not in str(raised.value)
        await made.channel.close()


@pytest.mark.parametrize(
    ("table", "words"),
    [
        ({"url": "ftp://x/"}, "url"),
        ({"url": "http://[::1"}, "url"),
        ({"url": ""}, "url"),
        ({"headers": (("X-Key", f"{TOKEN}\nX-Other: 1"),)}, "headers: the value of 'X-Key'"),
        ({"headers": (("X Key", TOKEN),)}, "no name of a header"),
        ({"headers": (("Content-Length", "3"),)}, "Content-Length"),
        ({"bearer_token": f"{TOKEN}\n"}, "bearer_token has characters"),
        ({"bearer_token": TOKEN, "headers": (("authorization", "Basic x"),)}, "both say who asks"),
    ],
)
@on_a_loop
async def test_a_table_that_cannot_be_sent_is_refused_before_anything_is(table: dict[str, Any], words: str) -> None:
    made = Client(**({"url": "http://127.0.0.1:1/"} | table))
    with pytest.raises(BackendUnavailable, match=words) as raised:
        await made.channel.open(made.deliver, made.lose)
    assert TOKEN not in f"{raised.value}{raised.value.hint}"
    assert "agora.toml" in raised.value.hint
    assert not made.alive()
    await made.channel.close()


@on_a_loop
async def test_a_channel_that_was_never_opened_or_whose_opening_was_cancelled_closes_all_the_same() -> None:
    made = Client("http://127.0.0.1:1/")
    with pytest.raises(BackendUnavailable, match="not open"):
        await made.ask("initialize")
    await made.channel.close()
    opening = asyncio.create_task(made.channel.open(made.deliver, made.lose))
    await asyncio.sleep(0)
    opening.cancel()
    with pytest.raises(asyncio.CancelledError):
        await opening
    await asyncio.gather(made.channel.close(), made.channel.close())
    assert not made.alive()


@on_a_loop
async def test_closing_while_a_connection_is_made_sends_nothing() -> None:
    async with Rude().running() as server:
        # TLS that nobody answers: the connection is under way for as long as it may be.
        made = Client(server.url.replace("http:", "https:"))
        await made.channel.open(made.deliver, made.lose)
        call = asyncio.create_task(made.ask("initialize"))
        await server.until(lambda: server.connections == 1)
        await made.channel.close()
        with pytest.raises(OutcomeUnknown, match="closed"):
            await call
        assert server.asked == []


@on_a_loop
async def test_a_session_that_ends_does_not_take_away_the_answer_that_is_on_its_way() -> None:
    go = asyncio.Event()

    async def slow(reply: Reply) -> None:
        await go.wait()
        await reply.result({"content": [{"text": "after all"}]})

    async def gone(reply: Reply) -> None:
        await reply.send(404)

    async with Rude().running() as server, client(server.url) as one:
        server.script = [slow, gone]
        call = asyncio.create_task(one.call("echo"))
        await server.until(lambda: len(server.bodies("tools/call")) == 1)
        await fails(one, SessionForgotten, "session")
        go.set()
        assert await call == "after all"
        assert len(one.lost) == 1


@on_a_loop
async def test_an_answer_may_take_longer_than_a_connection() -> None:
    async def slow(reply: Reply) -> None:
        await reply.begin_events()
        for _ in range(5):
            await asyncio.sleep(0.1)
            await reply.chunk(b": still here\n\n")
        await reply.answer_event({"content": [{"text": "late"}]})
        await reply.end()

    async with Rude().running() as server, client(server.url, start_timeout=0.2, timeout=0.2) as one:
        server.script = [slow]
        assert await one.call("echo") == "late"
