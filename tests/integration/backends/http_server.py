"""The SDK's Streamable HTTP server with tools for tests: `http_server.py PORT [json] [stateless] [resumable]`.

Prints its port once it listens; 0 asks for a free one.
"""

from __future__ import annotations

import asyncio
import socket
import sys
from typing import Any

import uvicorn
from mcp.server.lowlevel import Server
from mcp.server.streamable_http import EventCallback, EventId, EventMessage, EventStore, StreamId
from mcp_types import CallToolResult, InputRequiredResult, JSONRPCMessage, ListToolsResult, TextContent, Tool

CALLS: list[str] = []


class Kept(EventStore):
    """All events, numbered; a stream goes on after the number that a client names."""

    def __init__(self) -> None:
        self.events: list[tuple[StreamId, JSONRPCMessage | None]] = []

    async def store_event(self, stream_id: StreamId, message: JSONRPCMessage | None) -> EventId:
        self.events.append((stream_id, message))
        return str(len(self.events))

    async def replay_events_after(self, last_event_id: EventId, send_callback: EventCallback) -> StreamId | None:
        stream = self.events[int(last_event_id) - 1][0]
        for number, (of, message) in enumerate(self.events[int(last_event_id) :], int(last_event_id) + 1):
            if of == stream and message is not None:
                await send_callback(EventMessage(message, str(number)))
        return stream


async def list_tools(_ctx: object, _params: object) -> ListToolsResult:
    names = ("echo", "large", "progress", "roots", "changed", "hang", "disconnect", "calls")
    schema = {"type": "object"}
    header = {"type": "object", "properties": {"region": {"type": "string", "x-mcp-header": "Region"}}}
    return ListToolsResult(
        tools=[Tool(name=name, input_schema=schema) for name in names] + [Tool(name="region", input_schema=header)]
    )


async def call_tool(ctx: Any, params: Any) -> CallToolResult | InputRequiredResult:
    given = params.arguments or {}
    CALLS.append(params.name)
    text = str(given.get("text", ""))
    match params.name:
        case "large":
            text = "é" * (int(given["bytes"]) // 2)
        case "progress":
            for step in range(3):
                await ctx.session.report_progress(step + 1, 3, f"step {step + 1}")
        case "roots":
            found = await ctx.session.list_roots()
            text = str(found.roots[0].uri)
        case "changed":
            await ctx.session.send_tool_list_changed()
        case "hang":
            await asyncio.Event().wait()
        case "disconnect":
            # The answer is left to the stream that the client opens next.
            await ctx.close_sse_stream()
        case "calls":
            text = ",".join(CALLS)
    return CallToolResult(content=[TextContent(type="text", text=text)])


def main() -> None:
    """Serve until killed."""
    server = Server("tried", version="1", on_list_tools=list_tools, on_call_tool=call_tool)
    app = server.streamable_http_app(
        json_response="json" in sys.argv,
        stateless_http="stateless" in sys.argv,
        event_store=Kept() if "resumable" in sys.argv else None,
        retry_interval=50,
    )
    listening = socket.socket()
    listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    listening.bind(("127.0.0.1", int(sys.argv[1])))
    listening.listen()
    sys.stdout.write(f"{listening.getsockname()[1]}\n")
    sys.stdout.flush()
    uvicorn.Server(uvicorn.Config(app, log_level="error", lifespan="on")).run([listening])


if __name__ == "__main__":
    main()
