"""The export of Claude.ai: `conversations.json`, an array of conversations with their messages in order.

    {"uuid": ..., "name": ..., "chat_messages": [{"uuid": ..., "sender": "human" or "assistant", "created_at": ...,
     "text": "...", "content": [{"type": "text", "text": ...}, ...], "attachments": [...], "files": [...]}]}

Each message becomes a note of kind `message`. Left out and counted: tool calls and results, thinking, attachments.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

from agora.exchange.events import Broken, Event, LeftOut, Text
from agora.exchange.foreign.reading import filled, text_or_none
from agora.exchange.json_elements import BadDocument, elements
from agora.exchange.sources import Source

_SPEAKERS = {"human": "user", "assistant": "assistant"}


def recognises(head: bytes) -> bool:
    """Whether a file that begins so is such an export; inside of a text the quotes would be escaped."""
    return re.match(rb'\s*(?:\[|\{\s*"conversations")', head) is not None and b'"chat_messages"' in head


def read(source: Source) -> Iterator[Event]:
    """The messages of every conversation, in their order."""
    number = 0
    try:
        for _, conversation in elements(source, {"conversations"}):
            number += 1
            place = f"conversation {number}"
            if not isinstance(conversation, dict) or not isinstance(conversation.get("chat_messages"), list):
                yield Broken(place, "has no messages (`chat_messages`)")
                continue
            for n, message in enumerate(conversation["chat_messages"], start=1):
                yield from _message(f"{place}, message {n}", message, conversation)
    except BadDocument as error:
        yield Broken(f"after conversation {number}", str(error))


def _message(place: str, message: object, conversation: Mapping[str, Any]) -> Iterator[Event]:
    speaker = _SPEAKERS.get(str(message.get("sender"))) if isinstance(message, dict) else None
    if not isinstance(message, dict) or speaker is None:
        yield Broken(place, "is no message of a human or of the assistant")
        return
    texts: list[str] = []
    blocks = message.get("content")
    for block in blocks if isinstance(blocks, list) else ():
        type_ = block.get("type") if isinstance(block, dict) else None
        if type_ == "text" and isinstance(block.get("text"), str):
            texts.append(block["text"])
        elif type_ == "thinking":
            yield LeftOut("thinking")
        else:
            yield LeftOut("tool calls and results")
    attached = sum(len(found) for name in ("attachments", "files") if isinstance(found := message.get(name), list))
    if attached:
        yield LeftOut("attachments", attached)
    if not any(text.strip() for text in texts) and isinstance(message.get("text"), str):
        # Older exports have the text here alone; newer ones have the blocks rendered into it.
        texts = [message["text"]]
    yield Text(
        place,
        "\n\n".join(texts),
        title=text_or_none(conversation.get("name")),
        kind="message",
        metadata={"speaker": speaker} | filled(message=message.get("uuid")),
        agent="claude-ai" if speaker == "assistant" else "user",
        session=text_or_none(conversation.get("uuid")),
        occurred_at=text_or_none(message.get("created_at")) or text_or_none(conversation.get("created_at")),
    )
