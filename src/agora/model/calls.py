"""Calls of tools of other MCP servers, as they are recorded."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from agora.model.caller import Caller, Origin


@dataclass(frozen=True, slots=True)
class CallRow:
    """One call that was made, or refused. `outcome`: `ok`, `tool_error` if the tool said so, or the code of an error.

    `arguments` is their canonical JSON: the record keeps a commitment to it that nobody can read.
    """

    at: datetime
    caller: Caller
    backend: str
    tool: str
    access: str
    rule: str
    matched_by: str
    outcome: str
    seconds: float
    cached: bool = False
    arguments: bytes = b""


@dataclass(frozen=True, slots=True)
class CallEntry:
    """One row of the record of calls. `operation` is `call`, or `approve` for a tool whose change was accepted."""

    sequence: int
    at: datetime
    operation: str
    namespace: str
    agent: str
    client: str
    client_version: str
    token: str
    session: str
    origin: Origin
    backend: str
    tool: str
    access: str
    rule: str
    matched_by: str
    outcome: str
    seconds: float
    cached: bool


@dataclass(frozen=True, slots=True)
class CallCount:
    """How many calls there were, and how many of these may have changed something."""

    calls: int = 0
    writing: int = 0


NO_CALLS = CallCount()
