from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Protocol

from agora.errors import AgoraError, EmbeddingMismatch
from agora.model.browse import Event, Listing, Named, Page
from agora.model.caller import Caller, Origin
from agora.model.crossref import Changes, Read, Topic
from agora.model.deadline import Deadline
from agora.model.note import Draft, Note, Saved
from agora.model.profile import Fingerprint, Span
from agora.model.query import Filter
from agora.model.selection import Forgotten, Pinned, Restored, Selection
from agora.ports.encoder import Vector
from agora.ports.text_index import TextView
from agora.ports.vector_index import Among, VectorView


@dataclass(frozen=True, slots=True)
class Embedded:
    """The passages of a text and one vector for each, in order, all from the encoder `fingerprint`."""

    fingerprint: Fingerprint
    spans: tuple[Span, ...]
    vectors: tuple[Vector, ...]


@dataclass(frozen=True, slots=True)
class State:
    """What an answer from some namespaces depends on beside the question itself, in one snapshot.

    `store`: which store, and which past of it. `sequences`: name and last change of each namespace that exists, by
    name. `next_expiry`: the first instant after `now` at which a live row of theirs ends.
    """

    store: str
    sequences: tuple[tuple[str, int], ...]
    now: datetime
    next_expiry: datetime | None


class VectorsNeeded(Exception):
    """The text turned out to be new inside the transaction; nothing was written: embed it and save again."""


class Reading(Protocol):
    """One read transaction: everything asked of it comes from the same snapshot of the store."""

    @property
    def sequence(self) -> int:
        """Of the last change that this snapshot holds; 0 for an empty store."""
        ...

    @property
    def vectors(self) -> VectorView:
        """The vector index exactly as of `sequence`."""
        ...

    @property
    def text(self) -> TextView:
        """The full-text index exactly as of `sequence`."""
        ...

    def state(self, namespaces: Sequence[str]) -> State:
        """What decides whether an earlier answer from `namespaces` still holds."""
        ...

    def among(self, where: Filter) -> Among:
        """The live rows that meet `where`, in the form both indexes take."""
        ...

    def same_text(self, draft: Draft, origin: Origin = "agent") -> bool:
        """Whether a save of `draft` by `origin` would only add a saver to a row that is there already."""
        ...

    def require_room(self, draft: Draft, caller: Caller) -> None:
        """Return if the allowances would let the caller save `draft`, a new text, now: the save decides, and counts.

        Raises: RateLimited, QuotaExceeded.
        """
        ...

    def by_row(self, wanted: Sequence[int]) -> dict[int, Note]:
        """Live or not, the notes of these rows; rows that do not exist are left out."""
        ...

    def span(self, row: int, passage: int) -> Span:
        """Where in its item's content a passage lies."""
        ...

    def by_id(self, ids: Sequence[str], namespaces: Sequence[str]) -> dict[str, tuple[int, Note]]:
        """Row and note of each id that lies in `namespaces`, forgotten and expired ones included."""
        ...

    def purged(self, ids: Sequence[str], namespaces: Sequence[str]) -> frozenset[str]:
        """Those of `ids` that lie in `namespaces` and of which nothing is left: `by_id` does not find them."""
        ...

    def history(self, note: Note) -> tuple[Note, ...]:
        """Every version of a note that was not purged, oldest first, itself included."""
        ...

    def changes(self, topic: Topic, caller: Caller, most: int) -> Changes:
        """What others changed in the topic's namespaces since the caller's agent was last answered from them.

        By the topic's agents and since its time, if it has any; at most `most`, newest first.
        """
        ...

    def page(self, wanted: Listing) -> Page:
        """Live notes by who saved them, newest first, a page at a time."""
        ...

    def names(self, kind: Named, beginning: str, namespaces: Sequence[str], most: int) -> tuple[tuple[str, ...], int]:
        """Names of what live notes of `namespaces` have that begin so, at most `most`, and how many there are."""
        ...

    def counts(self, namespaces: Sequence[str]) -> dict[str, Any]:
        """Numbers of rows by state, agent and namespace, of `namespaces` alone, as plain data."""
        ...


class Records(Protocol):
    """The canonical rows and their journal. Thread-safe; several processes may share one store.

    When a write returns, the rows, their provenance, vectors, full text and journal entry are committed
    together; when it raises, none of them is.
    """

    @property
    def mismatch(self) -> EmbeddingMismatch | None:
        """Why vectors cannot be used, if another profile built this store; lexical queries work all the same."""
        ...

    def read(self, deadline: Deadline) -> AbstractContextManager[Reading]:
        """One read transaction, with both indexes caught up to it.

        Raises: StoreUnavailable, StoreCorrupt, StoreVersion.
        """
        ...

    def save(self, draft: Draft, caller: Caller, embedded: Embedded | None, now: datetime, deadline: Deadline) -> Saved:
        """Save a note, or add the caller to the savers of the row that holds the same text.

        Raises: VectorsNeeded if `embedded` is None and the text is new; EmbeddingMismatch; RateLimited,
        QuotaExceeded; StoreUnavailable.
        """
        ...

    def forget(
        self, selection: Selection, caller: Caller, now: datetime, deadline: Deadline, *, dry_run: bool
    ) -> Forgotten:
        """Hide the selected notes until they are restored, or only say what would be hidden.

        Those of higher authority than the caller's stay, and are told.
        """
        ...

    def restore(self, ids: Sequence[str], caller: Caller, now: datetime, deadline: Deadline) -> Restored:
        """Bring forgotten notes back."""
        ...

    def pin(self, ids: Sequence[str], caller: Caller, now: datetime, deadline: Deadline, *, pinned: bool) -> Pinned:
        """Pin current notes of the user's, or unpin them; the caller must be the user, which is not looked at here."""
        ...

    def log_read(self, read: Read, failed: Callable[[AgoraError], None]) -> None:
        """Remember that a session was given notes; returns at once, and changes no note and no sequence.

        A save that comes later finds it. `failed` is called, from any thread, if it cannot be written.
        """
        ...

    def settle_reads(self, deadline: Deadline) -> None:
        """Wait until the reads that this process logged are written, or have failed.

        Raises: DeadlineExceeded, Cancelled.
        """
        ...

    def events(self, since: int | None, most: int, deadline: Deadline) -> tuple[int, tuple[Event, ...]]:
        """The journal's last sequence, and the first `most` changes after `since`, in order; none for None.

        Asks no index and is cheap enough to be asked several times a second.
        """
        ...

    def details(self) -> dict[str, Any]:
        """Path, sizes, schema, journal sequence, profile and `index` (what the vector index tells) as plain data.

        `purge_unfinished`: rows were purged whose bytes may still be somewhere.
        """
        ...

    def close(self) -> None:
        """Finish the writes that were accepted, then let the files go. Further calls fail."""
        ...
