from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Literal, Protocol

from agora.model.caller import Caller, Origin, rank
from agora.model.deadline import Deadline
from agora.model.fact import Value
from agora.model.message import Strategy
from agora.model.profile import Span
from agora.ports.encoder import Vector
from agora.ports.records import Embedded


@dataclass(frozen=True, slots=True)
class Giver:
    """One saver of a version with all that the store knows of it, and the tags that this saver gave."""

    agent: str
    client: str
    client_version: str
    token: str
    session: str
    origin: Origin
    first_at: datetime
    last_at: datetime
    times: int = 1
    given: Mapping[str, Any] = field(default_factory=dict)
    tags: tuple[str, ...] = ()
    lowered: bool = False
    """Whether its source says a higher origin than it may have here."""


@dataclass(frozen=True, slots=True)
class Replaced:
    """A version whose place another one took: by id and by text, so that it is known again in another store."""

    id: str
    content_hash: bytes | None
    """SHA-256 of its text; None once it is purged."""


@dataclass(frozen=True, slots=True)
class Stated:
    """What a version of type `fact` states beside its text. Of a purged one `value` is None and `rank` is left.

    `quoted`: its text is the words that it was taken from. `reverted`: it counts as never said. `rank`: whose word a
    purged one was, as `agora.model.caller.rank` has it.
    """

    subject: str
    key: str
    value: Value | None
    valid_from: datetime
    valid_to: datetime | None = None
    expires_at: datetime | None = None
    multi: bool = False
    quoted: bool = False
    reverted: bool = False
    rank: int | None = None


@dataclass(frozen=True, slots=True)
class Covered:
    """The messages that a version of type `summary` covers, both included, and what wrote it."""

    first: int
    last: int
    written_by: str


@dataclass(frozen=True, slots=True)
class Version:
    """One immutable version of an item with everything that the store knows of it but its journal.

    `content` is None for a purged one: its place and its id are kept, so that nothing older takes them.
    When a fact ends is drawn from the others of its key: it has neither `superseded_by` nor `expires_at` nor `contests`
    here. `strategy` is that of a message's conversation.
    `replaces` holds everything that this version superseded and that came before it.
    """

    id: str
    namespace: str
    content: str | None
    created_at: datetime
    updated_at: datetime
    savers: tuple[Giver, ...]
    type: str = "note"
    kind: str = "note"
    key: str | None = None
    version: int = 1
    title: str | None = None
    metadata: Mapping[str, Any] = field(default_factory=dict)
    confidence: float | None = None
    session: str | None = None
    seq: int | None = None
    speaker: str | None = None
    occurred_at: datetime | None = None
    expires_at: datetime | None = None
    supersedes: str | None = None
    superseded_by: str | None = None
    superseded_at: datetime | None = None
    replaces: tuple[Replaced, ...] = ()
    forgotten_at: datetime | None = None
    forget_reason: str | None = None
    purged_at: datetime | None = None
    contests: str | None = None
    """Id of the version of higher authority that it stands beside; its own if that is not in the store."""
    pinned_at: datetime | None = None
    fact: Stated | None = None
    summary: Covered | None = None
    strategy: Strategy | None = None
    passages: tuple[tuple[Span, Vector], ...] = ()
    """Empty unless vectors were asked for."""

    def origin(self, otherwise: Origin) -> Origin:
        """The highest origin of its savers; `otherwise` for a purged version, which has none."""
        return min((giver.origin for giver in self.savers), key=rank, default=otherwise)


@dataclass(frozen=True, slots=True)
class Extract:
    """Which versions an export takes. `since` selects what was saved or changed since then, by the journal."""

    namespaces: tuple[str, ...]
    since: datetime | None = None
    live_only: bool = False
    vectors: bool = False


@dataclass(frozen=True, slots=True)
class Profile:
    """The encoder whose vectors a store holds: `digest` of its fingerprint, name and dimension."""

    digest: str
    name: str
    dimension: int


class Outgoing(Protocol):
    """One snapshot of a store, on its way out."""

    @property
    def store(self) -> str:
        """The id of the store, given when it was made."""
        ...

    @property
    def sequence(self) -> int:
        """Of the last change that the snapshot holds."""
        ...

    @property
    def profile(self) -> Profile:
        """Of the vectors."""
        ...

    @property
    def counts(self) -> Mapping[str, int]:
        """Number of versions in each namespace that has any."""
        ...

    def versions(self) -> Iterator[Version]:
        """Every selected version, in the order in which the store got them; a few hundred in memory at a time."""
        ...


@dataclass(frozen=True, slots=True)
class Arrival:
    """A version on its way in. `embedded` may be None where no vectors are needed.

    `follows`: it comes from another tool and has no history of its own. Where its key has another text it becomes
    the next version, as a save would; what was forgotten here stays forgotten.

    `waits`: more of its file may come. Where its place depends on that, it is put off and nothing is written of it.
    """

    version: Version
    embedded: Embedded | None = None
    follows: bool = False
    waits: bool = False


Fate = Literal["created", "updated", "history", "contested", "duplicate", "conflict", "put off"]
"""`created`: a row of its own. `updated`: the new current version of a key. `history`: an older version of a key that
has a newer one here. `contested`: it stands beside what is of higher authority here. `duplicate`: it was here, by id
or by text. `conflict`: it contradicts what is here, and is left out. `put off`: an arrival that `waits` is to be given
again once all others of its file were.
"""


@dataclass(frozen=True, slots=True)
class Outcome:
    """What became of one arrival. `other` is the row that was kept in its place, `reason` says why."""

    fate: Fate
    id: str
    other: str | None = None
    reason: str | None = None


class Incoming(Protocol):
    """Takes versions in, a batch at a time."""

    def settled(self, batch: Sequence[Arrival], now: datetime, deadline: Deadline) -> frozenset[str]:
        """Ids of those that most likely need no vectors, since they or their texts are here already."""
        ...

    def add(
        self, batch: Sequence[Arrival], caller: Caller, source: Mapping[str, Any], now: datetime, deadline: Deadline
    ) -> tuple[Outcome, ...]:
        """Add a batch in one transaction, all or nothing; the outcome of each, in order.

        The journal names `caller` and, in its payload, `source`. Idempotent: what is here already, by id, stays as
        it is but for savers that it did not have.

        Raises: VectorsNeeded if a text turned out to be new and came without vectors; nothing was written.
        EmbeddingMismatch; StoreUnavailable.
        """
        ...


class Transfer(Incoming, Protocol):
    """The rows of a store as they are, out and in. Thread-safe."""

    def namespaces(self, deadline: Deadline) -> tuple[str, ...]:
        """Every namespace of the store, sorted."""
        ...

    def outgoing(self, extract: Extract, now: datetime, deadline: Deadline) -> AbstractContextManager[Outgoing]:
        """The selected versions from one read transaction, while others go on writing."""
        ...

    def rehearsal(self, deadline: Deadline) -> AbstractContextManager[Incoming]:
        """Takes versions in just as this store would, and forgets them at the end; needs no vectors.

        Holds about half a kilobyte in memory for each version in the store.
        """
        ...
