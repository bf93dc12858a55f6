"""What a tool answered, in the shape and the size in which an agent gets it."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from agora.model.route import Block, ToolResult

MEDIA_BYTES = 4_000_000
"""Pictures and sounds that go through whole, in bytes of their base64; a screenshot has some hundred thousand."""

MEDIA_BLOCKS = 50
"""Of them, as many as go through at once."""

_MEDIA = ("image", "audio")
_BINARY = ("data", "blob")
_AROUND = 27
"""Bytes of JSON around the text of a block."""


def read(result: Mapping[str, Any]) -> ToolResult:
    """The answer to `tools/call`, whatever shape it has.

    Text that says the same as the structured content is left out: every agent would pay for it twice.
    """
    listed = result.get("content")
    blocks = [block for block in listed if isinstance(block, dict)] if isinstance(listed, list) else []
    structured = result.get("structuredContent")
    if not isinstance(structured, dict):
        structured = None
    else:
        blocks = [block for block in blocks if not _says(block, structured)]
    plain = tuple(block for block in blocks if block.get("type") not in _MEDIA)
    if structured is not None and _is_said(structured, plain):
        structured = None
    media = tuple(block for block in blocks if block.get("type") in _MEDIA)
    return ToolResult(plain, structured, result.get("isError") is True, media)


def whole(result: ToolResult) -> bytes:
    """All of a result as one text, which is what is kept of a long one: texts as they are, anything else as JSON."""
    texts = [_text(block) for block in (*result.content, *result.media)]
    if result.structured is not None:
        texts.append(_json(result.structured))
    return "\n\n".join(texts).encode("utf-8", "backslashreplace")


def weighed(answer: Mapping[str, Any]) -> tuple[list[str], int, int]:
    """The texts in an answer of whatever shape, and the bytes of all words in it and of the files in it."""
    texts: list[str] = []
    words = files = 0
    stack: list[object] = [answer]
    while stack:
        each = stack.pop()
        if isinstance(each, Mapping):
            for name, value in each.items():
                if name in _BINARY and isinstance(value, str):
                    files += len(value)
                    continue
                if name == "text" and isinstance(value, str):
                    texts.append(value)
                stack.append(value)
        elif isinstance(each, list):
            stack.extend(reversed(each))
        elif isinstance(each, str):
            words += len(each.encode("utf-8", "surrogatepass"))
    return texts, words, files


def size(result: ToolResult) -> int:
    """Bytes of everything in a result but its pictures and sounds."""
    structured = 0 if result.structured is None else len(_json(result.structured).encode("utf-8", "backslashreplace"))
    # A text alone counts as itself; of many short ones, most is what stands around them.
    around = _AROUND * max(0, len(result.content) - 1)
    return structured + around + sum(map(_size, result.content))


def is_too_much(result: ToolResult) -> bool:
    """Whether there are more pictures and sounds than go through."""
    return len(result.media) > MEDIA_BLOCKS or sum(map(_media_size, result.media)) > MEDIA_BYTES


def shortened(result: ToolResult, content: bytes, limit: int, kept: Mapping[str, Any]) -> ToolResult:
    """The beginning of a long result, of which `content` is the whole, as one text of at most `limit` bytes.

    `kept` says where all of it is; what is added to it is from where on the rest can be read.
    """
    shown = beginning(content, limit)
    media = () if is_too_much(result) else result.media
    end = len(shown.encode("utf-8"))
    cut = {**kept, "shown_bytes": end}
    if "id" in kept and end < len(content):
        cut["next"] = f"{kept['id']}#{end}"
    return ToolResult(({"type": "text", "text": shown},), None, result.is_error, media, cut)


def beginning(data: bytes, limit: int, start: int = 0) -> str:
    """At most `limit` bytes of UTF-8 from `start`, ending with a whole character, at a line end if one is near."""
    end = min(len(data), start + limit)
    while start < end < len(data) and data[end] & 0xC0 == 0x80:
        end -= 1
    if end < len(data) and (line := data.rfind(b"\n", start, end)) > start + (end - start) * 3 // 4:
        end = line + 1
    return data[start:end].decode("utf-8", "replace")


def _says(block: Block, structured: Mapping[str, Any]) -> bool:
    text = block.get("text")
    if block.get("type") != "text" or not isinstance(text, str) or not text.lstrip().startswith("{"):
        return False
    try:
        return bool(json.loads(text) == structured)
    except (ValueError, RecursionError):
        return False


def _is_said(structured: Mapping[str, Any], blocks: Sequence[Block]) -> bool:
    """Whether the structured content is nothing but the one text under a name, as some libraries make it."""
    return len(structured) == 1 and len(blocks) == 1 and _text(blocks[0]) == next(iter(structured.values()))


def _text(block: Block) -> str:
    text = block.get("text")
    return text if block.get("type") == "text" and isinstance(text, str) else _json(block)


def _size(block: Block) -> int:
    beside = {name: value for name, value in block.items() if name not in {"type", "text"}}
    text = _text(block) if not beside or block.get("type") != "text" else _json(block)
    return len(text.encode("utf-8", "backslashreplace"))


def _media_size(block: Block) -> int:
    data = block.get("data")
    return len(data) if isinstance(data, str) else 0


def _json(value: Mapping[str, Any]) -> str:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))
