"""The export of ChatGPT: `conversations.json`, an array of conversations, each a tree of messages.

    {"conversation_id": ..., "title": ..., "current_node": "id", "mapping": {"id": {"parent": ..., "children": [...],
     "message": {"author": {"role": ...}, "create_time": seconds, "recipient": "all", "metadata": {...},
                 "content": {"content_type": "text", "parts": ["text", ...]}}}}}

The way from `current_node` to the root is the conversation as it is shown; each turn of it becomes a note of kind
`message`. Left out and counted: other branches (edited and repeated turns), system texts, tool calls and results,
thinking, images and files.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from agora.exchange.events import Broken, Event, LeftOut, Text
from agora.exchange.foreign.reading import filled, from_seconds, text_or_none
from agora.exchange.json_elements import BadDocument, elements
from agora.exchange.sources import Source

_SYSTEM = frozenset({"user_editable_context", "model_editable_context"})
_THINKING = frozenset({"thoughts", "reasoning_recap"})


def recognises(head: bytes) -> bool:
    """Whether a file that begins so is such an export; inside of a text the quotes would be escaped."""
    return re.match(rb'\s*(?:\[|\{\s*"conversations")', head) is not None and b'"mapping"' in head


def read(source: Source) -> Iterator[Event]:
    """The turns of every conversation, in the order in which they were said."""
    number = 0
    try:
        for _, conversation in elements(source, {"conversations"}):
            number += 1
            place = f"conversation {number}"
            if isinstance(conversation, dict) and isinstance(conversation.get("mapping"), dict):
                yield from _conversation(place, conversation)
            else:
                yield Broken(place, "has no messages (`mapping`)")
    except BadDocument as error:
        yield Broken(f"after conversation {number}", str(error))


def _conversation(place: str, conversation: Mapping[str, Any]) -> Iterator[Event]:
    mapping: Mapping[str, Any] = conversation["mapping"]
    shown = _shown(mapping, conversation.get("current_node"))
    others = sum(1 for name, node in mapping.items() if name not in set(shown) and _message(node))
    if others:
        yield LeftOut("other branches", others)
    session = text_or_none(conversation.get("conversation_id")) or text_or_none(conversation.get("id"))
    for name in shown:
        message = _message(mapping[name])
        if message:
            where = f"{place}, message {name}"
            yield from _turn(where, message, conversation, session)


def _shown(mapping: Mapping[str, Any], current: object) -> Sequence[str]:
    """Names of the nodes from the root to the current one; without a current one, to the newest."""
    name = current if isinstance(current, str) and current in mapping else _newest(mapping)
    way: list[str] = []
    seen: set[str] = set()
    while isinstance(name, str) and name in mapping and name not in seen:
        seen.add(name)
        way.append(name)
        node = mapping[name]
        name = node.get("parent") if isinstance(node, dict) else None
    return way[::-1]


def _newest(mapping: Mapping[str, Any]) -> str | None:
    def when(name: str) -> float:
        at = _message(mapping[name]).get("create_time")
        return float(at) if isinstance(at, int | float) else 0.0

    return max(mapping, key=when, default=None)


def _message(node: object) -> Mapping[str, Any]:
    message = node.get("message") if isinstance(node, dict) else None
    return message if isinstance(message, dict) else {}


def _turn(
    place: str, message: Mapping[str, Any], conversation: Mapping[str, Any], session: str | None
) -> Iterator[Event]:
    author, content = message.get("author"), message.get("content")
    metadata = message.get("metadata") if isinstance(message.get("metadata"), dict) else {}
    role = author.get("role") if isinstance(author, dict) else None
    if not isinstance(content, dict) or not isinstance(role, str):
        yield Broken(place, "has no author or no content")
        return
    left_out = _left_out(role, content.get("content_type"), message.get("recipient"), metadata or {})
    if left_out is not None:
        yield LeftOut(left_out)
        return
    texts: list[str] = []
    parts = content.get("parts")
    for part in parts if isinstance(parts, list) else [content.get("text")]:
        spoken = part.get("text") if isinstance(part, dict) else part
        if isinstance(spoken, str):
            texts.append(spoken)
        elif isinstance(part, dict):
            yield LeftOut("attachments")
    yield Text(
        place,
        "\n".join(texts),
        title=text_or_none(conversation.get("title")),
        kind="message",
        metadata={"speaker": role}
        | filled(message=message.get("id"), model=metadata.get("model_slug") if metadata else None),
        agent="chatgpt" if role == "assistant" else "user",
        session=session,
        occurred_at=from_seconds(message.get("create_time")) or from_seconds(conversation.get("create_time")),
    )


def _left_out(role: str, content_type: object, recipient: object, metadata: Mapping[str, Any]) -> str | None:
    """What a message is counted as if it is no turn of the conversation."""
    if role == "system" or content_type in _SYSTEM or metadata.get("is_visually_hidden_from_conversation"):
        return "system texts"
    if content_type in _THINKING:
        return "thinking"
    if role not in {"user", "assistant"} or recipient not in {None, "all"}:
        return "tool calls and results"
    return None if content_type in {"text", "multimodal_text"} else "tool calls and results"
