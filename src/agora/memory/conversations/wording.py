"""How messages are written where they are quoted: one line each, by number, day and speaker."""

from __future__ import annotations

import json
from collections.abc import Sequence

from agora.model.message import Message

_BYTES = 4
"""Of a token: as in `agora.text.tokens.cost`."""


def label(message: Message) -> str:
    """What stands before a quoted message: `#12 2026-01-15 Ann:`.

    What a tool or a page said in the name of somebody is marked as such.
    """
    said = who(message)
    if message.origin not in {"user", "agent"}:
        said += f" ({message.origin})"
    elif message.speaker and message.role == "tool":
        said += " (tool)"
    return f"#{message.seq} {message.at.date().isoformat()} {said}:"


def who(message: Message) -> str:
    """Who said it: the speaker's name, else the role."""
    return " ".join(message.speaker.split()) if message.speaker else message.role


def line(message: Message, content: str | None = None) -> str:
    """A message, or a part of it, on a line of its own, or on several if its text has several."""
    return f"{label(message)} {indented(message.content if content is None else content)}"


def indented(text: str) -> str:
    """A text whose further lines are indented: none of them can be taken for another message."""
    return "\n  ".join(text.splitlines())


def newest(messages: Sequence[Message], max_tokens: int) -> str:
    """As many of the newest messages as cost no more, one after the other."""
    kept: list[str] = []
    room = max_tokens * _BYTES
    for message in reversed(messages):
        text = line(message)
        room -= len(text.encode()) + 1
        if room < 0:
            break
        kept.append(text)
    return "\n".join(reversed(kept))


def escaped(text: str) -> int:
    """Bytes of a text within JSON, without its quotes."""
    return len(json.dumps(text, ensure_ascii=False).encode()) - 2
