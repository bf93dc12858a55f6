from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Literal

from agora.model.note import Note

Named = Literal["agents", "sessions", "namespaces", "notes"]


@dataclass(frozen=True, slots=True)
class Listing:
    """Which live notes to list, newest first: in `namespaces`, saved by `agent` or in `session` if given.

    `before` is the `next` of the page before: the id of its last note.
    """

    namespaces: tuple[str, ...]
    agent: str | None = None
    session: str | None = None
    before: str | None = None
    limit: int = 50


@dataclass(frozen=True, slots=True)
class Page:
    """One page of notes; `next` begins the following one and is None at the end; `total` counts all pages."""

    notes: tuple[Note, ...]
    next: str | None
    total: int
    sequence: int | None


@dataclass(frozen=True, slots=True)
class Event:
    """One row of the journal, as those who watch are told: nothing of the content.

    `id` and `namespace` are None for a change of the store as a whole; `at` too where another past was put back.
    """

    sequence: int
    at: datetime | None
    operation: str
    id: str | None
    namespace: str | None
    agent: str
    session: str
