"""A tiny low-level server on Agora's stdio transport: `python echo_server.py [option=value ...]`."""

from __future__ import annotations

import asyncio
import logging
import os
import subprocess
import sys
import threading
import warnings
from pathlib import Path
from typing import Any

import anyio
import anyio.to_thread
from mcp.server.context import ServerRequestContext
from mcp.server.lowlevel import Server
from mcp.server.subscriptions import InMemorySubscriptionBus, ListenHandler
from mcp_types import (
    CallToolRequestParams,
    CallToolResult,
    ListToolsResult,
    PaginatedRequestParams,
    TextContent,
    Tool,
)

from agora.transport.options import ConnectionOptions
from agora.transport.serve import run_stdio
from agora.transport.stdio import claim_stdio

TOOLS = ("echo", "slow", "noisy", "stuck", "complain", "broken", "not_json", "roots")


async def list_tools(_ctx: object, _params: PaginatedRequestParams | None) -> ListToolsResult:
    return ListToolsResult(tools=[Tool(name=name, input_schema={"type": "object"}) for name in TOOLS])


async def call_tool(ctx: ServerRequestContext[Any], params: CallToolRequestParams) -> CallToolResult:
    arguments = params.arguments or {}
    match params.name:
        case "slow":
            await anyio.sleep(float(arguments.get("seconds", 30)))
        case "noisy":
            make_noise()
        case "stuck":
            await anyio.to_thread.run_sync(threading.Event().wait, 60)
        case "complain":
            sys.stderr.write("x" * 1_000_000)
        case "broken":
            message = "secret words of an exception"
            raise RuntimeError(message)
        case "not_json":
            return CallToolResult(content=[], structured_content={"text": "\ud800"})
        case "roots":
            found = await ctx.session.list_roots()
            arguments = {"roots": [str(root.uri) for root in found.roots]}
    return CallToolResult(
        content=[TextContent(type="text", text=f"{params.name} done")], structured_content={"got": arguments}
    )


def make_noise() -> None:
    sys.stdout.write("from sys.stdout\n")
    sys.stdout.flush()
    sys.__stdout__.write("from sys.__stdout__\n")  # type: ignore[union-attr]
    sys.__stdout__.flush()  # type: ignore[union-attr]
    os.write(1, b"from fd 1\n")
    warnings.warn("from a warning", stacklevel=1)
    subprocess.run([sys.executable, "-c", "print('from a child')"], check=True)
    child = subprocess.run(
        [sys.executable, "-c", "import sys; print(len(sys.stdin.read()))"], check=True, capture_output=True
    )
    assert child.stdout.strip() == b"0", "a child must not read the protocol's input"


def make_server() -> Server[Any]:
    return Server(
        "echo",
        version="1.0",
        on_list_tools=list_tools,
        on_call_tool=call_tool,
        on_subscriptions_listen=ListenHandler(InMemorySubscriptionBus()),
    )


def say_ready() -> None:
    sys.stderr.write("ready\n")


def stop_as_told(given: dict[str, str]) -> None:
    if "stop_fails" in given:
        raise OSError(given["stop_fails"])
    if "stop_file" in given:
        Path(given["stop_file"]).write_text("stopped", encoding="utf-8")
    threading.Event().wait(float(given.get("stop_seconds", 0)))


async def make_as_told(given: dict[str, str]) -> Server[Any]:
    if "start_seconds" in given:
        sys.stderr.write("starting\n")
        await asyncio.sleep(float(given["start_seconds"]))
    if "fail" in given:
        raise ValueError(given["fail"])
    return make_server()


def main() -> int:
    given = dict(argument.split("=", 1) for argument in sys.argv[1:])
    if "log" in given:
        logging.basicConfig(level=given["log"], stream=sys.stderr)
    if sys.stdout is not None:
        sys.stdout.write("printed before the streams were claimed")
    if "non_blocking" in given:
        os.set_blocking(0, False)
        os.set_blocking(1, False)
    claim_stdio()
    if "thread" in given:
        threading.Thread(target=threading.Event().wait, args=[60]).start()
    return run_stdio(
        lambda: make_as_told(given),
        on_ready=say_ready,
        on_stop=lambda: stop_as_told(given),
        options=ConnectionOptions(
            drain_seconds=float(given.get("drain_seconds", 1.5)),
            max_in_flight=int(given.get("max_in_flight", 256)),
        ),
        max_line_bytes=int(given.get("max_line_bytes", 16 * 1024 * 1024)),
    )


if __name__ == "__main__":
    sys.exit(main())
