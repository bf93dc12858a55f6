"""What a client that asks for log messages is told of its own requests."""

from __future__ import annotations

import warnings
from typing import Any, Literal

import anyio
import pytest
from mcp import MCPDeprecationWarning
from mcp_types import LoggingMessageNotification, LoggingMessageNotificationParams
from tests.protocol.links import Link, ok, refused
from tests.protocol.spec import spec

pytestmark = pytest.mark.anyio


class Taken:
    """Log messages as they come."""

    def __init__(self) -> None:
        self.heard: list[tuple[str, Any]] = []
        self._more = anyio.Event()

    async def message(self, message: Any) -> None:
        if isinstance(message, LoggingMessageNotification):
            self.take(message.params)

    async def params(self, params: LoggingMessageNotificationParams) -> None:
        self.take(params)

    def take(self, params: LoggingMessageNotificationParams) -> None:
        self.heard.append((params.level, params.data))
        self._more.set()

    async def number(self, wanted: int) -> None:
        with anyio.fail_after(5):
            while len(self.heard) < wanted:
                self._more = anyio.Event()
                await self._more.wait()


@spec(
    "2025-11-25/server/utilities/logging#setting-log-level",
    "2025-11-25/server/utilities/logging#log-message-notifications",
)
async def test_a_client_hears_of_its_own_calls_at_the_level_that_it_asked_for(legacy: Link) -> None:
    taken = Taken()

    async def at(level: Literal["warning", "debug"]) -> None:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", MCPDeprecationWarning)
            await client.set_logging_level(level)

    async with legacy.client(fresh=True, message_handler=taken.message) as client:
        await refused(client, "agora_query", query="")
        assert taken.heard == [], "nothing before it is asked for"
        await at("warning")
        await refused(client, "agora_query", query="")
        await taken.number(1)
        await ok(client, "agora_save", content="the secret of the log", namespace=legacy.space)
        await at("debug")
        await ok(client, "agora_save", content="another secret of the log", namespace=legacy.space)
        await taken.number(2)
    (refusal, answered) = taken.heard
    assert refusal[0] == "warning"
    assert (refusal[1]["event"], refusal[1]["request"]) == ("call refused", "agora_query")
    assert refusal[1]["code"] == "invalid_input"
    assert (answered[0], answered[1]["event"]) == ("debug", "call answered")
    assert "secret" not in str(taken.heard)


@spec("2025-11-25/server/utilities/logging#error-handling")
async def test_a_level_that_does_not_exist_is_invalid(legacy: Link) -> None:
    async with legacy.raw() as raw:
        assert (await raw.error("logging/setLevel", level="loud"))["code"] == -32602


@spec("2026-07-28/server/utilities/logging#per-request-log-level")
async def test_a_request_says_itself_which_messages_it_wants(modern: Link) -> None:
    taken = Taken()
    async with modern.client(logging_callback=taken.params, log_level="warning") as client:
        await ok(client, "agora_save", content="the secret of the log", namespace=modern.space)
        await refused(client, "agora_query", query="")
        await taken.number(1)
    silent = Taken()
    async with modern.client(logging_callback=silent.params) as client:
        await refused(client, "agora_query", query="")
        await ok(client, "agora_status")
    assert silent.heard == []
    ((level, data),) = taken.heard
    assert (level, data["event"], data["request"]) == ("warning", "call refused", "agora_query")
