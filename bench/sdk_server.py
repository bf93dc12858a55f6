"""The SDK's low-level server on the SDK's own transport, with one tool that does nothing."""

from __future__ import annotations

import anyio
from mcp.server.lowlevel import Server
from mcp.server.stdio import stdio_server
from mcp_types import CallToolResult, ListToolsResult, TextContent, Tool


async def list_tools(_ctx: object, _params: object) -> ListToolsResult:
    return ListToolsResult(tools=[Tool(name="agora_status", input_schema={"type": "object"})])


async def call_tool(_ctx: object, _params: object) -> CallToolResult:
    return CallToolResult(content=[TextContent(type="text", text="{}")], structured_content={})


async def main() -> None:
    server = Server("bare", version="1", on_list_tools=list_tools, on_call_tool=call_tool)
    async with stdio_server() as (read, write):
        await server.run(read, write, server.create_initialization_options())


anyio.run(main)
