from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime
from typing import Literal

from agora.model.caller import Origin, rank
from agora.model.note import Note, Saver

Verdicted = Literal["contested", "agree", "differ", "superseded", "single source"]


def by_authority(origins: Iterable[Origin]) -> tuple[Origin, ...]:
    """Each of `origins` once, highest authority first."""
    return tuple(sorted(set(origins), key=rank))


@dataclass(frozen=True, slots=True)
class Topic:
    """What is asked about: a question, or the note `id` with its key, its anchors and what is near.

    `agents` and `since` narrow notes, versions and changes alike; empty and None do not.
    """

    namespaces: tuple[str, ...]
    query: str | None = None
    id: str | None = None
    agents: tuple[str, ...] = ()
    since: datetime | None = None
    unread: bool = True
    """Whether changes that the caller's agent has been answered since are left out."""


@dataclass(frozen=True, slots=True)
class Read:
    """That an answer gave the notes `ids` to a session.

    `namespaces` are those that the answer tells the state of at `sequence`; none for notes that were asked for by id.
    `identity` is the caller's: its session and its agent are names that are given.
    """

    session: str
    agent: str
    ids: tuple[str, ...]
    namespaces: tuple[str, ...]
    sequence: int
    at: datetime
    identity: str | None = ""


@dataclass(frozen=True, slots=True)
class Change:
    """One change in the journal: what somebody did to a note. `title` is None where the note may not be shown."""

    sequence: int | None
    at: datetime
    operation: str
    id: str
    namespace: str
    agent: str
    client: str
    session: str
    origin: Origin
    title: str | None


@dataclass(frozen=True, slots=True)
class Changes:
    """What others changed since the caller's agent last read, newest first; `count` counts all of it."""

    last_read: datetime | None
    count: int
    newest: tuple[Change, ...]


@dataclass(frozen=True, slots=True)
class Stated:
    """One note of an agent on the topic, as that agent saved it; `content` may be a cut.

    `echo_of`: id of the note that the agent repeats, `unseen` if the caller may not see that one.
    """

    note: Note
    saver: Saver
    score: float
    content: str
    cut: bool
    echo_of: str | None


@dataclass(frozen=True, slots=True)
class Position:
    """What one agent says: its notes, newest first, and how many more there are."""

    agent: str
    notes: tuple[Stated, ...]
    omitted: int


@dataclass(frozen=True, slots=True)
class Shared:
    """An anchor that at least two notes name; `independent` counts agents that did not merely repeat."""

    kind: str
    value: str
    ids: tuple[str, ...]
    agents: tuple[str, ...]
    independent: int


@dataclass(frozen=True, slots=True)
class Held:
    """A value of an attribute, and who holds it. `attribute` is None where a whole text is the value."""

    attribute: str | None
    value: str
    ids: tuple[str, ...]
    agents: tuple[str, ...]
    origins: tuple[Origin, ...]
    """Of all who hold it, highest authority first."""
    at: datetime


@dataclass(frozen=True, slots=True)
class Verdict:
    """Whether those who speak of a key or an anchor (`kind`, `value`) say the same.

    `contested`: the value of a key that stands, then those of lower authority beside it; `differ`: the values of one
    attribute in live notes of different agents; `superseded`: the older value of a key, then the newer.
    """

    kind: str
    value: str
    verdict: Verdicted
    independent: int
    ids: tuple[str, ...]
    values: tuple[Held, ...] = ()


@dataclass(frozen=True, slots=True)
class CrossReference:
    """What different agents know about a topic, from one snapshot. Each `…_omitted` counts what was left out."""

    notes: int
    positions: tuple[Position, ...]
    positions_omitted: int
    timeline: tuple[Note, ...]
    timeline_omitted: int
    anchors: tuple[Shared, ...]
    anchors_omitted: int
    verdicts: tuple[Verdict, ...]
    verdicts_omitted: int
    changes: Changes
    namespaces: tuple[str, ...]
    sequence: int | None
