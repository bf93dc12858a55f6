from __future__ import annotations

from collections.abc import Sequence
from contextlib import AbstractContextManager
from datetime import datetime
from typing import Protocol

from agora.model.caller import Caller
from agora.model.deadline import Deadline
from agora.model.fact import Fact, FactDraft, Remembered
from agora.ports.records import Embedded


class FactReading(Protocol):
    """One read transaction over the facts."""

    @property
    def sequence(self) -> int:
        """Of the last change that this snapshot holds."""
        ...

    def of(
        self,
        namespaces: Sequence[str],
        subject: str | None,
        key: str | None,
        most: int,
        since: datetime | None = None,
    ) -> tuple[tuple[Fact, ...], int]:
        """Every statement about a subject and a key, in whatever state, purged ones too; None for all of them.

        By subject, key and time; of purged ones there is nothing but the place that they hold (`Fact.purged_rank`).
        `since`: without what had been replaced by then, which makes no difference to what holds then or later. Of more
        than `most` subjects with keys, those of which something holds at `since`, pinned first, then those with most
        sources, then the newest; and how many such there are beside.
        """
        ...

    def repeats(self, draft: FactDraft, caller: Caller) -> bool:
        """Whether to remember `draft` would only add the caller to the sources of a statement that is there."""
        ...

    def subjects(self, namespaces: Sequence[str], beginning: str, most: int) -> tuple[tuple[str, int], ...]:
        """Subjects that begin so with their numbers of keys, sorted."""
        ...


class Facts(Protocol):
    """The statements that are kept of subjects. Thread-safe; several processes may share one store."""

    def read(self, deadline: Deadline) -> AbstractContextManager[FactReading]:
        """One read transaction.

        Raises: StoreUnavailable, StoreCorrupt, StoreVersion.
        """
        ...

    def remember(
        self, draft: FactDraft, caller: Caller, embedded: Embedded | None, now: datetime, deadline: Deadline
    ) -> Remembered:
        """Keep a statement, or count the caller among the sources of the same one that is there.

        Raises: VectorsNeeded if `embedded` is None and the statement is new; InvalidInput for a value beyond the 250
        that a key may have at once; EmbeddingMismatch; RateLimited, QuotaExceeded; StoreUnavailable.
        """
        ...
