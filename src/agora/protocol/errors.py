"""The one place where Agora's errors meet the wire."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

import mcp_types as types
from mcp.shared.exceptions import MCPError
from mcp_types.version import MODERN_PROTOCOL_VERSIONS

from agora.errors import AccessDenied, AgoraError, InvalidInput, NotFound
from agora.protocol.fence import fenced, recalls
from agora.protocol.media import media
from agora.protocol.tools.gateway import MEDIA
from agora.unseen import in_json, shown


def failed(error: AgoraError) -> types.CallToolResult:
    """The result of a call that did not do its work: structured, and the same in words."""
    details = error.details()
    words = error.message if isinstance(error, InvalidInput) else f"{error.code}: {error.message}"
    if error.hint:
        words += f"\n{error.hint}"
    return types.CallToolResult(
        content=[types.TextContent(type="text", text=shown(words))],
        structured_content={"error": details},
        is_error=True,
    )


def succeeded(result: dict[str, Any], recalled: Sequence[str]) -> types.CallToolResult:
    """A result as structured content, and as the same JSON in text for clients that read text alone.

    `recalled` names the members that hold text that was saved: a result with any stands between the marks of a fence.
    In the text, characters that drive a terminal or are not seen are JSON escapes; it reads as the same result.
    """
    beside = [block for each in result.pop(MEDIA, ()) if (block := media(each)) is not None]
    words = json.dumps(result, ensure_ascii=False, separators=(",", ":"))
    if recalls(result, recalled):
        result, words = fenced(result, words)
    return types.CallToolResult(
        content=[types.TextContent(type="text", text=in_json(words)), *beside], structured_content=result
    )


RESOURCE_NOT_FOUND = -32002
"""What revisions before 2026-07-28 answer for a resource that is not there."""


def protocol_error(error: AgoraError, protocol_version: str) -> MCPError:
    """The error of a request that has no result to put it into: its details as `data`."""
    details, message = error.details(), shown(error.message)
    if error.code == "resource_not_found":
        modern = protocol_version in MODERN_PROTOCOL_VERSIONS
        data = {"uri": getattr(error, "uri", ""), **details}
        return MCPError(code=types.INVALID_PARAMS if modern else RESOURCE_NOT_FOUND, message=message, data=data)
    caller = isinstance(error, InvalidInput | NotFound | AccessDenied)
    return MCPError(code=types.INVALID_PARAMS if caller else types.INTERNAL_ERROR, message=message, data=details)
