"""Who is told of changes: https://modelcontextprotocol.io/specification/2026-07-28/basic/utilities/subscriptions"""

from __future__ import annotations

import threading
import warnings
from contextlib import AbstractAsyncContextManager
from dataclasses import replace
from functools import partial
from typing import Any

import anyio
import anyio.to_thread
import pytest
from mcp import Client, MCPDeprecationWarning
from mcp.shared.exceptions import MCPError
from mcp_types import INVALID_PARAMS
from tests.protocol.bench import Bench
from tests.protocol.heard import Heard, subscribed

from agora.memory.watching import Watch
from agora.model.deadline import Deadline
from agora.protocol.subscriptions import RESOURCES
from agora.stores.sqlite.store import SqliteStore

pytestmark = pytest.mark.anyio


def hearing(bench: Bench, mode: str, *uris: str, **given: Any) -> AbstractAsyncContextManager[tuple[Client, Heard]]:
    """A client that hears of both lists and of `uris`."""
    return subscribed(partial(bench.client, mode=mode, **given), *uris, legacy=mode == "legacy")


async def test_changes_of_this_process_reach_those_who_asked(bench: Bench, mode: str) -> None:
    services = bench.services()
    async with bench.client(tools=services, name="bob") as bob:
        note = (await bench.ok(bob, "agora_save", content="the port is 8080", key="port"))["id"]
        uri = f"agora://notes/{note}"
        async with hearing(bench, mode, uri, tools=services) as (_, heard):
            await bench.ok(bob, "agora_save", content="something else")
            await heard.settled("resources")
            await bench.ok(bob, "agora_save", content="the port is 9090", key="port")
            await heard.settled("resources", f"updated {uri}")
            await bench.ok(bob, "agora_forget", ids=[note], dry_run=False)
            await heard.settled("resources", f"updated {uri}")


async def test_nothing_is_watched_while_nobody_asked(bench: Bench) -> None:
    services = bench.services()
    assert services.watch is not None
    async with bench.client(tools=services) as client:
        await bench.ok(client, "agora_save", content="text")
        assert services.watch._thread is None
        await client.list_resources()
        assert services.watch._thread is None
    async with bench.client(mode="legacy", tools=services) as client:
        assert services.watch._thread is None
        await client.list_resources()
        assert services.watch._thread is not None


async def test_a_client_subscribes_to_so_many_resources_and_no_more_in_either_era(bench: Bench, mode: str) -> None:
    many = [f"agora://agents/made-up-{number}" for number in range(RESOURCES)]
    make = partial(bench.client, mode=mode, tools=bench.services())
    if mode == "auto":
        with pytest.raises((MCPError, ExceptionGroup)) as caught:
            async with subscribed(make, *many, "agora://status", legacy=False):
                pass
        error: BaseException = caught.value
        while isinstance(error, BaseExceptionGroup):
            error = error.exceptions[0]
        assert isinstance(error, MCPError)
        assert error.error.code == INVALID_PARAMS
        return
    async with subscribed(make, *many[:3], legacy=True) as (client, _):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", MCPDeprecationWarning)
            for uri in many:
                await client.subscribe_resource(uri)
            # One that is there already takes no room.
            await client.subscribe_resource(many[0])
            with pytest.raises(MCPError) as refused:
                await client.subscribe_resource("agora://status")
        assert refused.value.error.code == INVALID_PARAMS


async def test_a_client_that_lists_tools_waits_for_no_store(bench: Bench) -> None:
    opening, asked = threading.Event(), threading.Event()

    def records(_: Deadline) -> SqliteStore:
        asked.set()
        assert opening.wait(10)
        return bench.store

    watch = Watch(records, bench.log, 0.05)
    bench.watches.append(watch)
    try:
        async with bench.client(mode="legacy", tools=replace(bench.services(), watch=watch)) as client:
            assert (await client.list_tools()).tools
            assert await anyio.to_thread.run_sync(asked.wait, 5)
            assert (await client.list_tools()).tools
            assert watch._thread is None
            opening.set()
            with anyio.fail_after(5):
                await client.list_prompts()
            assert watch._thread is not None
    finally:
        opening.set()


async def test_who_has_only_listed_tools_is_not_told_of_resources(bench: Bench) -> None:
    services, quiet = bench.services(), Heard()
    make = partial(bench.client, mode="legacy", tools=services)
    async with make(message_handler=quiet) as client, subscribed(make, legacy=True) as (_, heard):
        await client.list_tools()
        await bench.ok(client, "agora_save", content="one")
        await heard.until({"resources"})
        await bench.ok(client, "agora_save", content="two")
        await heard.until({"resources"})
        assert quiet.told == []
