"""Which language model writes summaries and finds facts, and how much of its time and words that may take."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import BeforeValidator, Field, SecretStr

from agora.config.sections import Seconds, Section, Whole, lower, number, secret


def _given(value: object) -> object:
    return None if isinstance(value, str) and not value.strip() else value


class ModelSettings(Section):
    """A language model for summaries and facts. Without one, rules do both (docs/models.md)."""

    adapter: Annotated[Literal["none", "openai", "anthropic"], BeforeValidator(lower)] = Field(
        default="none",
        description="Whose protocol the language model speaks: `openai` for every compatible server (needs the extra"
        " `openai`), `anthropic` (needs the extra `anthropic`), `none` for rules alone.",
    )
    url: Annotated[str | None, BeforeValidator(_given)] = Field(
        default=None,
        description="Where the model is, as in `http://localhost:11434/v1`. `anthropic` alone has a default: its own.",
    )
    key: Annotated[SecretStr | None, BeforeValidator(secret)] = Field(
        default=None, description="Key that the server asks for."
    )
    summary_model: Annotated[str | None, BeforeValidator(_given)] = Field(
        default=None, description="Model that writes summaries of conversations; none for the extractive rules."
    )
    extraction_model: Annotated[str | None, BeforeValidator(_given)] = Field(
        default=None, description="Model that finds facts in texts; none for the patterns."
    )
    timeout: Seconds = Field(default=30.0, le=600, description="Seconds that one request to the model may take.")
    max_tokens: Whole = Field(
        default=2_048,
        ge=64,
        le=200_000,
        description="Tokens that a model may write for one answer, with those that it thinks in.",
    )
    retries: Whole = Field(
        default=2, ge=0, le=20, description="Times that a request is repeated when the server is busy or out of reach."
    )
    temperature: Annotated[
        Annotated[float, Field(ge=0, le=2, allow_inf_nan=False)] | Literal["default"],
        BeforeValidator(number),
        BeforeValidator(lower),
    ] = Field(
        default=0.0,
        description="How much chance there is in the answers; `default` for models that let nobody choose.",
    )
    json_mode: Annotated[Literal["schema", "object"], BeforeValidator(lower)] = Field(
        default="schema",
        description="How an `openai` server is told to answer in JSON: by a `schema`, or as any `object` where it knows"
        " no more.",
    )
    token_parameter: Annotated[Literal["max_tokens", "max_completion_tokens"] | None, BeforeValidator(lower)] = Field(
        default=None,
        description="What an `openai` server calls the limit of tokens; by default as OpenAI itself or all others do.",
    )
    extract_from_conversations: bool = Field(
        default=False,
        description="Whether facts are taken from what users say in conversations, by `extraction_model` or by rules.",
    )
