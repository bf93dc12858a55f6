"""The tables `[[backends]]` of `agora.toml`: other MCP servers and how they are reached, as they are written."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

KEY = "backends"
"""Name of the tables."""

Wire = Literal["stdio", "http"]
"""How a backend is spoken to: as a child process, or by Streamable HTTP."""


@dataclass(frozen=True, slots=True)
class BackendTable:
    """One table. `command`, `args`, `cwd` and `env` are for `stdio`; `url`, `headers` and `bearer_token` for `http`.

    Texts may hold `${VAR}`; `expanded` puts the values in. Durations are in seconds.
    """

    name: str
    transport: Wire
    description: str = ""
    command: str = ""
    args: tuple[str, ...] = ()
    cwd: str | None = None
    env: tuple[tuple[str, str], ...] = field(default=(), repr=False)
    """Every variable that the child gets beside the few that a program needs to run."""
    url: str = ""
    headers: tuple[tuple[str, str], ...] = field(default=(), repr=False)
    bearer_token: str | None = field(default=None, repr=False)
    read_only: bool = False
    """Whether only calls that the policy takes for reading are let through."""
    trusted: bool = False
    """Whether what its tools say of themselves (`readOnlyHint`) is believed."""
    allow: tuple[str, ...] = ()
    """Patterns with `*` of tools that may be called also where they write."""
    deny: tuple[str, ...] = ()
    """Patterns with `*` of tools that are never called."""
    timeout: float = 30.0
    """Seconds that one call may take."""
    start_timeout: float = 30.0
    """Seconds from the start of a session to the end of its handshake."""
    max_retries: int = 2
    """Times that a call is repeated that changes nothing or was provably not sent."""
    retry_delay: float = 0.25
    """Seconds before the first of them; doubled for each further one."""
    rate: float | None = None
    """Calls a second; None for no limit."""
    concurrency: int = 16
    """Calls at the same time; more wait."""
    cache_seconds: float = 0.0
    """How long the result of a reading call answers the same call again; 0 for never."""
    save_results: bool = False
    """Whether results of reading calls are saved as notes of origin `tool`."""
    place: str = field(default="", compare=False)
    """File and line, as a reader is shown them; tables are equal wherever they stand."""
