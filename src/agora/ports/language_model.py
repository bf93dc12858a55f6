from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Protocol

from agora.model.deadline import Deadline


@dataclass(frozen=True, slots=True)
class Asked:
    """One request: what the model is told to do, the text it does it with, and how much it may answer.

    `schema`: the answer is to be a JSON object of this JSON schema; without one it is plain text.
    """

    instructions: str
    text: str
    max_tokens: int
    schema: Mapping[str, Any] | None = None


@dataclass(frozen=True, slots=True)
class Completed:
    """What a model answered, whole: one that was cut off is an error. `value` is it as JSON, if a schema asked."""

    text: str
    value: Any
    model: str
    input_tokens: int
    output_tokens: int


class LanguageModel(Protocol):
    """A language model that somebody serves. Blocking, safe to share between threads."""

    @property
    def name(self) -> str:
        """Adapter, model and server, as provenance and status name it: `openai:llama3.2@localhost`."""
        ...

    def complete(self, asked: Asked, deadline: Deadline) -> Completed:
        """The model's answer. Tried again with growing waits where that can help, within the deadline.

        Raises: ModelUnavailable if it cannot be reached, refuses, or answers too late; ModelAnswerUnusable if what
        came is cut off, empty, or not what the schema asks for; DeadlineExceeded, Cancelled.
        """
        ...

    def details(self) -> dict[str, Any]:
        """Name, calls, failures, tokens in and out, the last error: as plain data."""
        ...

    def close(self) -> None:
        """Let its connections go."""
        ...
