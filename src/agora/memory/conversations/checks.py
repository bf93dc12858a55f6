from __future__ import annotations

from dataclasses import dataclass
from typing import get_args

from agora.errors import InvalidInput, PayloadTooLarge
from agora.memory.conversations.folding import Room
from agora.model.message import MessageDraft, Role, Strategy
from agora.text.tokens import cost

ROLES: tuple[Role, ...] = get_args(Role)
STRATEGIES: tuple[Strategy, ...] = get_args(Strategy)

NAME = 200
"""Characters of a conversation's name and of a speaker's, at the most."""

CONTEXT_TOKENS = 1_000_000
"""What a context may be asked to have at the most."""


@dataclass(frozen=True, slots=True)
class Limits:
    """What one message may have, and how long the models may take for one, in seconds."""

    content_bytes: int = 100_000
    query_chars: int = 20_000
    model_seconds: float = 20.0
    append_seconds: float = 5.0
    gather_seconds: float = 15.0


def check_draft(draft: MessageDraft, strategy: Strategy | None, limits: Limits) -> None:
    """Return if it can be appended.

    Raises: InvalidInput, PayloadTooLarge.
    """
    check_name("session", draft.session)
    if draft.speaker is not None:
        check_name("speaker", draft.speaker)
    if draft.role not in ROLES:
        raise InvalidInput("role", f"must be one of {', '.join(ROLES)}", draft.role)
    _check_strategy(strategy)
    if not draft.content.strip():
        raise InvalidInput("content", "must not be blank", draft.content)
    if (size := len(draft.content.encode())) > limits.content_bytes:
        raise PayloadTooLarge(
            "content",
            f"must have at most {limits.content_bytes} bytes, it has {size}",
            draft.content,
            hint="Append what matters of it; limits.content_bytes raises the limit.",
        )


def check_asked(max_tokens: int, query: str | None, strategy: Strategy | None, limits: Limits) -> None:
    """Return if there can be such a context.

    Raises: InvalidInput, PayloadTooLarge.
    """
    if not 1 <= max_tokens <= CONTEXT_TOKENS:
        raise InvalidInput("max_tokens", f"must be between 1 and {CONTEXT_TOKENS:,}", max_tokens)
    if query is not None and len(query) > limits.query_chars:
        raise PayloadTooLarge(
            "query",
            f"must have at most {limits.query_chars} characters, it has {len(query)}",
            query,
            hint="Ask in a sentence or a few words.",
        )
    _check_strategy(strategy)


def check_name(param: str, name: str) -> None:
    """Return if a conversation or a speaker can be called so.

    Raises: InvalidInput.
    """
    if not 1 <= len(name) <= NAME or not name.isprintable() or not name.strip():
        raise InvalidInput(param, f"must be 1 to {NAME} printable characters on one line", name)


def check_summary(text: str, room: Room) -> None:
    """Return if a summary may be so long.

    Raises: InvalidInput.
    """
    if not text:
        raise InvalidInput("summary", "must not be blank", text)
    words, size = len(text.split()), cost(text)
    if words > room.words or size > room.tokens:
        reason = f"must have at most {room.words} words and {room.tokens} tokens, it has {words} and {size}"
        raise InvalidInput("summary", reason, text)


def _check_strategy(strategy: Strategy | None) -> None:
    if strategy is not None and strategy not in STRATEGIES:
        raise InvalidInput("strategy", f"must be one of {', '.join(STRATEGIES)}", strategy)
