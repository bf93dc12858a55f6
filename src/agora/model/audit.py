from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import datetime
from typing import Literal

from agora.model.caller import Origin
from agora.model.calls import NO_CALLS, CallCount, CallEntry


@dataclass(frozen=True, slots=True)
class Writer:
    """Whose changes are meant; all that are given hold.

    `client` is the name of the program that they came through, `token` that of the token. Agents, sessions and programs
    go by the caller's word; what a token is called, the server decides.
    """

    agent: str | None = None
    session: str | None = None
    client: str | None = None
    token: str | None = None
    namespace: str | None = None
    since: datetime | None = None


@dataclass(frozen=True, slots=True)
class Wanted:
    """Which rows of the journal to list: the last `limit` of those for which all that is given holds.

    `since` belongs to the time that is meant, `until` does not.
    """

    writer: Writer
    until: datetime | None = None
    operation: str | None = None
    limit: int = 100


@dataclass(frozen=True, slots=True)
class Entry:
    """One row of the journal, without content.

    `id` and `namespace` are None for a change of the store as a whole. `purged`: a purge took the text of its note.
    """

    sequence: int
    at: datetime
    operation: str
    id: str | None
    namespace: str | None
    agent: str
    client: str
    client_version: str
    token: str
    session: str
    origin: Origin
    purged: bool


@dataclass(frozen=True, slots=True)
class Entries:
    """The rows that were asked for, newest last, and of how many they are the last."""

    rows: tuple[Entry, ...]
    total: int


@dataclass(frozen=True, slots=True)
class Listed:
    """Rows of the journal, of the record of calls or of both, newest last, and of how many they are the last."""

    rows: tuple[Entry | CallEntry, ...]
    total: int


@dataclass(frozen=True, slots=True)
class Break:
    """The first change at which the journal is not what was written, and what is wrong there."""

    sequence: int
    reason: str


@dataclass(frozen=True, slots=True)
class Head:
    """The number and the hash of a change, which stand for all changes up to it: another journal has another hash."""

    sequence: int
    hash: bytes

    def __str__(self) -> str:
        """As people keep it."""
        return f"{self.sequence}:{self.hash.hex()}"

    @staticmethod
    def parsed(text: str) -> Head | None:
        """The head that was written so; None if none was."""
        found = re.fullmatch(r"([1-9][0-9]{0,17}):([0-9a-f]{64})", text.strip().lower())
        return None if found is None else Head(int(found[1]), bytes.fromhex(found[2]))


@dataclass(frozen=True, slots=True)
class Verified:
    """What came of a walk over the journal.

    `rows` is how many were found whole, `head` that of the last of these; None if there is none. `broken` is None if
    that is the whole journal.
    """

    rows: int
    head: Head | None
    broken: Break | None = None


Undoing = Literal["withdraw", "give back", "forget", "take back", "restore"]
"""`withdraw`: the writer is no saver any more of a note that others saved too. `give back`: whoever the writer has
withdrawn is one again. `forget`: hide what the writer saved or brought back. `take back`: make the version before the
writer's the current one again. `restore`: bring back what the writer forgot."""

ORDER: tuple[Undoing, ...] = ("withdraw", "give back", "forget", "take back", "restore")
"""In which order these are done, so that what comes back has nothing of the writer, and none finds its place taken by a
text that another one hides."""


@dataclass(frozen=True, slots=True)
class Step:
    """One change to undo. `row` is the store's number of the note `id`, `earlier` the id of the version to come back.

    `title` may be the opening words.
    """

    undoing: Undoing
    row: int
    id: str
    namespace: str
    title: str
    earlier: str | None = None


@dataclass(frozen=True, slots=True)
class Left:
    """A change of the writer that stays, and why."""

    id: str
    namespace: str
    reason: str


@dataclass(frozen=True, slots=True)
class Plan:
    """What a revert would do, in the order of `ORDER`, and what it would leave; `calls` cannot be undone at all."""

    steps: tuple[Step, ...]
    left: tuple[Left, ...]
    calls: CallCount = NO_CALLS


@dataclass(frozen=True, slots=True)
class Reverted:
    """What a revert did. `left` is what it did not undo; `sequence` that of the store's last change afterwards."""

    done: tuple[Step, ...]
    left: tuple[Left, ...]
    sequence: int
    calls: CallCount = NO_CALLS
