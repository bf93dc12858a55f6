"""What a client was told of changes, in either era."""

from __future__ import annotations

import warnings
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any

import anyio
from mcp import Client, MCPDeprecationWarning
from mcp.shared.subscriptions import PromptsListChanged, ResourcesListChanged, ResourceUpdated, ToolsListChanged
from mcp_types import (
    PromptListChangedNotification,
    ResourceListChangedNotification,
    ResourceUpdatedNotification,
    ToolListChangedNotification,
)


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
            case ToolListChangedNotification():
                self._heard("tools")

    def event(self, event: object) -> None:
        """Take an event of a stream."""
        match event:
            case ResourceUpdated(uri):
                self._heard(f"updated {uri}")
            case ResourcesListChanged():
                self._heard("resources")
            case PromptsListChanged():
                self._heard("prompts")
            case ToolsListChanged():
                self._heard("tools")

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
async def subscribed(make: Callable[..., Client], *uris: str, legacy: bool) -> AsyncIterator[tuple[Client, Heard]]:
    """A client, made with a handler of messages, that hears of every list and of `uris`."""
    heard = Heard()
    async with make(message_handler=heard) as client:
        await client.list_tools()
        if legacy:
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
                tools_list_changed=True,
                resources_list_changed=True,
                prompts_list_changed=True,
                resource_subscriptions=list(uris),
            ) as stream,
            anyio.create_task_group() as tasks,
        ):

            async def take() -> None:
                async for event in stream:
                    heard.event(event)

            tasks.start_soon(take)
            yield client, heard
            tasks.cancel_scope.cancel()
