"""Calls that take long: told of, taken back, ended at their deadline, and never in each other's way."""

from __future__ import annotations

import sqlite3
import time
from contextlib import closing
from typing import Any

import anyio
import anyio.to_thread
import pytest
from tests.protocol.links import ENVELOPE, LINKS, Link, Site, line, ok, refused
from tests.protocol.minded import Minded
from tests.protocol.pipes import LineWire
from tests.protocol.spec import spec

pytestmark = pytest.mark.anyio


def long_text(word: str) -> str:
    """Many passages, each with the word."""
    return f"{word} is said in every passage of a text that is long. " * 150


@spec("2025-11-25/basic/utilities/progress#progress-flow", "2026-07-28/basic/patterns/progress#progress-flow")
async def test_progress_rises_while_a_call_runs_and_says_what_it_is_at(link: Link, minded: Minded) -> None:
    told: list[tuple[float, float | None, str | None]] = []
    word = link.space.replace("/", "")
    with minded.holding(word) as held:

        async def on_progress(progress: float, total: float | None = None, message: str | None = None) -> None:
            told.append((progress, total, message))
            # On a busy machine the first note comes before the call has got that far.
            if len(told) >= 2 and str(message).startswith("encoding"):
                held.release.set()

        async with link.client() as client:
            with anyio.fail_after(15):
                result = await client.call_tool(
                    "agora_save",
                    {"content": long_text(word), "namespace": link.space},
                    progress_callback=on_progress,
                )
            assert not result.is_error, result.structured_content
    assert len(told) >= 2
    assert [each[0] for each in told] == sorted({each[0] for each in told})
    assert {total for _, total, _ in told} == {60.0}
    assert str(told[-1][2]).startswith("encoding")


@spec(
    "2025-11-25/basic/utilities/cancellation#behavior-requirements",
    "2026-07-28/basic/patterns/cancellation#behavior-requirements",
)
async def test_a_call_that_is_taken_back_stops_and_writes_nothing(link: Link, minded: Minded) -> None:
    word = link.space.replace("/", "")
    async with link.client() as client:
        with minded.holding(word) as held:
            async with anyio.create_task_group() as tasks:
                given = {"content": long_text(word), "namespace": link.space}
                tasks.start_soon(client.call_tool, "agora_save", given)
                assert await anyio.to_thread.run_sync(held.entered.wait, 10)
                tasks.cancel_scope.cancel()
            # It is known to the server when what comes behind it is answered.
            await ok(client, "agora_status")
            await anyio.sleep(0.2)
            held.release.set()
            saved = await ok(client, "agora_save", content="the next one", namespace=link.space)
            assert len(held.asked) == 1, "the model is asked for no further passage"
        found = await ok(client, "agora_query", query=f"{word} next one", namespace=link.space, top_k=50)
        assert [hit["id"] for hit in found["results"]] == [saved["id"]]


@spec(
    "2025-11-25/basic/utilities/cancellation#cancellation-flow",
    "2026-07-28/basic/patterns/cancellation#transport-specific-cancellation",
)
@pytest.mark.parametrize("name", [name for name in LINKS if not name.startswith("http")])
async def test_a_call_that_is_taken_back_is_never_answered(name: str, site: Site, minded: Minded) -> None:
    link = Link(name, site)
    word = link.space.replace("/", "")
    async with link.raw() as raw:
        assert isinstance(raw.wire, LineWire)
        params = {"name": "agora_query", "arguments": {"query": word}}
        if link.era == "modern":
            params["_meta"] = ENVELOPE
        with minded.holding(word) as held:
            await raw.wire.post(line(id="taken back", method="tools/call", params=params))
            assert await anyio.to_thread.run_sync(held.entered.wait, 10)
            gone = {"requestId": "taken back", "reason": "no longer wanted"}
            # `say` fails if anything else is answered before what comes behind it.
            assert await raw.wire.say(line(method="notifications/cancelled", params=gone)) is None
            held.release.set()
        for _ in range(3):
            await raw.result("tools/call", name="agora_status", arguments={})


@spec("2025-11-25/basic/transports#sending-messages-to-the-server")
async def test_the_stream_of_a_call_that_is_taken_back_ends_without_a_result(site: Site, minded: Minded) -> None:
    link = Link("http-legacy", site)
    word = link.space.replace("/", "")
    async with link.raw() as raw:
        params = {"name": "agora_query", "arguments": {"query": word}}
        answers: list[dict[str, Any] | None] = []

        async def ask() -> None:
            answers.append(await raw.wire.say(line(id="taken back", method="tools/call", params=params)))

        with minded.holding(word) as held, anyio.fail_after(10):
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(ask)
                assert await anyio.to_thread.run_sync(held.entered.wait, 10)
                gone = {"requestId": "taken back"}
                assert await raw.wire.say(line(method="notifications/cancelled", params=gone)) is None
        (answer,) = answers
        assert answer is not None
        # The stream must end with a message, and this is none that a client could take for a result.
        assert (answer["id"], answer["error"]["code"]) == ("taken back", -32800)


@spec("2025-11-25/basic/lifecycle#timeouts", "2026-07-28/basic/patterns/cancellation#timeouts")
@pytest.mark.parametrize("name", LINKS)
async def test_a_call_ends_at_its_deadline_and_writes_nothing(name: str, hasty: Site) -> None:
    link = Link(name, hasty)
    async with link.client() as client:
        # The first call opens the store, which may take longer than this deadline.
        with anyio.fail_after(30):
            while (await client.call_tool("agora_save", {"content": "in time", "namespace": link.space})).is_error:
                pass
        with closing(sqlite3.connect(hasty.place.home / "agora.db", isolation_level=None)) as other:
            other.execute("BEGIN IMMEDIATE")
            began = time.monotonic()
            error = await refused(client, "agora_save", content="too late", namespace=link.space)
            # Without it the call would wait the ten seconds of `store.busy_timeout`.
            assert time.monotonic() - began < 6
            other.execute("ROLLBACK")
        assert (error["code"], error["retryable"]) == ("store_unavailable", True)
        found = await ok(client, "agora_query", query="in time, too late", namespace=link.space)
        assert [hit["content"] for hit in found["results"]] == ["in time"]


@spec("2025-11-25/basic/utilities/cancellation#timing-considerations", "2026-07-28/basic#statelessness")
async def test_a_slow_call_does_not_hold_up_the_others(link: Link, minded: Minded) -> None:
    word = link.space.replace("/", "")
    with minded.holding(word) as held:
        async with link.client() as client, anyio.create_task_group() as tasks:
            tasks.start_soon(client.call_tool, "agora_query", {"query": word})
            assert await anyio.to_thread.run_sync(held.entered.wait, 10)
            with anyio.fail_after(5):
                await ok(client, "agora_query", query="words alone", mode="lexical", namespace=link.space)
                running = (await ok(client, "agora_status"))["connection"]["running"]
            assert running >= 2
            held.release.set()
