"""The tables `[[backends]]` of `agora.toml`: other MCP servers and how they are reached, as they are written."""

from __future__ import annotations

import hashlib
import json
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
    """A name that is looked up on the PATH, or a whole path."""
    args: tuple[str, ...] = field(default=(), repr=False)
    cwd: str | None = None
    env: tuple[tuple[str, str], ...] = field(default=(), repr=False)
    """Every variable that the child gets beside the few that a program needs to run."""
    url: str = field(default="", repr=False)
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
    concurrency: int = 32
    """Calls at the same time; more wait."""
    cache_seconds: float = 0.0
    """How long the result of a reading call answers the same call again; 0 for never."""
    save_results: bool = False
    """Whether results of reading calls are saved as notes of origin `tool`."""
    place: str = field(default="", compare=False)
    """File and line, as a reader is shown them; tables are equal wherever they stand."""
    number: int = field(default=0, compare=False)
    """Which of the file's tables it is, from 1 on."""

    @property
    def label(self) -> str:
        """How messages name it, as in `backends[2] "github"`."""
        return f'{KEY}[{self.number}] "{self.name}"'


def identity(table: BackendTable) -> str:
    """SHA-256, in hexadecimal, of what makes the backend this program and no other: how it is reached, and where.

    Of a table as it is written: variables are names then, so a renewed secret changes nothing. Neither does the
    environment, nor a header, nor the name.
    """
    parts = [table.transport, table.command, table.args, table.cwd, table.url]
    return hashlib.sha256(json.dumps(parts, separators=(",", ":")).encode("ascii")).hexdigest()


def account(table: BackendTable) -> tuple[str, bool]:
    """SHA-256, in hexadecimal, of as whom the backend is reached, and whether variables have a part in that.

    Of a table as it is written: its name, and everything that can hold a password. What the variables stand for is not
    in it: who has the file of the cache could try passwords with it.
    """
    secret = [table.env, table.headers, table.bearer_token]
    parts = [table.name, table.command, table.args, table.cwd, table.url, *secret]
    written = json.dumps(parts, separators=(",", ":"), default=dict)
    return hashlib.sha256(written.encode("ascii")).hexdigest(), "${" in written
