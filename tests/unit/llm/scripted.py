"""A language model that answers as it is told, and rules that only say that they were asked."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any

from agora.model.deadline import Deadline
from agora.model.fact import Extracted
from agora.model.message import Message, Role, Summary
from agora.ports.extractor import Extraction
from agora.ports.language_model import Asked, Completed
from agora.ports.summarizer import Folded

AT = datetime(2026, 11, 30, 12, tzinfo=UTC)
NAME = "openai:words@localhost"


class ScriptedModel:
    """Gives `answer` to every request, or raises it; a function is called with request and deadline."""

    name = NAME

    def __init__(self, answer: Any) -> None:
        self.answer = answer
        self.asked: list[Asked] = []

    def complete(self, asked: Asked, deadline: Deadline) -> Completed:
        self.asked.append(asked)
        answer = self.answer(asked, deadline) if callable(self.answer) else self.answer
        if isinstance(answer, Exception):
            raise answer
        return Completed(answer if isinstance(answer, str) else "", answer, "words", 10, 5)

    def details(self) -> dict[str, Any]:
        return {}

    def close(self) -> None:
        """There is nothing to let go."""


class Rules:
    """What a summary and facts by rules are in these tests."""

    def fold(self, before: Summary | None, messages: Any, words: int, tokens: int, deadline: Deadline) -> Folded:
        del before, words, tokens
        deadline.check()
        return Folded(f"rules: {len(messages)} messages", "extractive")

    def extract(self, text: str, deadline: Deadline) -> Extraction:
        deadline.check()
        return Extraction((Extracted(None, "by_rules", "yes", text),), "patterns")


def message(content: str, seq: int = 1, role: Role = "user", speaker: str | None = None) -> Message:
    return Message(
        id=f"m_{seq}",
        row=seq,
        namespace="project",
        session="s",
        seq=seq,
        role=role,
        speaker=speaker,
        content=content,
        occurred_at=AT,
        created_at=AT,
        metadata={},
        agent="somebody",
        origin="agent",
    )


def summary(text: str) -> Summary:
    return Summary(text, 1, 6, 1, "extractive", AT)


def until_over(limit: float) -> Callable[[Asked, Deadline], str]:
    """Answers only when the time of its own is over, which must be less than `limit` seconds."""

    def wait(asked: Asked, deadline: Deadline) -> str:
        del asked
        assert deadline.remaining() < limit
        while True:
            deadline.check()

    return wait
