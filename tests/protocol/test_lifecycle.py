"""States, log messages, progress and roots: https://modelcontextprotocol.io/specification/2025-11-25/basic/lifecycle"""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import Any

import anyio
import pytest
from mcp import MCPDeprecationWarning
from mcp.client.context import ClientRequestContext
from mcp_types import ListRootsResult, LoggingMessageNotification, Root
from pydantic import FileUrl
from tests.protocol.bench import Bench, HeardLog

from agora.config.project import project_namespace
from agora.errors import ConfigError
from agora.protocol.lifecycle import Lifecycle, State
from agora.protocol.services import Services
from agora.protocol.tools.table import BY_NAME, CORE, offered

anyio_test = pytest.mark.anyio


def states(log: HeardLog) -> list[str]:
    return [values["state"] for _, event, values in log.heard if event == "connection"]


def test_a_connection_of_the_handshake_era_goes_through_every_state() -> None:
    log = HeardLog()
    lifecycle = Lifecycle(log, "stdio")
    assert lifecycle.details() == {
        "state": "startup",
        "transport": "stdio",
        "protocol": None,
        "requests": 0,
        "running": 0,
    }
    lifecycle.move(State.LISTENING)
    lifecycle.begin("2025-06-18")
    lifecycle.end()
    lifecycle.move(State.INITIALIZE)
    lifecycle.move(State.READY)
    lifecycle.begin("2025-06-18")
    lifecycle.begin("2025-06-18")
    assert (lifecycle.details()["running"], lifecycle.state) == (2, State.PROCESSING)
    lifecycle.end()
    assert lifecycle.details()["state"] == "processing"
    lifecycle.end()
    lifecycle.move(State.SHUTDOWN)
    # What was read before the end is still answered.
    lifecycle.begin("2025-06-18")
    lifecycle.end()
    assert lifecycle.details()["state"] == "shutdown"
    assert states(log) == [
        *("listening", "processing", "ready", "initialize", "ready"),
        *("processing", "ready", "shutdown"),
    ]


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ((), State.READY),
        ((), State.INITIALIZE),
        ((State.LISTENING,), State.STARTUP),
        ((State.LISTENING, State.READY), State.LISTENING),
        ((State.SHUTDOWN,), State.READY),
        ((State.SHUTDOWN,), State.LISTENING),
    ],
)
def test_there_is_no_way_back_and_no_short_cut(before: tuple[State, ...], after: State) -> None:
    lifecycle = Lifecycle(HeardLog(), "http")
    for state in before:
        lifecycle.move(state)
    with pytest.raises(RuntimeError, match="cannot go"):
        lifecycle.move(after)


@anyio_test
async def test_the_status_shows_the_state_of_the_connection_that_asks(bench: Bench, mode: str) -> None:
    lifecycle = Lifecycle(bench.log, "stdio")
    lifecycle.move(State.LISTENING)
    connection = bench.connection(lifecycle=lifecycle)
    async with bench.client(mode=mode, connection=connection) as client:
        if mode == "legacy":
            assert "initialize" in states(bench.log)
        shown = (await bench.ok(client, "agora_status"))["connection"]
        assert (shown["state"], shown["transport"], shown["running"]) == ("processing", "stdio", 1)
        assert shown["protocol"] == ("2026-07-28" if mode == "auto" else "2025-11-25")
    assert lifecycle.state is State.READY


