"""When conversations are summarised, how long a summary may be, and what a context is made of."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import BeforeValidator, Field

from agora.config.sections import Section, Whole, lower


class ConversationSettings(Section):
    """Conversations: messages kept verbatim, and a rolling summary of the older ones (docs/conversations.md)."""

    fold_messages: Whole = Field(
        default=12,
        ge=6,
        le=1_000,
        description="Messages beyond the summary above which the older half of them goes into it.",
    )
    fold_tokens: Whole = Field(
        default=3_000,
        ge=200,
        le=1_000_000,
        description="Tokens of 4 bytes that these messages may have together before that happens.",
    )
    summary_words: Whole = Field(default=200, ge=30, le=5_000, description="Words that a summary may have.")
    summary_tokens: Whole = Field(
        default=512, ge=100, le=20_000, description="Tokens of 4 bytes that a summary may have."
    )
    strategy: Annotated[Literal["buffer", "summary", "facts", "semantic", "all"], BeforeValidator(lower)] = Field(
        default="all",
        description="What the context of a conversation is made of for which nothing was chosen: `buffer`, `summary`,"
        " `facts`, `semantic`, or `all`.",
    )
