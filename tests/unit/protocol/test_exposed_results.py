"""What clients see of a result of a tool that is shown as Agora's own."""

from __future__ import annotations

import base64
from typing import Any

import pytest
from mcp_types import ImageContent, TextContent

from agora.model.route import Called, ToolResult
from agora.protocol.tools.exposed import result

PICTURE = base64.b64encode(b"\x89PNG picture").decode()


def shown(block: dict[str, Any]) -> Any:
    """What stands between Agora's two blocks."""
    answer = result(Called("shop", "draw", "read", "name", ToolResult((), None, is_error=False, media=(block,)), 0.1))
    assert len(answer.content) == 3
    return answer.content[1]


def test_a_picture_is_passed_on_as_it_is() -> None:
    found = shown({"type": "image", "data": PICTURE, "mimeType": "image/png"})
    assert isinstance(found, ImageContent)
    assert (found.data, found.mime_type) == (PICTURE, "image/png")


@pytest.mark.parametrize(
    "broken",
    [
        {"type": "image", "data": "no base64!", "mimeType": "image/png"},
        {"type": "image", "data": PICTURE, "mimeType": "text/html"},
        {"type": "audio", "data": PICTURE, "mimeType": "image/png"},
        {"type": "image", "data": "", "mimeType": "image/png"},
        {"type": "image", "data": 7, "mimeType": "image/png"},
    ],
)
def test_what_is_no_picture_is_told_in_words_and_not_passed_on_as_one(broken: dict[str, Any]) -> None:
    found = shown(broken)
    assert isinstance(found, TextContent)
    assert '"bytes": ' in found.text