@anyio_test
async def test_a_client_hears_of_its_own_calls_at_the_level_that_it_asked_for(bench: Bench) -> None:
    heard: list[tuple[str, Any]] = []

    async def take(message: Any) -> None:
        if isinstance(message, LoggingMessageNotification):
            heard.append((message.params.level, message.params.data))

    async with bench.client(mode="legacy", message_handler=take) as client:
        await bench.refused(client, "agora_query", query="")
        assert heard == []
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", MCPDeprecationWarning)
            await client.set_logging_level("warning")
        await bench.refused(client, "agora_query", query="")
        await bench.ok(client, "agora_save", content="the secret of the log")
        await anyio.sleep(0.05)
        ((level, data),) = heard
        assert (level, data["event"], data["request"]) == ("warning", "call refused", "agora_query")
        assert data["code"] == "invalid_input"
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", MCPDeprecationWarning)
            await client.set_logging_level("debug")
        await bench.ok(client, "agora_save", content="another secret of the log")
        await anyio.sleep(0.05)
        assert heard[-1][1]["event"] == "call answered"
        assert "secret" not in str(heard)


@anyio_test
async def test_progress_rises_while_a_long_call_runs_and_says_what_it_is_at(bench: Bench, mode: str) -> None:
    told: list[tuple[float, float | None, str | None]] = []

    async def on_progress(progress: float, total: float | None = None, message: str | None = None) -> None:
        told.append((progress, total, message))
        if len(told) == 2:
            bench.encoder.release.set()
            bench.encoder.mood = "well"

    async with bench.client(mode=mode) as client:
        bench.encoder.mood = "slow"
        text = "several passages of a long text " * 100
        with anyio.fail_after(10):
            result = await client.call_tool("agora_save", {"content": text}, progress_callback=on_progress)
        assert not result.is_error, result.structured_content
        # A call that nobody waits for with a token tells nothing.
        await bench.ok(client, "agora_query", query="text")
    assert len(told) == 2
    assert told[0][0] < told[1][0]
    assert {total for _, total, _ in told} == {10.0}
    assert told[0][2] is not None
    assert told[0][2].startswith("encoding")


@anyio_test
async def test_roots_that_change_are_followed_at_the_next_call(bench: Bench, tmp_path: Path) -> None:
    folders = [tmp_path / "one", tmp_path / "two"]
    for folder in folders:
        folder.mkdir()
    asked = 0

    async def roots(_: ClientRequestContext) -> ListRootsResult:
        nonlocal asked
        asked += 1
        return ListRootsResult(roots=[Root(uri=FileUrl(folders[min(asked, 2) - 1].as_uri()))])

    connection = bench.connection(None)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", MCPDeprecationWarning)
        async with bench.client(mode="legacy", connection=connection, list_roots_callback=roots) as client:
            first = await bench.ok(client, "agora_query", query="x")
            again = await bench.ok(client, "agora_query", query="x")
            await client.send_roots_list_changed()
            await anyio.sleep(0.05)
            second = await bench.ok(client, "agora_query", query="x")
    assert first["namespace"] == again["namespace"] == project_namespace(folders[0])[0]
    assert second["namespace"] == project_namespace(folders[1])[0]
    assert asked == 2


@anyio_test
async def test_a_profile_offers_its_tools_and_no_other(bench: Bench, mode: str) -> None:
    async with bench.client(mode=mode, tools=Services(bench.tools, offered(["core"]))) as client:
        assert [tool.name for tool in (await client.list_tools()).tools] == [name for name in BY_NAME if name in CORE]
        await bench.ok(client, "agora_save", content="text")
        with pytest.raises(Exception, match="Unknown tool: agora_restore"):
            await client.call_tool("agora_restore", {"ids": []})


def test_profiles_are_names_or_lists_of_tools() -> None:
    assert [tool.name for tool in offered(["all"])] == list(BY_NAME)
    assert [tool.name for tool in offered(["agora_query", "agora_save"])] == ["agora_save", "agora_query"]
    assert {tool.name for tool in offered(["core", "agora_crossref"])} == {*CORE, "agora_crossref"}
    with pytest.raises(ConfigError, match="no tool 'agora_quary'") as caught:
        offered(["agora_quary"])
    assert "agora_query" in caught.value.hint
    with pytest.raises(ConfigError) as caught:
        offered(["zzz"])
    assert "core" in caught.value.hint
