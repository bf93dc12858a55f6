"""The official SDK's client against Agora's stdio transport."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Literal

import anyio
import pytest
from mcp import Client, StdioServerParameters

SERVER = Path(__file__).parents[1] / "integration" / "transport" / "echo_server.py"
PARAMETERS = StdioServerParameters(
    command=sys.executable,
    args=[str(SERVER)],
    env=os.environ | {"PYTHONPATH": str(Path(__file__).parents[2] / "src"), "PYTHONUNBUFFERED": ""},
)
TEXTS = ["perché", "数据库连接", "ошибка 😀", "e\u0301 is not \u00e9", 'quo"te\\ \u2028 \x00 \n']


@pytest.mark.parametrize(("mode", "version"), [("auto", "2026-07-28"), ("legacy", "2025-11-25")])
def test_the_sdk_client_connects_lists_and_calls(mode: Literal["auto", "legacy"], version: str) -> None:
    async def run() -> None:
        with anyio.fail_after(20):
            async with Client(PARAMETERS, mode=mode) as client:
                assert client.protocol_version == version
                assert "echo" in [tool.name for tool in (await client.list_tools()).tools]
                result = await client.call_tool("echo", {"texts": TEXTS})
                assert result.structured_content == {"got": {"texts": TEXTS}}

    anyio.run(run)


def test_a_call_that_the_client_gives_up_does_not_disturb_the_next() -> None:
    async def run() -> None:
        with anyio.fail_after(20):
            async with Client(PARAMETERS) as client:
                with anyio.move_on_after(0.2) as impatience:
                    await client.call_tool("slow", {"seconds": 30})
                assert impatience.cancelled_caught
                result = await client.call_tool("echo", {"n": 1})
                assert result.structured_content == {"got": {"n": 1}}

    anyio.run(run)
