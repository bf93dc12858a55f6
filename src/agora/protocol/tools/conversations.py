"""From a checked call of a tool of conversations to the memory and back to plain data."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from agora.model.caller import Caller
from agora.model.deadline import Deadline
from agora.model.message import MessageDraft
from agora.ports.clock import Clock
from agora.protocol import arguments
from agora.protocol.times import instant
from agora.protocol.tools import conversation_shapes
from agora.protocol.tools.conversations_table import BUDGET

if TYPE_CHECKING:
    from datetime import datetime

    from agora.memory.conversations.service import ConversationMemory


class ConversationTools:
    """Answers the tools of conversations. Blocking: run it in a worker thread."""

    def __init__(self, conversations: ConversationMemory, clock: Clock) -> None:
        self._memory = conversations
        self._clock = clock

    def append(self, given: Mapping[str, Any], caller: Caller, deadline: Deadline) -> dict[str, Any]:
        """The result of `session_append`."""
        draft = message_draft(given, caller.scope.own, self._clock.now())
        return conversation_shapes.kept(self._memory.append(draft, caller, deadline, strategy=given.get("strategy")))

    def context(self, given: Mapping[str, Any], caller: Caller, deadline: Deadline) -> dict[str, Any]:
        """The result of `session_context`."""
        budget = given.get("max_tokens", BUDGET)
        found = self._memory.context(
            *(caller.scope.own, session_name(given), budget, given.get("query"), caller, deadline),
            strategy=given.get("strategy"),
            subjects=subjects_of(given),
        )
        return conversation_shapes.context(found, budget, parts=given.get("form") == "parts")

    def summarize(self, given: Mapping[str, Any], caller: Caller, deadline: Deadline) -> dict[str, Any]:
        """The result of `session_summarize`."""
        from agora.memory.conversations.tokens import read  # noqa: PLC0415 - a server that starts has no use for it

        done = self._memory.summarize(given["token"], given["summary"], caller, deadline)
        return conversation_shapes.summarized(read(given["token"]).session, done)


def message_draft(given: Mapping[str, Any], namespace: str, now: datetime) -> MessageDraft:
    """The message that the arguments of `session_append` describe.

    Raises: InvalidInput, PayloadTooLarge.
    """
    occurred = given.get("occurred_at")
    return MessageDraft(
        namespace=namespace,
        session=session_name(given),
        role=given["role"],
        content=given["content"],
        speaker=arguments.name(given.get("speaker")),
        occurred_at=None if occurred is None else instant("occurred_at", occurred, now),
        metadata=arguments.own_fields(given),
    )


def session_name(given: Mapping[str, Any]) -> str:
    """The one spelling of the conversation's name."""
    return arguments.name(given["session"]) or ""


def subjects_of(given: Mapping[str, Any]) -> Sequence[str]:
    """Of whom facts are asked for."""
    return tuple(filter(None, map(arguments.name, given.get("subjects") or ())))
