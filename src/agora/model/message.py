"""Conversations: messages in their order, and the summary of those that lie further back."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Literal

from agora.model.caller import Origin

Role = Literal["user", "assistant", "system", "tool"]

Strategy = Literal["buffer", "summary", "facts", "semantic", "all"]
"""What a conversation's context is made of: see docs/conversations.md for which serves what."""


@dataclass(frozen=True, slots=True)
class MessageDraft:
    """A message as it is about to be appended: validated, namespace resolved, times absolute (UTC, aware)."""

    namespace: str
    session: str
    role: Role
    content: str
    speaker: str | None = None
    occurred_at: datetime | None = None
    metadata: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Message:
    """One message of a conversation, verbatim. `seq` counts from 1 within the conversation, without a gap."""

    id: str
    row: int
    namespace: str
    session: str
    seq: int
    role: Role
    speaker: str | None
    content: str
    occurred_at: datetime | None
    created_at: datetime
    metadata: Mapping[str, Any]
    agent: str
    origin: Origin

    @property
    def at(self) -> datetime:
        """When it was said, as far as that is known."""
        return self.occurred_at or self.created_at


@dataclass(frozen=True, slots=True)
class Summary:
    """The older part of a conversation in few words: of the messages `first` to `last`, both included.

    `version` grows with each change; `written_by` names what made it: `extractive`, a model, or the agent itself.
    `origin` is the lowest of those whose words it holds.
    """

    text: str
    first: int
    last: int
    version: int
    written_by: str
    at: datetime
    origin: Origin = "agent"
