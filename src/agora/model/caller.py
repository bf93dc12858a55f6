from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

Origin = Literal["user", "agent", "tool", "web"]
"""Where a text came from, set by the server from the path it took, highest authority first."""

SHARED = "shared"
"""The namespace that every project sees."""


@dataclass(frozen=True, slots=True)
class Scope:
    """The namespaces a call may see. Every read and write of the memory goes through one of these.

    `own` is where a save goes when the caller names no namespace; `source` says which rule found it.
    """

    own: str
    source: str
    also: frozenset[str] = field(default_factory=lambda: frozenset({SHARED}))

    def visible(self) -> tuple[str, ...]:
        """Names of every visible namespace, own first, the rest sorted."""
        return (self.own, *sorted(self.also - {self.own}))


@dataclass(frozen=True, slots=True)
class Caller:
    """Who calls, as the server knows it: `client` from the connection, `agent` as the caller claims."""

    scope: Scope
    agent: str
    session: str
    client: str
    client_version: str = ""
    token: str = ""
    """Name of the token the connection came with, never the secret; empty without one."""
    origin: Origin = "agent"
    reads_as: tuple[str, str] | None = None
    """Session and agent of the connection itself, if this call claims others: what it reads is logged under these."""

    @property
    def reader(self) -> tuple[str, str]:
        """Session and agent under which the reads of this connection are logged."""
        return self.reads_as or (self.session, self.agent)
