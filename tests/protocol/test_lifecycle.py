"""States, log messages, progress and roots: https://modelcontextprotocol.io/specification/2025-11-25/basic/lifecycle"""

from __future__ import annotations

import pytest
from tests.protocol.bench import Bench, HeardLog

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
