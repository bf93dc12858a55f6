from __future__ import annotations

from collections.abc import Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from datetime import datetime
from typing import Protocol

from agora.model.caller import Caller
from agora.model.deadline import Deadline
from agora.model.message import Message, MessageDraft, Strategy, Summary
from agora.ports.encoder import Vector
from agora.ports.records import Embedded


@dataclass(frozen=True, slots=True)
class Appended:
    """A message that was kept: its id and its number in the conversation."""

    id: str
    seq: int
    sequence: int


@dataclass(frozen=True, slots=True)
class ConversationRow:
    """One conversation in a list."""

    namespace: str
    session: str
    messages: int
    first_at: datetime
    last_at: datetime
    strategy: Strategy


class ConversationReading(Protocol):
    """One read transaction over the conversations."""

    @property
    def sequence(self) -> int:
        """Of the last change that this snapshot holds."""
        ...

    def count(self, namespace: str, session: str) -> int:
        """The number of the last message; 0 if there is no such conversation."""
        ...

    def live(self, namespace: str, session: str, first: int, last: int) -> int:
        """How many messages of these numbers, both ends included, are there and not forgotten."""
        ...

    def messages(
        self,
        namespace: str,
        session: str,
        first: int,
        last: int,
        *,
        oldest: int | None = None,
        newest: int | None = None,
    ) -> tuple[Message, ...]:
        """Messages by their numbers, both ends included, in order; what was forgotten is left out.

        With `oldest` or `newest` so many of them at the most, those at that end; what was forgotten is not counted.
        """
        ...

    def vectors(self, rows: Sequence[int]) -> dict[int, Vector]:
        """One vector for each message of these rows that has any: the mean of its passages', normalised."""
        ...

    def summary(self, namespace: str, session: str) -> Summary | None:
        """The current summary, unless a message that it covers was forgotten since."""
        ...

    def strategy(self, namespace: str, session: str) -> Strategy | None:
        """What was chosen for this conversation; None if nothing was."""
        ...

    def listed(self, namespaces: Sequence[str], most: int, session: str | None = None) -> tuple[ConversationRow, ...]:
        """Conversations, those with the newest messages first; with `session` those of that name alone."""
        ...


class Conversations(Protocol):
    """Messages in the order in which they came, and their summaries. Thread-safe; processes may share one store."""

    def read(self, deadline: Deadline) -> AbstractContextManager[ConversationReading]:
        """One read transaction.

        Raises: StoreUnavailable, StoreCorrupt, StoreVersion.
        """
        ...

    def append(
        self,
        draft: MessageDraft,
        caller: Caller,
        embedded: Embedded | None,
        now: datetime,
        deadline: Deadline,
        *,
        strategy: Strategy | None = None,
    ) -> Appended:
        """Keep a message as the next of its conversation; two that come at once get two numbers.

        Raises: EmbeddingMismatch; RateLimited, QuotaExceeded; StoreUnavailable.
        """
        ...

    def summarize(  # noqa: PLR0913, PLR0917 - a summary and what it must replace
        self,
        namespace: str,
        session: str,
        summary: Summary,
        replaces: int,
        seen: int,
        caller: Caller,
        now: datetime,
        deadline: Deadline,
    ) -> Summary:
        """Put a summary in the place of version `replaces` (0: there is none), and give it the next version.

        `seen`: sequence of the snapshot in which the messages that it tells of were read.

        Raises: SummaryOutdated if another version stands there, or if one of these messages was forgotten since;
        StoreUnavailable.
        """
        ...
