"""The one place where Agora's errors meet the wire."""

from __future__ import annotations

import json
from typing import Any

import mcp_types as types

from agora.errors import AgoraError, InvalidInput


def failed(error: AgoraError) -> types.CallToolResult:
    """The result of a call that did not do its work: structured, and the same in words."""
    details = error.details()
    words = error.message if isinstance(error, InvalidInput) else f"{error.code}: {error.message}"
    if error.hint:
        words += f"\n{error.hint}"
    return types.CallToolResult(
        content=[types.TextContent(type="text", text=words)],
        structured_content={"error": details},
        is_error=True,
    )


def succeeded(result: dict[str, Any]) -> types.CallToolResult:
    """A result as structured content, and as the same JSON in text for clients that read text alone."""
    words = json.dumps(result, ensure_ascii=False, separators=(",", ":"))
    return types.CallToolResult(content=[types.TextContent(type="text", text=words)], structured_content=result)
