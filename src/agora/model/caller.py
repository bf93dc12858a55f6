from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

from agora.model.access import EVERYTHING, Grants, Right

Origin = Literal["user", "agent", "tool", "web"]
"""Where a text came from, set by the server from the path it took, highest authority first."""

RANKS: tuple[Origin, ...] = ("user", "agent", "tool", "web")
"""Origins by what they may do to what others wrote, highest authority first."""


def rank(origin: Origin) -> int:
    """The place of an origin among `RANKS`: less is higher authority."""
    return RANKS.index(origin)


def lowest(*origins: Origin | None) -> Origin:
    """The origin of least authority; None says nothing."""
    return max((origin for origin in origins if origin is not None), key=rank)


SHARED = "shared"
"""The namespace that every project sees."""


@dataclass(frozen=True, slots=True)
class Scope:
    """The namespaces a call reaches, and what it may do there. Every read and write of the memory goes through one.

    `own` is where a save goes when the caller names no namespace; `source` says which rule found it. `grants` bounds
    `own` and `also` alike: to name a namespace is not to be allowed it. What asks for rights is `agora.memory.access`.
    """

    own: str
    source: str
    also: frozenset[str] = field(default_factory=lambda: frozenset({SHARED}))
    grants: Grants = EVERYTHING

    def visible(self) -> tuple[str, ...]:
        """Names of every namespace that may be read, own first, the rest sorted."""
        return tuple(name for name in (self.own, *sorted(self.also - {self.own})) if self.grants.may("read", name))

    def searched(self) -> tuple[str, ...]:
        """Where a call looks that names no namespace: of its own and `shared` those that may be read."""
        return tuple(name for name in dict.fromkeys((self.own, SHARED)) if self.may("read", name))

    def may(self, right: Right, namespace: str) -> bool:
        """Whether the call reaches that namespace and has that right in it."""
        return (namespace == self.own or namespace in self.also) and self.grants.may(right, namespace)


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
    def identity(self) -> str | None:
        """How the server knows it, whatever it calls itself: the name of its token, empty for this machine's user.

        None for somebody of whom nothing is known: over HTTP without a token.
        """
        return self.token or self.scope.grants.identity

    @property
    def reader(self) -> tuple[str, str]:
        """Session and agent under which the reads of this connection are logged."""
        return self.reads_as or (self.session, self.agent)
