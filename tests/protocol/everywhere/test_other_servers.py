"""Other MCP servers: what a client is told of them, and when."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any

import anyio
import pytest
from mcp import Client
from tests.protocol.everywhere.test_changes import streaming
from tests.protocol.heard import Heard, subscribed
from tests.protocol.links import Link, ok
from tests.protocol.others import table, there_are
from tests.protocol.spec import spec

pytestmark = pytest.mark.anyio

BACKENDS = "agora://backends"


@asynccontextmanager
async def hearing(link: Link, *uris: str) -> AsyncIterator[tuple[Client, Heard]]:
    def make(**given: Any) -> Client:
        return link.client(fresh=True, **given)

    async with subscribed(make, *uris, legacy=link.era == "legacy") as (client, heard):
        if link.transport == "http":
            # What knocks is heard of by this.
            await ok(client, "agora_query", query="anything", namespace=link.space)
        await streaming(link, client, heard)
        yield client, heard


async def names_of(client: Client) -> set[str]:
    return {tool.name for tool in (await client.list_tools()).tools}


async def told_of(client: Client) -> dict[str, Any]:
    """What the resource says of the backends, by name."""
    (content,) = (await client.read_resource(BACKENDS)).contents
    return {row["name"]: row for row in json.loads(content.text)["backends"]}  # type: ignore[union-attr]


@spec(
    "2025-11-25/server/tools#list-changed-notification",
    "2026-07-28/server/tools#list-changed-notification",
)
async def test_the_list_of_tools_changes_with_the_first_other_server(crossed: Link) -> None:
    async with hearing(crossed) as (client, heard):
        assert "agora_route" not in await names_of(client)
        there_are(crossed, table("other"))
        await heard.until({"tools"})
        assert {"agora_route", "agora_broadcast", "agora_backends"} <= await names_of(client)
        heard.told.clear()
        # One more changes nothing in the list of who sees none of its tools.
        there_are(crossed, table("other"), table("another"))
        await anyio.sleep(0.6)
        assert "tools" not in heard.told
        there_are(crossed)
        await heard.until({"tools"})
        assert "agora_route" not in await names_of(client)


@spec("2025-11-25/server/resources#subscriptions", "2026-07-28/basic/patterns/subscriptions#receiving-notifications")
async def test_who_watches_the_other_servers_hears_of_every_change_of_them(crossed: Link) -> None:
    # What is pinned of a backend outlives a test.
    name = f"watched-{crossed.transport}-{crossed.era}"
    async with hearing(crossed, BACKENDS) as (client, heard):
        assert await told_of(client) == {}
        there_are(crossed, table(name))
        await heard.until({f"updated {BACKENDS}"})
        assert (await told_of(client))[name]["state"] == "stopped"
        for tool, then in (
            ("echo", lambda row: row["state"] == "running"),
            ("change_tools", lambda row: row.get("quarantined") == ["echo"]),
            ("die", lambda row: row["health"] == "degraded"),
        ):
            heard.told.clear()
            await client.call_tool("agora_route", {"target": name, "tool": tool, "arguments": {}})
            await becomes(client, heard, name, then)


async def becomes(client: Client, heard: Heard, name: str, holds: Callable[[dict[str, Any]], bool]) -> None:
    """Return when the row of the backend is so, which whoever watches it is told of."""
    await heard.until({f"updated {BACKENDS}"})
    while True:
        heard.told.clear()
        if holds((await told_of(client))[name]):
            return
        await heard.until({f"updated {BACKENDS}"})


@spec("2025-11-25/server/resources#listing-resources", "2026-07-28/server/resources#listing-resources")
async def test_the_other_servers_are_a_resource_that_is_listed(crossed: Link) -> None:
    async with crossed.client() as client:
        assert BACKENDS in {str(each.uri) for each in (await client.list_resources()).resources}
