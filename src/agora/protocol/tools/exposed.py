"""Tools of other servers as tools of this one: their rows in the list, and their results."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import mcp_types as types
from mcp.shared.inbound import X_MCP_HEADER_KEY
from pydantic import TypeAdapter, ValidationError

from agora.model.route import Called
from agora.protocol.fence import closing_line, mark_beside, opening_line
from agora.protocol.media import KINDS, media
from agora.protocol.tools.gateway import MEDIA, outline
from agora.protocol.tools.gateway import called as facts_of
from agora.unseen import in_json, shown

if TYPE_CHECKING:
    from agora.router.exposing import Shown

META = "agora/call"
"""Member of a result's `_meta` with what Agora knows of the call."""

DESCRIPTION = 1_000
TITLE = 200
"""Characters of what a stranger says of its tool that go into a client's prompt."""

_DEEPEST = 64
"""Levels of a schema that go to clients: not every reader of JSON takes a hundred."""

_SAYING = ("description", "title", "$comment")
_BLOCK: TypeAdapter[types.ContentBlock] = TypeAdapter(types.ContentBlock)


def row(found: Shown) -> types.Tool | None:
    """One tool in `tools/list`; None for one whose schema is too deep for clients, which agora_route calls.

    Its result has no schema here: what is too long is cut, and would not meet it.
    """
    tool = found.tool
    try:
        schema = _schema(tool.input, _DEEPEST)
    except _TooDeepError:
        return None
    return types.Tool(
        name=found.name,
        title=None if tool.title is None else shown(tool.title)[:TITLE],
        description=f"[{tool.backend}] {shown(tool.description)[:DESCRIPTION]}".rstrip(),
        input_schema={**schema, "type": "object"},
        annotations=_hints(found),
    )


def result(called: Called) -> types.CallToolResult:
    """What the tool answered, its blocks as they are between two of Agora's own, which say that it is data.

    The last one says too where the rest of a long result is.
    """
    answer = called.result
    blocks = [block(each) for each in (*answer.content, *answer.media)]
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


class _TooDeepError(Exception):
    """A schema has more levels than `_DEEPEST`."""


def _schema(schema: Mapping[str, Any], left: int) -> dict[str, Any]:
    """A schema whose texts for readers hide nothing; names and values are what calls are checked by, and stay."""
    if not left:
        raise _TooDeepError
    return {
        name: _part(name, value, left - 1)
        for name, value in schema.items()
        # A header that Agora has not asked for: it would go to Agora, and nobody would compare it.
        if name != X_MCP_HEADER_KEY or not isinstance(value, str)
    }


def _part(name: str, value: Any, left: int) -> Any:  # noqa: ANN401 - JSON
    if not left:
        raise _TooDeepError
    if isinstance(value, str):
        return shown(value) if name in _SAYING else value
    if isinstance(value, Mapping):
        return _schema(value, left)
    return [_part("", each, left - 1) for each in value] if isinstance(value, list) else value


def block(given: Mapping[str, Any]) -> types.ContentBlock:
    """A block of a stranger's answer; what is none is told as text."""
    if given.get("type") in KINDS:
        return media(given) or _text(json.dumps(outline(given), ensure_ascii=False))
    try:
        found = _BLOCK.validate_python(dict(given))
    except ValidationError:
        return _text(in_json(json.dumps(given, ensure_ascii=False)))
    if isinstance(found, types.TextContent):
        found.text = readable(found.text)
    return found


def readable(text: str) -> str:
    """A stranger's text in which nothing is hidden; line ends stay: an agent may write back what it has read."""
    return "\r\n".join(map(shown, text.split("\r\n")))


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
