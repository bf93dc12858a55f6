"""Calls that take long, are taken back, or fail where they must not."""

from __future__ import annotations

import time

import anyio
import anyio.to_thread
import pytest
from mcp import MCPError
from mcp_types import INTERNAL_ERROR
from tests.protocol.bench import Bench

pytestmark = pytest.mark.anyio


async def test_a_call_that_is_taken_back_stops_and_writes_nothing(bench: Bench, mode: str) -> None:
    async with bench.client(mode=mode) as client:
        before = bench.contents()
        bench.encoder.mood = "slow"
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(client.call_tool, "agora_save", {"content": "never mind"})
            assert await anyio.to_thread.run_sync(bench.encoder.entered.wait, 5)
            tasks.cancel_scope.cancel()
        assert await anyio.to_thread.run_sync(bench.encoder.gave_up.wait, 5)
        bench.encoder.mood = "well"
        assert bench.contents() == before
        assert (await bench.ok(client, "agora_save", content="the next one"))["status"] == "created"


async def test_a_call_ends_at_its_deadline(bench: Bench, mode: str) -> None:
    async with bench.client(mode=mode, tools=bench.tools_with(call_seconds=0.3)) as client:
        before = bench.contents()
        bench.encoder.mood = "slow"
        started = time.monotonic()
        error = await bench.refused(client, "agora_save", content="too slow")
        assert time.monotonic() - started < 1.5
        assert error["code"] == "deadline_exceeded"
        assert error["retryable"] is True
        assert "0.3 s" in error["message"]
        bench.encoder.mood = "well"
        assert bench.contents() == before
        assert (await bench.ok(client, "agora_save", content="in time"))["status"] == "created"


async def test_a_call_whose_thread_hangs_is_answered_all_the_same(bench: Bench) -> None:
    async with bench.client(tools=bench.tools_with(call_seconds=0.2)) as client:
        bench.encoder.mood = "stuck"
        started = time.monotonic()
        error = await bench.refused(client, "agora_query", query="anybody there")
        assert time.monotonic() - started < 4
        assert error["code"] == "deadline_exceeded"
        assert "Look before you try again" in error["hint"]
        bench.encoder.mood = "well"
        assert (await bench.ok(client, "agora_query", query="anybody there"))["results"] == []


async def test_what_breaks_inside_stays_inside(bench: Bench, mode: str) -> None:
    async with bench.client(mode=mode) as client:
        bench.encoder.mood = "broken"
        with pytest.raises(MCPError) as caught:
            await client.call_tool("agora_save", {"content": "a private text"})
        assert caught.value.code == INTERNAL_ERROR
        assert caught.value.message == "Internal error"
        assert caught.value.data is None
        assert ("warning", "call failed", {"tool": "agora_save", "exc_info": True}) in bench.log.heard
        bench.encoder.mood = "well"
        assert (await bench.ok(client, "agora_save", content="a private text"))["status"] == "created"


async def test_the_log_holds_no_contents_above_debug(bench: Bench) -> None:
    words = "the launch code is twelve"
    async with bench.client() as client:
        saved = await bench.ok(
            client, "agora_save", content=words, title=words, tags=["launch code"], key="launch code"
        )
        await bench.ok(client, "agora_query", query=words, explain=True)
        await bench.ok(client, "agora_forget", ids=[saved["id"]], reason=words, dry_run=False)
        await bench.refused(client, "agora_query", query=words, top_k=0)
        bench.encoder.mood = "broken"
        with pytest.raises(MCPError):
            await client.call_tool("agora_query", {"query": words})
    loud = [event for event in bench.log.heard if event[0] != "debug"]
    assert len(loud) >= 4
    assert "launch code" not in repr(loud)
