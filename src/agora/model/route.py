"""A call of another MCP server's tool, from what an agent asks for to what comes back."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

Access = Literal["read", "write"]
"""Whether a call only reads, as far as anybody can tell beforehand."""

Match = Literal["backend", "tool", "intent", "none"]
"""How the tool was found: by the name of its backend, by its own, by what is wanted; or not at all."""

Block = Mapping[str, Any]
"""One block of a result, in the words of the protocol."""


@dataclass(frozen=True, slots=True)
class RouteRequest:
    """What an agent asks for. `arguments` go to the backend as they are."""

    target: str
    tool: str | None = None
    arguments: Mapping[str, Any] = field(default_factory=dict)
    intent: str | None = None
    dry_run: bool = False


@dataclass(frozen=True, slots=True)
class ToolResult:
    """What a tool answered, as far as it is shown.

    `content` are its blocks without pictures and sounds, which are in `media`. `cut` says where the rest is.
    """

    content: tuple[Block, ...]
    structured: Mapping[str, Any] | None
    is_error: bool
    media: tuple[Block, ...] = ()
    cut: Mapping[str, Any] | None = None


@dataclass(frozen=True, slots=True)
class Called:
    """A call that was made, or answered from the cache: `cached` names its level, `age` is in seconds then."""

    backend: str
    tool: str
    access: Access
    rule: str
    result: ToolResult
    seconds: float
    attempts: int = 1
    cached: Literal["L1", "L2"] | None = None
    age: float | None = None
    note: Mapping[str, Any] | None = None
    """What became of the result where results are saved as notes: its id, or why it was not saved."""
    warnings: tuple[str, ...] = ()
