from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Sequence
from datetime import datetime
from typing import TYPE_CHECKING

from agora.memory.access import require
from agora.model.caller import Caller
from agora.model.deadline import Deadline

if TYPE_CHECKING:
    from agora.model.message import MessageDraft, Strategy, Summary
    from agora.ports.conversations import Appended, ConversationReading, Conversations
    from agora.ports.records import Embedded


class GuardedConversations:
    """Conversations as the service reaches them: each call says for whom it is."""

    def __init__(self, conversations: Callable[[Deadline], Conversations]) -> None:
        """`conversations` gives the store, which may have to be opened first."""
        self._conversations = conversations

    @contextlib.contextmanager
    def read(self, namespaces: Sequence[str], caller: Caller, deadline: Deadline) -> Iterator[ConversationReading]:
        """One read transaction, to be asked for these namespaces alone.

        Raises: NamespaceDenied if the caller may not read all of them; as `Conversations.read`.
        """
        require(caller, namespaces)
        with self._conversations(deadline).read(deadline) as reading:
            yield reading

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
