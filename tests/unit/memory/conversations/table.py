"""A conversation memory on a real store, with a summarizer whose work can be told in advance."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from datetime import timedelta
from typing import Any

from tests.conftest import PATIENCE, Desk

from agora.errors import ModelUnavailable
from agora.memory.conversations.checks import Limits
from agora.memory.conversations.service import ConversationMemory
from agora.model.caller import Caller
from agora.model.conversation import Context, Kept
from agora.model.deadline import Deadline
from agora.model.message import Message, MessageDraft, Role, Summary
from agora.ports.summarizer import Folded
from agora.testing import SilentLog


class FirstWords:
    """Summarises each message by its first three words."""

    def __init__(self) -> None:
        self.folded: list[tuple[int, int]] = []
        self.fails = False
        self.between: Callable[[], object] = lambda: None

    def fold(
        self, before: Summary | None, messages: Sequence[Message], words: int, tokens: int, deadline: Deadline
    ) -> Folded:
        """The old text, and a line for each message; only the newest lines if that is too much."""
        del tokens, deadline
        if self.fails:
            raise ModelUnavailable("no model here")
        self.between()
        self.folded.append((messages[0].seq, messages[-1].seq))
        lines = [] if before is None else before.text.splitlines()
        lines += [f"#{each.seq} {' '.join(each.content.split()[:3])}" for each in messages]
        return Folded("\n".join(lines[-words // 5 :]), "extractive")


def invented_numbers(text: str, sources: Sequence[str], covers: tuple[int, int]) -> list[str]:
    """Numbers of `text` that are in none of `sources`, nor are the ends of the range."""
    known = {*re.findall(r"\d+", " ".join(sources)), *map(str, covers)}
    return [each for each in re.findall(r"\d+", text) if each not in known]


class Table:
    """Somebody at a desk who talks; a message a minute."""

    def __init__(self, desk: Desk, encoder: Any = None, **settings: Any) -> None:
        self.desk = desk
        self.summarizer = FirstWords()
        store = desk.store.conversations()
        self.memory = ConversationMemory(
            lambda _: store,
            encoder or desk.encoder,
            desk.clock,
            SilentLog(),
            self.summarizer,
            invented_numbers,
            **settings,
        )

    def say(
        self,
        content: str,
        session: str = "talk",
        role: Role = "user",
        *,
        caller: Caller | None = None,
        namespace: str = "p",
        strategy: Any = None,
        **fields: Any,
    ) -> Kept:
        """Append a message, a minute after the last."""
        self.desk.clock.advance(minutes=1)
        draft = MessageDraft(namespace, session, role, content, **fields)
        return self.memory.append(draft, caller or self.desk.caller(), Deadline(PATIENCE), strategy=strategy)

    def say_many(self, number: int, session: str = "talk", text: str = "word of message {}") -> list[Kept]:
        """As many messages, numbered from 1."""
        return [self.say(text.format(n), session) for n in range(1, number + 1)]

    def context(
        self,
        max_tokens: int = 2_000,
        query: str | None = None,
        session: str = "talk",
        *,
        caller: Caller | None = None,
        **asked: Any,
    ) -> Context:
        """The context of a conversation."""
        who = caller or self.desk.caller()
        return self.memory.context("p", session, max_tokens, query, who, Deadline(PATIENCE), **asked)

    def summarize(self, token: str, text: str, caller: Caller | None = None) -> Summary:
        """Replace the summary."""
        return self.memory.summarize(token, text, caller or self.desk.caller(), Deadline(PATIENCE))

    def summary(self, session: str = "talk") -> Summary | None:
        """The summary as the store has it."""
        with self.desk.store.conversations().read(Deadline(PATIENCE)) as reading:
            return reading.summary("p", session)

    def messages(self, session: str = "talk") -> tuple[Message, ...]:
        """All messages as the store has them."""
        with self.desk.store.conversations().read(Deadline(PATIENCE)) as reading:
            return reading.messages("p", session, 1, reading.count("p", session))


__all__ = ["Limits", "Table", "timedelta"]
