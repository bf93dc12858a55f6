"""Who is told of changes: https://modelcontextprotocol.io/specification/2026-07-28/basic/utilities/subscriptions"""

from __future__ import annotations

import warnings
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import anyio
import pytest
from mcp import Client, MCPDeprecationWarning
from mcp.shared.exceptions import MCPError
from mcp.shared.subscriptions import PromptsListChanged, ResourcesListChanged, ResourceUpdated
from mcp_types import PromptListChangedNotification, ResourceListChangedNotification, ResourceUpdatedNotification
from tests.conftest import Desk
from tests.protocol.bench import Bench

pytestmark = pytest.mark.anyio


class Heard:
    """What a client was told, in either era, as `kind` or `kind uri`."""

    def __init__(self) -> None:
        self.told: list[str] = []
        self._more = anyio.Event()

    async def __call__(self, message: Any) -> None:
        """Take a message of the handshake era."""
        match message:
            case ResourceUpdatedNotification(params=params):
                self._heard(f"updated {params.uri}")
            case ResourceListChangedNotification():
                self._heard("resources")
            case PromptListChangedNotification():
                self._heard("prompts")

    def event(self, event: object) -> None:
        """Take an event of a stream."""
        match event:
            case ResourceUpdated(uri):
                self._heard(f"updated {uri}")
            case ResourcesListChanged():
                self._heard("resources")
            case PromptsListChanged():
                self._heard("prompts")

    def _heard(self, what: str) -> None:
        self.told.append(what)
        self._more.set()

    async def until(self, expected: set[str], seconds: float = 5) -> None:
        """Wait until all of `expected` were told."""
        with anyio.fail_after(seconds):
            while not expected <= set(self.told):
                self._more = anyio.Event()
                await self._more.wait()

    async def settled(self, *expected: str) -> None:
        """Wait until all of `expected` were told, then a moment for what should not come."""
        await self.until(set(expected))
        await anyio.sleep(0.15)
        assert set(self.told) == set(expected)
        self.told.clear()


@asynccontextmanager
async def subscribed(bench: Bench, mode: str, *uris: str, **given: Any) -> AsyncIterator[tuple[Client, Heard]]:
    """A client that hears of both lists and of `uris`."""
    heard = Heard()
    async with bench.client(mode=mode, message_handler=heard, **given) as client:
        if mode == "legacy":
            await client.list_resources()
            await client.list_prompts()
            for uri in uris:
                with warnings.catch_warnings():
                    warnings.simplefilter("ignore", MCPDeprecationWarning)
                    await client.subscribe_resource(uri)
            yield client, heard
            return
        async with (
            client.listen(
                resources_list_changed=True, prompts_list_changed=True, resource_subscriptions=list(uris)
            ) as stream,
            anyio.create_task_group() as tasks,
        ):

            async def take() -> None:
                async for event in stream:
                    heard.event(event)

            tasks.start_soon(take)
            yield client, heard
            tasks.cancel_scope.cancel()


async def test_changes_of_this_process_reach_those_who_asked(bench: Bench, mode: str) -> None:
    services = bench.services()
    async with bench.client(tools=services, name="bob") as bob:
        note = (await bench.ok(bob, "agora_save", content="the port is 8080", key="port"))["id"]
        uri = f"agora://notes/{note}"
        async with subscribed(bench, mode, uri, tools=services) as (_, heard):
            await bench.ok(bob, "agora_save", content="something else")
            await heard.settled("resources")
            await bench.ok(bob, "agora_save", content="the port is 9090", key="port")
            await heard.settled("resources", f"updated {uri}")
            await bench.ok(bob, "agora_forget", ids=[note], dry_run=False)
            await heard.settled("resources", f"updated {uri}")


