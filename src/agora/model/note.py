from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Literal

from agora.model.caller import Origin


@dataclass(frozen=True, slots=True)
class Draft:
    """A note as it is about to be saved: validated, namespace resolved, times absolute (UTC, aware)."""

    content: str
    namespace: str
    title: str | None = None
    tags: tuple[str, ...] = ()
    kind: str = "note"
    metadata: Mapping[str, Any] = field(default_factory=dict)
    occurred_at: datetime | None = None
    confidence: float | None = None
    expires_at: datetime | None = None
    key: str | None = None


@dataclass(frozen=True, slots=True)
class Saver:
    """One act of saving a note: who, through which client, in which session, when."""

    agent: str
    client: str
    session: str
    origin: Origin
    at: datetime
    echo_of: str | None = None
    """Id of the note that this saver's session had read, and only repeats; None for a source of its own."""
    tags: tuple[str, ...] = ()
    """Tags that are this saver's alone: its origin is below the note's."""


@dataclass(frozen=True, slots=True)
class Said:
    """What a fact says, beside the text that it is found by: that `key` of `subject` is `value`, and from when on."""

    subject: str
    key: str
    value: Any
    valid_from: datetime
    valid_to: datetime | None = None


@dataclass(frozen=True, slots=True)
class Note:
    """One immutable version of a note with the provenance of everyone who saved it, highest origin first."""

    id: str
    namespace: str
    content: str
    title: str | None
    kind: str
    key: str | None
    version: int
    tags: tuple[str, ...]
    metadata: Mapping[str, Any]
    confidence: float | None
    created_at: datetime
    updated_at: datetime
    occurred_at: datetime | None
    expires_at: datetime | None
    forgotten_at: datetime | None
    forget_reason: str | None
    supersedes: str | None
    superseded_by: str | None
    savers: tuple[Saver, ...]
    type: str = "note"
    contests: str | None = None
    """Id of the note of higher authority that this one stands beside, `unknown` if that is not in this store."""
    contested_by: tuple[str, ...] = ()
    """Ids of current notes of lower authority that stand beside this one."""
    pinned_at: datetime | None = None
    fact: Said | None = None
    """What it says, if its type is `fact`."""

    @property
    def origin(self) -> Origin:
        """The highest origin of its savers: how much its text counts."""
        return self.savers[0].origin


@dataclass(frozen=True, slots=True)
class Related:
    """A note near a saved one: its id, cosine in [-1, 1], title or opening words, and who saved it."""

    id: str
    score: float
    title: str
    agent: str
    origin: Origin
    namespace: str
    same_words: bool
    """Whether the two texts differ in white space, case or Unicode form alone."""
    suspicious: tuple[str, ...] = ()
    """Why it looks like instructions to an agent."""


@dataclass(frozen=True, slots=True)
class Saved:
    """What a save did. `duplicate_of` is the id of the row kept when the same text was there already.

    `contested`: the text stands beside the note `contests` of higher authority, which remains the value of the key.
    """

    id: str
    status: Literal["created", "updated", "duplicate", "contested"]
    namespace: str
    version: int
    sequence: int | None
    duplicate_of: str | None = None
    supersedes: str | None = None
    related: tuple[Related, ...] = ()
    contests: str | None = None
