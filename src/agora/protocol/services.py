from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from agora.memory.watching import Watch
from agora.model.caller import Caller
from agora.model.deadline import Deadline
from agora.protocol.prompts.prompts import Prompts
from agora.protocol.resources.resources import Resources
from agora.protocol.tools.handlers import Tools
from agora.protocol.tools.table import TABLE
from agora.protocol.tools.tool import Tool

if TYPE_CHECKING:
    from agora.router.gateway import Gateway


@dataclass(frozen=True, slots=True)
class Services:
    """What a server offers: tools, and beside them what can be read by URI, asked for as a prompt, and watched."""

    tools: Tools
    offered: tuple[Tool, ...] = TABLE
    resources: Resources | None = None
    prompts: Prompts | None = None
    watch: Watch | None = None
    backends: Callable[[Caller], bool] = lambda _: False
    """Whether there are other servers that a caller may use: else it is not told of the tools that reach them."""
    gateway: Callable[[Deadline | None], Gateway | None] = lambda _: None
    """The way to them, opened within a deadline; without one None, unless it is open already."""