async def test_changes_of_another_process_are_told_within_a_second(bench: Bench, mode: str) -> None:
    services = bench.services()
    uris = ("agora://namespaces/acme/shop", "agora://agents/carl", "agora://changes", "agora://search?q=port")
    async with subscribed(bench, mode, *uris, "agora://agents/dora", tools=services) as (_, heard):
        with anyio.fail_after(1.0):
            desk = await anyio.to_thread.run_sync(lambda: Desk(bench.home))
            await anyio.to_thread.run_sync(lambda: desk.save("from elsewhere", "carl", "acme/shop"))
            await heard.until({"updated agora://agents/carl"})
        await heard.settled("resources", *(f"updated {uri}" for uri in uris))
        desk.close()


async def test_nobody_hears_of_namespaces_that_he_does_not_see(bench: Bench, mode: str) -> None:
    services = bench.services()
    async with (
        bench.client("acme/hidden", tools=services, name="bob") as bob,
        subscribed(bench, mode, "agora://agents/bob", "agora://status", "agora://changes", tools=services) as (
            client,
            heard,
        ),
    ):
        await bench.ok(bob, "agora_save", content="a text that is none of their business")
        await anyio.sleep(0.3)
        assert heard.told == []
        await bench.ok(client, "agora_save", content="a text of this project")
        await heard.settled("resources", "updated agora://status", "updated agora://changes")
        # Once it has named the namespace, it hears.
        await bench.ok(client, "agora_query", query="anything", namespace="acme/hidden")
        await bench.ok(bob, "agora_save", content="another text")
        await heard.settled("resources", "updated agora://status", "updated agora://agents/bob")


async def test_only_what_was_asked_for_is_told(bench: Bench) -> None:
    services = bench.services()
    heard = Heard()
    async with bench.client(tools=services, message_handler=heard) as client:
        async with client.listen(prompts_list_changed=True) as stream, anyio.create_task_group() as tasks:

            async def take() -> None:
                async for event in stream:
                    heard.event(event)

            tasks.start_soon(take)
            await bench.ok(client, "agora_save", content="text")
            await anyio.sleep(0.3)
            tasks.cancel_scope.cancel()
        assert heard.told == []
        # A stream that has ended is told of nothing, and what it watched is watched no more.
        await bench.ok(client, "agora_save", content="more text")


async def test_a_client_that_unsubscribes_hears_no_more(bench: Bench) -> None:
    services = bench.services()
    async with subscribed(bench, "legacy", "agora://status", tools=services) as (client, heard):
        await bench.ok(client, "agora_save", content="one")
        await heard.settled("resources", "updated agora://status")
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", MCPDeprecationWarning)
            await client.unsubscribe_resource("agora://status")
            await client.unsubscribe_resource("agora://never")
        await bench.ok(client, "agora_save", content="two")
        await heard.settled("resources")


async def test_the_users_folder_of_prompts_is_watched(bench: Bench, mode: str, tmp_path: Path) -> None:
    folder = tmp_path / "prompts"
    folder.mkdir()
    async with subscribed(bench, mode, tools=bench.services(folder)) as (_, heard):
        (folder / "mine.md").write_text("---\nname: mine\ntitle: T\ndescription: D\n---\ntext\n", "utf-8")
        await heard.settled("prompts")
        (folder / "mine.md").unlink()
        await heard.settled("prompts")


async def test_what_cannot_be_a_resource_cannot_be_subscribed_to(bench: Bench) -> None:
    services = bench.services()
    async with bench.client(mode="legacy", tools=services) as client:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", MCPDeprecationWarning)
            with pytest.raises(MCPError) as caught:
                await client.subscribe_resource("https://example.com/")
        assert caught.value.error.code == -32002
    async with bench.client(tools=services) as client:
        with pytest.raises(MCPError) as caught:
            async with client.listen(resource_subscriptions=["agora://nothing"]):
                pass
        assert caught.value.error.code == -32602


async def test_nothing_is_watched_while_nobody_asked(bench: Bench) -> None:
    services = bench.services()
    assert services.watch is not None
    async with bench.client(tools=services) as client:
        await bench.ok(client, "agora_save", content="text")
        assert services.watch._thread is None
        await client.list_resources()
        assert services.watch._thread is None
    async with bench.client(mode="legacy", tools=services) as client:
        await client.list_resources()
        assert services.watch._thread is not None
