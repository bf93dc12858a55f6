"""Tools of other servers as tools of this one: their rows in the list, and their results."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

import mcp_types as types
from pydantic import TypeAdapter, ValidationError

from agora.model.route import Called
from agora.protocol.fence import closing_line, mark_beside, opening_line
from agora.protocol.tools.gateway import MEDIA
from agora.protocol.tools.gateway import called as facts_of
from agora.router.exposing import Shown
from agora.unseen import in_json, shown

META = "agora/call"
"""Member of a result's `_meta` with what Agora knows of the call."""

DESCRIPTION = 1_000
TITLE = 200
"""Characters of what a stranger says of its tool that go into a client's prompt."""

_SAYING = ("description", "title", "$comment")
_BLOCK: TypeAdapter[types.ContentBlock] = TypeAdapter(types.ContentBlock)


def row(found: Shown) -> types.Tool:
    """One tool in `tools/list`.

    Its result has no schema here: what is too long is cut, and would not meet it.
    """
    tool = found.tool
    return types.Tool(
        name=found.name,
        title=None if tool.title is None else shown(tool.title)[:TITLE],
        description=f"[{tool.backend}] {shown(tool.description)[:DESCRIPTION]}".rstrip(),
        input_schema={**_readable(tool.input), "type": "object"},
        annotations=_hints(found),
    )


def result(called: Called) -> types.CallToolResult:
    """What the tool answered, its blocks as they are between two of Agora's own, which say that it is data.

    The last one says too where the rest of a long result is.
    """
    answer = called.result
    blocks = [_block(each) for each in (*answer.content, *answer.media)]
    if answer.structured is not None and not any(isinstance(each, types.TextContent) for each in blocks):
        # Many clients show text alone; what says the same as the structured content was left out before.
        words = json.dumps(answer.structured, ensure_ascii=False, separators=(",", ":"))
        blocks.insert(0, types.TextContent(type="text", text=in_json(words)))
    notes = [*called.warnings, *_rest(answer.cut)]
    if blocks:
        mark = mark_beside(*(each.model_dump_json() for each in blocks))
        blocks = [_text(opening_line(mark)), *blocks, _text("\n".join([closing_line(mark), *notes]))]
    facts = facts_of(called)
    return types.CallToolResult(
        content=blocks,
        structured_content=None if answer.structured is None else dict(answer.structured),
        is_error=answer.is_error,
        _meta={META: {name: value for name, value in facts.items() if name not in _IN_RESULT}},
    )


_IN_RESULT = {MEDIA, "content", "structured", "is_error"}


def _hints(found: Shown) -> types.ToolAnnotations:
    """What the policy says of it; of what it says of itself, only what a trusted server says, or what warns."""
    said = found.tool.annotations if found.trusted else {}
    if found.verdict.access == "read":
        return types.ToolAnnotations(read_only_hint=True, open_world_hint=True)
    return types.ToolAnnotations(
        read_only_hint=False,
        destructive_hint=said.get("destructiveHint") is not False,
        idempotent_hint=True if said.get("idempotentHint") is True else None,
        open_world_hint=True,
    )


def _readable(schema: Mapping[str, Any]) -> dict[str, Any]:
    """A schema whose texts for readers hide nothing; names and values are what calls are checked by, and stay."""
    return {name: _part(name, value) for name, value in schema.items()}


def _part(name: str, value: Any) -> Any:  # noqa: ANN401 - JSON
    if isinstance(value, str):
        return shown(value) if name in _SAYING else value
    if isinstance(value, Mapping):
        return _readable(value)
    return [_part("", each) for each in value] if isinstance(value, list) else value


def _block(given: Mapping[str, Any]) -> types.ContentBlock:
    try:
        block = _BLOCK.validate_python(dict(given))
    except ValidationError:
        return _text(in_json(json.dumps(given, ensure_ascii=False)))
    if isinstance(block, types.TextContent):
        # Line ends stay as they are: an agent may write back what it has read.
        block.text = "\r\n".join(map(shown, block.text.split("\r\n")))
    return block


def _rest(cut: Mapping[str, Any] | None) -> Sequence[str]:
    if cut is None:
        return ()
    size, there = cut.get("bytes"), cut.get("next") or cut.get("id")
    if there is None:
        return (f"Cut: the first {cut['shown_bytes']} of {size} bytes. The rest is not kept.",)
    until = cut.get("expires_at")
    return (
        f"Cut: the first {cut['shown_bytes']} of {size} bytes. agora_get with the id {there} reads on until {until}.",
    )


def _text(words: str) -> types.TextContent:
    return types.TextContent(type="text", text=words)
