from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from agora.model.deadline import Deadline
from agora.model.message import Message, Summary


@dataclass(frozen=True, slots=True)
class Folded:
    """A summary's new text and what made it. `problem`: why the wanted model did not, if it did not."""

    text: str
    written_by: str
    problem: str | None = None


class Summarizer(Protocol):
    """Makes a conversation's summary from the one before and the messages that follow it. Blocking, thread-safe."""

    def fold(
        self, before: Summary | None, messages: Sequence[Message], words: int, tokens: int, deadline: Deadline
    ) -> Folded:
        """The summary of all that `before` covers and of `messages`, in at most so many words and tokens.

        Raises: DeadlineExceeded, Cancelled.
        """
        ...
