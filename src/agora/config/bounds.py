"""What one call, one agent and one namespace may do, and what of a text must not come in."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import BeforeValidator, Field, field_validator

from agora.config.patterns import LONGEST, MOST, fault
from agora.config.sections import Seconds, Section, Whole, lower


def _patterns(value: object) -> object:
    # Of the environment one text: a pattern may hold a comma, and no secret holds a blank.
    return value.split() if isinstance(value, str) else value


class LimitSettings(Section):
    """What one call may ask for."""

    content_bytes: Whole = Field(
        default=131_072, ge=1_000, le=100_000_000, description="Longest text of a note, in bytes of UTF-8."
    )
    query_chars: Whole = Field(default=10_000, ge=100, le=10_000_000, description="Longest query, in characters.")
    call_seconds: Seconds = Field(default=60.0, le=3_600, description="Seconds after which a call is stopped.")
    line_bytes: Whole = Field(
        default=16 * 1024 * 1024,
        ge=65_536,
        le=1024 * 1024 * 1024,
        description="Longest line that `agora serve` reads, in bytes.",
    )


class QuotaSettings(Section):
    """What one agent, and all agents in one namespace, may save: far beyond honest use, and short of a full disk."""

    agent_saves: Whole = Field(
        default=20_000,
        ge=0,
        le=1_000_000_000,
        description="Saves of one agent, or token, in an hour; 0 is no limit.",
    )
    namespace_saves: Whole = Field(
        default=100_000, ge=0, le=1_000_000_000, description="Saves into one namespace in an hour; 0 is no limit."
    )
    agent_mb: Whole = Field(
        default=1_024,
        ge=0,
        le=1_000_000_000,
        description="Megabytes of texts that one agent, or token, was the first to save; 0 is no limit.",
    )
    namespace_mb: Whole = Field(
        default=4_096, ge=0, le=1_000_000_000, description="Megabytes of texts in one namespace; 0 is no limit."
    )


class RedactionSettings(Section):
    """What becomes of passwords, keys and tokens in what is saved or asked (docs/redaction.md)."""

    mode: Annotated[Literal["redact", "refuse", "off"], BeforeValidator(lower)] = Field(
        default="redact",
        description="`redact` puts a label in the place of a secret, `refuse` refuses the call, `off` lets all pass.",
    )
    allow: Annotated[tuple[str, ...], BeforeValidator(_patterns)] = Field(
        default=(),
        max_length=MOST,
        description="Regular expressions, apart by blanks; a secret that one of them matches as a whole stays.",
    )

    @field_validator("allow")
    @classmethod
    def _usable(cls, value: tuple[str, ...]) -> tuple[str, ...]:
        for pattern in value:
            if why := fault(pattern):
                raise ValueError(f"{pattern[:LONGEST]!r} cannot be used: {why}")
        return value
