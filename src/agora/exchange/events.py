"""What the readers of all formats find in a file, one event after the other."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol

from agora.ports.transfer import Version


@dataclass(frozen=True, slots=True)
class Text:
    """A text of another tool, as it is about to become a note.

    `place` says where in the file it stands, `agent` who wrote it. A text with a `key` replaces what has this key now.
    """

    place: str
    content: str
    title: str | None = None
    kind: str = "note"
    tags: tuple[str, ...] = ()
    metadata: Mapping[str, Any] = field(default_factory=dict)
    agent: str | None = None
    session: str | None = None
    occurred_at: str | None = None
    confidence: float | None = None
    key: str | None = None


@dataclass(frozen=True, slots=True)
class LeftOut:
    """Something that is no knowledge: `what` it is, as it is counted."""

    what: str
    times: int = 1


@dataclass(frozen=True, slots=True)
class Broken:
    """Something that cannot be read: where, and why."""

    place: str
    reason: str


Event = Version | Text | LeftOut | Broken


class Reader(Protocol):
    """Reads one file from its start to its end, once."""

    def events(self) -> Iterator[Event]:
        """What is in the file, in its order; a few at a time in memory."""
        ...

    @property
    def problems(self) -> tuple[str, ...]:
        """What is wrong with the file as a whole; known at the end."""
        ...
