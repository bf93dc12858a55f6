"""A session with the SDK's Streamable HTTP server, which is a process of its own."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import Iterator

import pytest
from tests.integration.backends.http_rig import Process, client, on_a_loop, process

from agora.errors import BackendUnavailable, OutcomeUnknown

KINDS = {"events": (), "json": ("json",), "stateless": ("stateless",), "stateless json": ("stateless", "json")}


@pytest.fixture(scope="module", params=KINDS)
def server(request: pytest.FixtureRequest) -> Iterator[Process]:
    with process(*KINDS[request.param]) as started:
        yield started


@pytest.fixture(scope="module")
def events() -> Iterator[Process]:
    """One that answers with events, and has sessions that can be resumed."""
    with process("resumable") as started:
        yield started


@on_a_loop
async def test_a_tool_of_every_kind_of_server_answers(server: Process) -> None:
    async with client(server.url) as one:
        assert {"echo", "large"} <= {tool["name"] for tool in (await one.ask("tools/list"))["result"]["tools"]}
        assert await one.call("echo", text="grüße 🦊\u2028\r\n") == "grüße 🦊\u2028\r\n"
        assert one.alive()
        assert one.channel.last_words == ""
    assert not one.alive()
    assert one.lost == []


@on_a_loop
async def test_a_revision_without_sessions_works_at_every_kind_of_server(server: Process) -> None:
    async with client(server.url, hands=False) as one:
        found = await one.ask_stateless("server/discover")
        assert "2026-07-28" in found["result"]["supportedVersions"]
        one.channel.negotiated("2026-07-28")
        assert (await one.ask_stateless("tools/list"))["result"]["tools"]
        answer = await one.call_stateless("echo", text="x")
        assert answer["result"]["content"][0]["text"] == "x"


@on_a_loop
async def test_an_argument_that_the_server_wants_in_a_header_too_is_put_there(server: Process) -> None:
    async with client(server.url, hands=False) as one:
        one.channel.negotiated("2026-07-28")
        await one.ask_stateless("tools/list")
        # This server compares the header with the argument; not even ASCII may change on the way.
        for region in ("eu-west", "größer", " edge ", "=?base64?eA==?="):
            answer = await one.call_stateless("region", region=region, text="taken")
            assert answer.get("result", answer)["content"][0]["text"] == "taken"


@on_a_loop
async def test_twenty_calls_at_once_each_get_their_own_answer(server: Process) -> None:
    async with client(server.url) as one:
        texts = [f"number {i}" for i in range(20)]
        assert await asyncio.gather(*(one.call("echo", text=text) for text in texts)) == texts


@on_a_loop
async def test_five_megabytes_come_whole(server: Process) -> None:
    async with client(server.url) as one:
        assert len(await one.call("large", bytes=5_000_000)) == 2_500_000


@on_a_loop
async def test_progress_comes_before_the_answer(events: Process) -> None:
    async with client(events.url) as one:
        await one.ask("tools/call", name="progress", arguments={}, _meta={"progressToken": "p"})
        told = [message["params"]["progress"] for message in one.came if "progress" in json.dumps(message)]
        assert told == [1, 2, 3]
        assert "result" in one.came[-1]


@on_a_loop
async def test_a_server_can_ask_something_in_the_middle_of_a_call(events: Process) -> None:
    async with client(events.url) as one:
        assert await one.call("roots") == "file:///here"


@on_a_loop
async def test_what_nobody_asked_for_comes_on_a_stream_of_its_own(events: Process) -> None:
    async with client(events.url) as one:
        await one.call("changed")
        await one.until(lambda: "notifications/tools/list_changed" in one.methods())


@on_a_loop
async def test_a_stream_that_the_server_ends_early_is_resumed(events: Process) -> None:
    async with client(events.url) as one:
        assert await one.call("disconnect", text="later") == "later"
        assert (await one.call("calls")).split(",").count("disconnect") == 1


@on_a_loop
async def test_a_killed_server_that_runs_again_on_the_same_port_has_lost_the_session_and_takes_a_new_one() -> None:
    first = Process()
    try:
        async with client(first.url) as one:
            assert await one.call("echo", text="before") == "before"
            first.kill()
            with pytest.raises(BackendUnavailable, match="nothing listens there"):
                await one.call("echo", text="while it is gone")
            assert one.alive()
            with process(port=first.port) as second:
                with pytest.raises(BackendUnavailable, match="session"):
                    await one.call("echo", text="after")
                assert one.lost == ["the server knows the session no longer"]
                assert not one.alive()
                async with client(second.url) as other:
                    assert await other.call("echo", text="again") == "again"
                    assert (await other.call("calls")).split(",") == ["echo", "calls"]
    finally:
        first.kill()


@pytest.mark.parametrize("kind", [(), ("json",), ("resumable",)])
@on_a_loop
async def test_a_server_that_is_killed_in_a_call_leaves_the_outcome_unknown_at_once(kind: tuple[str, ...]) -> None:
    with process(*kind) as server:
        async with client(server.url) as one:
            call = asyncio.create_task(one.call("hang"))
            # Until it has arrived.
            while "hang" not in await one.call("calls"):
                pass
            started = time.monotonic()
            server.kill()
            with pytest.raises(OutcomeUnknown):
                await call
            assert time.monotonic() - started < 3
            with pytest.raises(BackendUnavailable, match="nothing listens there"):
                await one.call("echo")
