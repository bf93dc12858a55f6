"""Transcripts of Claude Code: one JSON object a line, or `loglines` in one object as its web sessions have them.

    {"type": "user", "sessionId": ..., "timestamp": ..., "uuid": ..., "cwd": ..., "gitBranch": ...,
     "message": {"role": "user", "content": "text" or [{"type": "text", "text": ...}, ...]}}

Each turn's text becomes a note of kind `message`, each summary one of kind `summary`. Left out and counted: tool calls
and their results, thinking, images, slash commands and their output, what the program itself put in, and lines that
only keep its books.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from pathlib import PurePosixPath
from typing import Any

from agora.exchange.events import Broken, Event, LeftOut, Text
from agora.exchange.foreign.reading import filled, objects, text_or_none
from agora.exchange.json_elements import BadDocument, elements
from agora.exchange.sources import Source

_TURNS = frozenset({"user", "assistant"})
_TOOLS = frozenset({"tool_use", "tool_result", "server_tool_use", "web_search_tool_result", "mcp_tool_use"})
_THINKING = frozenset({"thinking", "redacted_thinking"})
_ATTACHED = frozenset({"image", "document", "file"})

_REMINDER = re.compile(r"<system-reminder>.*?</system-reminder>\s*", re.DOTALL)
_COMMAND = re.compile(
    r"\s*(?:<(?:command-\w+|local-command-\w+|bash-(?:input|stdout|stderr)|user-memory-input)>"
    r"|Caveat: The messages below were generated|\[Request interrupted by user)"
)


def recognises(head: bytes) -> bool:
    """Whether a file that begins so is a transcript."""
    if re.match(rb'\s*\{\s*"loglines"\s*:', head):
        return True
    for raw in head.split(b"\n")[:50]:
        try:
            record = json.loads(raw)
        except ValueError:
            continue
        if isinstance(record, dict) and isinstance(record.get("type"), str):
            turn = record["type"] in _TURNS and isinstance(record.get("message"), dict)
            if turn or (record["type"] == "summary" and "leafUuid" in record):
                return True
    return False


def read(source: Source) -> Iterator[Event]:
    """The turns and summaries of a transcript."""
    session = PurePosixPath(source.name).stem
    if not re.match(rb'\s*\{\s*"loglines"\s*:', source.head):
        for place, record in objects(source):
            yield from [record] if isinstance(record, Broken) else _line(place, record, session)
        return
    number = 0
    try:
        for _, record in elements(source, {"loglines"}):
            number += 1
            place = f"logline {number}"
            if isinstance(record, dict):
                yield from _line(place, record, session)
            else:
                yield Broken(place, "is no JSON object")
    except BadDocument as error:
        yield Broken(f"after logline {number}", str(error))


def _line(place: str, record: Mapping[str, Any], session: str) -> Iterator[Event]:
    type_ = record.get("type")
    if type_ == "summary" and text_or_none(record.get("summary")):
        about = filled(leaf=record.get("leafUuid"))
        yield Text(place, record["summary"], kind="summary", metadata=about, agent="claude-code", session=session)
    elif type_ in _TURNS:
        yield from _turn(place, record, session)
    elif not isinstance(type_, str):
        yield Broken(place, "has no type")
    else:
        yield LeftOut("system texts" if type_ == "system" else "bookkeeping")


def _turn(place: str, record: Mapping[str, Any], session: str) -> Iterator[Event]:
    message = record.get("message")
    content = message.get("content") if isinstance(message, dict) else None
    if not isinstance(message, dict) or not isinstance(content, str | list):
        yield Broken(place, "has no message with content")
        return
    if record.get("isMeta") or record.get("isApiErrorMessage") or message.get("model") == "<synthetic>":
        yield LeftOut("system texts")
        return
    texts: list[str] = []
    for block in content if isinstance(content, list) else [content]:
        if isinstance(block, str):
            texts.append(block)
        elif not isinstance(block, dict):
            yield Broken(place, "has a block that is neither a text nor an object")
        elif block.get("type") == "text" and isinstance(block.get("text"), str):
            texts.append(block["text"])
        else:
            yield LeftOut(_what(block.get("type")))
    if not texts:
        return
    text, reminders = _REMINDER.subn("", "\n\n".join(texts))
    if reminders:
        yield LeftOut("system texts", reminders)
    if _COMMAND.match(text):
        yield LeftOut("commands and their output")
        return
    summary = bool(record.get("isCompactSummary"))
    speaker = "assistant" if summary else str(record["type"])
    yield Text(
        place,
        text,
        kind="summary" if summary else "message",
        metadata={"speaker": speaker}
        | filled(
            message=record.get("uuid"),
            cwd=record.get("cwd"),
            branch=record.get("gitBranch"),
            model=message.get("model"),
            sidechain=record.get("isSidechain") or None,
        ),
        agent="claude-code" if speaker == "assistant" else "user",
        session=text_or_none(record.get("sessionId")) or session,
        occurred_at=text_or_none(record.get("timestamp")),
    )


def _what(type_: object) -> str:
    if type_ in _TOOLS:
        return "tool calls and results"
    if type_ in _THINKING:
        return "thinking"
    return "attachments" if type_ in _ATTACHED else "other blocks"
