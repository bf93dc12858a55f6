from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Sequence
from datetime import datetime
from typing import TYPE_CHECKING

from agora.memory.access import require
from agora.model.caller import Caller
from agora.model.deadline import Deadline

if TYPE_CHECKING:
    from agora.model.message import Message, MessageDraft, Strategy, Summary
    from agora.ports.conversations import Appended, ConversationReading, ConversationRow, Conversations
    from agora.ports.encoder import Vector
    from agora.ports.records import Embedded


class GuardedConversations:
    """Conversations as the service reaches them: each call says for whom it is."""

    def __init__(self, conversations: Callable[[Deadline], Conversations]) -> None:
        """`conversations` gives the store, which may have to be opened first."""
        self._conversations = conversations

    @contextlib.contextmanager
    def read(self, namespaces: Sequence[str], caller: Caller, deadline: Deadline) -> Iterator[ConversationReading]:
        """One read transaction in which nothing is found that the caller may not read.

        Raises: NamespaceDenied if the caller may not read all of `namespaces`; as `Conversations.read`.
        """
        require(caller, namespaces)
        with self._conversations(deadline).read(deadline) as reading:
            yield _Reading(reading, caller)

    def append(
        self,
        draft: MessageDraft,
        caller: Caller,
        embedded: Embedded | None,
        now: datetime,
        deadline: Deadline,
        strategy: Strategy | None,
    ) -> Appended:
        """As `Conversations.append`.

        Raises: NamespaceDenied without the right to write.
        """
        require(caller, (draft.namespace,), "write")
        return self._conversations(deadline).append(draft, caller, embedded, now, deadline, strategy=strategy)

    def summarize(  # noqa: PLR0913, PLR0917 - as the port
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
        """As `Conversations.summarize`.

        Raises: NamespaceDenied without the right to write.
        """
        require(caller, (namespace,), "write")
        conversations = self._conversations(deadline)
        return conversations.summarize(namespace, session, summary, replaces, seen, caller, now, deadline)


class _Reading:
    """A reading for one caller; implements `agora.ports.conversations.ConversationReading`."""

    def __init__(self, reading: ConversationReading, caller: Caller) -> None:
        self._reading = reading
        self._caller = caller

    @property
    def sequence(self) -> int:
        """As `ConversationReading.sequence`: it counts everybody's changes, and leaves the memory nowhere."""
        return self._reading.sequence

    def count(self, namespace: str, session: str) -> int:
        """As `ConversationReading.count`."""
        require(self._caller, (namespace,))
        return self._reading.count(namespace, session)

    def live(self, namespace: str, session: str, first: int, last: int) -> int:
        """As `ConversationReading.live`."""
        require(self._caller, (namespace,))
        return self._reading.live(namespace, session, first, last)

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
        """As `ConversationReading.messages`."""
        require(self._caller, (namespace,))
        return self._reading.messages(namespace, session, first, last, oldest=oldest, newest=newest)

    def vectors(self, rows: Sequence[int]) -> dict[int, Vector]:
        """As `ConversationReading.vectors`; it is asked with rows of messages that were read."""
        return self._reading.vectors(rows)

    def summary(self, namespace: str, session: str) -> Summary | None:
        """As `ConversationReading.summary`."""
        require(self._caller, (namespace,))
        return self._reading.summary(namespace, session)

    def strategy(self, namespace: str, session: str) -> Strategy | None:
        """As `ConversationReading.strategy`."""
        require(self._caller, (namespace,))
        return self._reading.strategy(namespace, session)

    def listed(self, namespaces: Sequence[str], most: int, session: str | None = None) -> tuple[ConversationRow, ...]:
        """As `ConversationReading.listed`."""
        require(self._caller, namespaces)
        return self._reading.listed(namespaces, most, session)
