"""What the tools of another MCP server were when they were approved, and what they say of themselves now."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Literal

from agora.model.backend import ToolDefinition

Status = Literal["approved", "quarantined", "gone"]

FIRST_SIGHT = ""
"""In place of who approved a tool: it was there when its server was first seen, or came later as a new one."""


@dataclass(frozen=True, slots=True)
class Pin:
    """One tool of one backend: as it was approved, and as it was last seen. A digest is `ToolDefinition.digest`."""

    status: Status
    approved: ToolDefinition
    approved_digest: str
    approved_at: datetime
    approved_by: str
    seen: ToolDefinition
    seen_digest: str
    first_seen: datetime
    seen_at: datetime

    @classmethod
    def first(cls, tool: ToolDefinition, now: datetime) -> Pin:
        """Of a tool that was never seen before: trusted at first sight."""
        digest = tool.digest()
        return cls("approved", tool, digest, now, FIRST_SIGHT, tool, digest, now, now)

    def sighted(self, tool: ToolDefinition, now: datetime) -> Pin:
        """After it was seen again: quarantined if it is not what was approved, approved if it is, wherever it was."""
        digest = tool.digest()
        status: Status = "approved" if digest == self.approved_digest else "quarantined"
        return replace(self, status=status, seen=tool, seen_digest=digest, seen_at=now)

    def missed(self) -> Pin:
        """After its backend was seen without it."""
        return replace(self, status="gone")

    def accepted(self, by: str, now: datetime) -> Pin:
        """After somebody approved what was last seen of it."""
        return replace(
            self,
            status="approved",
            approved=self.seen,
            approved_digest=self.seen_digest,
            approved_at=now,
            approved_by=by,
        )


@dataclass(frozen=True, slots=True)
class Pinned:
    """The tools of a backend by what was decided of them."""

    approved: Mapping[str, ToolDefinition]
    quarantined: Mapping[str, ToolDefinition] = field(default_factory=dict)
    """What they say of themselves now, which nobody has approved."""
    gone: tuple[str, ...] = ()
    """Names of tools that the backend had and does not list any more."""
    refused: tuple[str, ...] = ()
    """Names of tools that are too many or too large to be looked at, or are no text; they are not called."""


@dataclass(frozen=True, slots=True)
class ToolChange:
    """What waits for approval: a tool as it was approved and as it is now. `digest` is of what it is now."""

    tool: str
    before: ToolDefinition
    after: ToolDefinition
    digest: str
    seen_at: datetime
