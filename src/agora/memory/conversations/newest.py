"""The newest messages of a conversation, as many as a budget can take."""

from __future__ import annotations

from typing import TYPE_CHECKING

from agora.model.deadline import Deadline
from agora.model.message import Message

if TYPE_CHECKING:
    from agora.ports.conversations import ConversationReading

_AT_ONCE = 500
"""Messages that are read at a time."""

_BYTES = 4
"""Of a token: as in `agora.text.tokens.cost`."""

_SMALLEST = 30
"""Bytes that a message takes within the array at the least."""


def fitting(
    reading: ConversationReading, namespace: str, session: str, max_tokens: int, deadline: Deadline
) -> tuple[Message, ...]:
    """The newest messages, in order: at least as many as can be given within `max_tokens`.

    Raises: DeadlineExceeded, Cancelled.
    """
    room = _BYTES * max_tokens
    most = max(1, min(_AT_ONCE, room // _SMALLEST))
    last = reading.count(namespace, session)
    found: tuple[Message, ...] = ()
    while room > 0 and (block := reading.messages(namespace, session, 1, last, newest=most)):
        deadline.check()
        found = block + found
        room -= sum(_SMALLEST + len(each.content.encode()) for each in block)
        last = block[0].seq - 1
    return found
