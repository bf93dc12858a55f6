"""Who is told of which change, whichever process made it."""

from __future__ import annotations

import warnings
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import anyio
import pytest
from mcp import Client, MCPDeprecationWarning
from mcp.shared.exceptions import MCPError
from tests.protocol.heard import Heard, subscribed
from tests.protocol.links import Link, ok
from tests.protocol.spec import spec

pytestmark = pytest.mark.anyio

PROMPT = "---\nname: mine\ntitle: T\ndescription: D\n---\ntext\n"


@asynccontextmanager
async def hearing(link: Link, *uris: str, fresh: bool = False) -> AsyncIterator[tuple[Client, Heard]]:
    """A client that sees the namespace of the link and hears of it; `fresh` for one that hears of nothing else."""
    space = f"agora://namespaces/{link.space.replace('/', '%2F')}"

    def make(**given: Any) -> Client:
        return link.client(fresh=fresh, **given)

    async with subscribed(make, space, *uris, legacy=link.era == "legacy") as (client, heard):
        await streaming(link, client, heard)
        yield client, heard


async def streaming(link: Link, client: Client, heard: Heard) -> None:
    """Return when the client's stream of messages is open: it opens it by itself, after the handshake."""
    if link.transport != "http" or link.era != "legacy":
        return
    with anyio.fail_after(10):
        while not heard.told:
            await ok(client, "agora_save", content=f"knock {anyio.current_time()}", namespace=link.space)
            with anyio.move_on_after(0.5):
                await heard.until({"resources"})
    await anyio.sleep(0.2)
    heard.told.clear()


def space_of(link: Link) -> str:
    return f"updated agora://namespaces/{link.space.replace('/', '%2F')}"


@spec(
    "2025-11-25/server/resources#subscriptions",
    "2025-11-25/server/resources#list-changed-notification",
    "2026-07-28/basic/patterns/subscriptions#receiving-notifications",
)
async def test_a_change_of_another_process_is_told_within_a_second(link: Link) -> None:
    async with link.elsewhere("carl") as carl:
        note = (await ok(carl, "agora_save", content="the port is 8080", namespace=link.space, key="port"))["id"]
        uri = f"agora://notes/{note}"
        uris = (uri, f"agora://search?q=port&namespace={link.space}")
        async with hearing(link, *uris) as (_, heard):
            await ok(carl, "agora_save", content="the port is 9090", namespace=link.space, key="port")
            with anyio.fail_after(1.0):
                await heard.until({"resources", space_of(link), *(f"updated {each}" for each in uris)})
            heard.told.clear()
            await ok(carl, "agora_forget", ids=[note], namespace=link.space, dry_run=False)
            with anyio.fail_after(1.0):
                await heard.until({"resources", f"updated {uri}"})


@spec(
    "2025-11-25/server/resources#subscriptions",
    "2026-07-28/basic/patterns/subscriptions#receiving-notifications",
)
async def test_a_client_hears_of_its_own_changes_too(link: Link) -> None:
    async with hearing(link, "agora://agents/tester", "agora://agents/nobody", fresh=True) as (client, heard):
        await ok(client, "agora_save", content="by myself", namespace=link.space)
        await heard.settled("resources", space_of(link), "updated agora://agents/tester")


@spec("2025-11-25/server/resources#security-considerations", "2026-07-28/server/resources#security-considerations")
async def test_nobody_hears_of_namespaces_that_he_does_not_see(link: Link) -> None:
    hidden = f"{link.space}-hidden"
    async with link.elsewhere("carl") as carl, hearing(link, "agora://status", fresh=True) as (client, heard):
        await ok(carl, "agora_save", content="none of their business", namespace=hidden)
        await anyio.sleep(0.4)
        assert heard.told == []
        await ok(carl, "agora_save", content="their business", namespace=link.space)
        await heard.settled("resources", space_of(link), "updated agora://status")
        # Once it has named the namespace, it hears.
        await ok(client, "agora_query", query="anything", namespace=hidden)
        await ok(carl, "agora_save", content="now their business too", namespace=hidden)
        await heard.settled("resources", "updated agora://status")


