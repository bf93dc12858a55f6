"""How the profile of facts is written."""

from __future__ import annotations

from pydantic import Field

from agora.config.sections import Section, Whole


class FactSettings(Section):
    """What is known of somebody or something, as a block for a system prompt: docs/facts.md."""

    heading: str = Field(
        default="What you know about {subject}:",
        min_length=1,
        max_length=500,
        description="First line of a profile; `{subject}` stands for whom it is about, `this user` for the subject"
        " `user`.",
    )
    heading_many: str = Field(
        default="What you know:",
        min_length=1,
        max_length=500,
        description="First line of a profile of several subjects.",
    )
    profile_tokens: Whole = Field(
        default=1_000,
        ge=50,
        le=50_000,
        description="Tokens of 4 bytes that a profile may have; of what a `recall` may tell it gets at most half.",
    )
