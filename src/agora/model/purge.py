from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime
from typing import Literal

from agora.model.caller import Origin


@dataclass(frozen=True, slots=True)
class Unwanted:
    """Which notes to purge: of `namespaces`, those that are forgotten, with `expired` those that the clock ended too.

    `ids`: these alone. `before`: only what was forgotten, or expired, before it. `origin`: of who asks; what is of
    higher authority stays.
    """

    namespaces: tuple[str, ...]
    ids: tuple[str, ...] = ()
    before: datetime | None = None
    expired: bool = False
    origin: Origin = "agent"


@dataclass(frozen=True, slots=True)
class Doomed:
    """A note that a purge would take, with `versions` of its text in all; `title` may be its opening words."""

    id: str
    namespace: str
    title: str
    agent: str
    origin: Origin
    state: Literal["forgotten", "expired"]
    since: datetime
    versions: int


@dataclass(frozen=True, slots=True)
class Condemned:
    """What a purge would take.

    `groups` holds row numbers, note by note: the row that was forgotten, then the older versions that go with it.
    `shown` describes the first of them. `gone`: ids that were purged before. `repeated_by`: ids of notes that stay
    and that repeat a note which goes, by the server's record of reads or word for word. `protected`: ids of notes that
    stay since they, or a version that would go with them, are of higher authority than who asks. `seen`: sequence and
    hash of the store's last change then, for row numbers mean nothing in another past of it.
    """

    groups: tuple[tuple[int, ...], ...]
    shown: tuple[Doomed, ...] = ()
    gone: tuple[str, ...] = ()
    repeated_by: tuple[str, ...] = ()
    protected: tuple[str, ...] = ()
    seen: tuple[int, bytes | None] = field(default=(0, None), compare=False)

    @property
    def versions(self) -> int:
        """How many rows go."""
        return sum(map(len, self.groups))


@dataclass(frozen=True, slots=True)
class Sample:
    """A piece of what is about to be purged, long enough to be known again in a file."""

    kind: Literal["text", "vector"]
    data: bytes


@dataclass(frozen=True, slots=True)
class Emptied:
    """What became of one place: `problem` says why it may still hold something; None if it is clean."""

    place: str
    problem: str | None = None


@dataclass(frozen=True, slots=True)
class Purged:
    """What a purge did. `kept`: notes that were restored between the look and the deed.

    `unfinished`: at least one place is not clean; the rows are gone all the same, and the next purge goes on.
    """

    notes: int
    versions: int
    kept: int
    bytes_before: int
    bytes_after: int
    samples: int
    places: tuple[Emptied, ...]

    @property
    def unfinished(self) -> bool:
        """Whether a place is not clean."""
        return any(each.problem is not None for each in self.places)