@spec("2025-11-25/server/resources#subscriptions")
async def test_a_client_that_unsubscribes_hears_no_more(legacy: Link) -> None:
    async with legacy.elsewhere("carl") as carl, hearing(legacy, "agora://status", fresh=True) as (client, heard):
        await ok(carl, "agora_save", content="one", namespace=legacy.space)
        await heard.settled("resources", space_of(legacy), "updated agora://status")
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", MCPDeprecationWarning)
            await client.unsubscribe_resource("agora://status")
            await client.unsubscribe_resource("agora://never")
        await ok(carl, "agora_save", content="two", namespace=legacy.space)
        await heard.settled("resources", space_of(legacy))


@spec(
    "2026-07-28/basic/patterns/subscriptions#notification-filter",
    "2026-07-28/basic/patterns/subscriptions#acknowledgment",
)
async def test_only_what_was_asked_for_is_told(modern: Link) -> None:
    heard = Heard()
    async with modern.elsewhere("carl") as carl, modern.client(fresh=True, message_handler=heard) as client:
        await ok(client, "agora_query", query="anything", namespace=modern.space)
        async with client.listen(prompts_list_changed=True) as stream, anyio.create_task_group() as tasks:

            async def take() -> None:
                async for event in stream:
                    heard.event(event)

            tasks.start_soon(take)
            await ok(carl, "agora_save", content="text", namespace=modern.space)
            await anyio.sleep(0.4)
            tasks.cancel_scope.cancel()
        assert heard.told == []


@spec("2026-07-28/basic/patterns/subscriptions#multiple-concurrent-subscriptions")
async def test_streams_beside_each_other_are_told_each_of_its_own(modern: Link) -> None:
    async with modern.elsewhere("carl") as carl, modern.client() as client:
        await ok(client, "agora_query", query="anything", namespace=modern.space)
        heard = {uri: Heard() for uri in ("agora://agents/carl", "agora://agents/nobody")}
        async with (
            client.listen(resource_subscriptions=["agora://agents/carl"]) as one,
            client.listen(resource_subscriptions=["agora://agents/nobody"]) as two,
            anyio.create_task_group() as tasks,
        ):

            async def take(stream: AsyncIterator[object], into: Heard) -> None:
                async for event in stream:
                    into.event(event)

            for stream, into in zip((one, two), heard.values(), strict=True):
                tasks.start_soon(take, stream, into)
            await ok(carl, "agora_save", content="text", namespace=modern.space)
            await heard["agora://agents/carl"].settled("updated agora://agents/carl")
            assert heard["agora://agents/nobody"].told == []
            tasks.cancel_scope.cancel()


@spec("2025-11-25/server/resources#error-handling", "2026-07-28/server/resources#error-handling")
async def test_what_cannot_be_a_resource_cannot_be_subscribed_to(link: Link) -> None:
    async with link.client() as client:
        with pytest.raises(MCPError) as caught:
            await (_listen(client) if link.era == "modern" else _subscribe(client))
        assert caught.value.error.code == link.missing


async def _subscribe(client: Client) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", MCPDeprecationWarning)
        await client.subscribe_resource("https://example.com/")


async def _listen(client: Client) -> None:
    async with client.listen(resource_subscriptions=["agora://nothing"]):
        pass


@spec(
    "2025-11-25/server/prompts#list-changed-notification",
    "2026-07-28/server/prompts#list-changed-notification",
)
async def test_a_prompt_that_the_user_adds_is_told_and_listed(link: Link) -> None:
    folder = link.site.place.home / "prompts"
    folder.mkdir(exist_ok=True)
    file = folder / "mine.md"
    async with hearing(link) as (client, heard):
        try:
            file.write_text(PROMPT, "utf-8")
            await heard.until({"prompts"})
            assert "mine" in [prompt.name for prompt in (await client.list_prompts()).prompts]
            heard.told.clear()
        finally:
            file.unlink()
        await heard.until({"prompts"})
        assert "mine" not in [prompt.name for prompt in (await client.list_prompts()).prompts]
