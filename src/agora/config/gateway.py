"""How calls find their way to other MCP servers."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import BeforeValidator, Field

from agora.config.sections import Seconds, Section, Whole, lower, number


def _listed(value: object) -> object:
    return [part.strip() for part in value.split(",") if part.strip()] if isinstance(value, str) else value


Share = Annotated[float, BeforeValidator(number), Field(ge=0, le=2, allow_inf_nan=False)]


class GatewaySettings(Section):
    """The tools of other MCP servers: docs/gateway.md."""

    mode: Annotated[Literal["margin", "semantic"], BeforeValidator(lower)] = Field(
        default="margin",
        description="How an intent finds its tool: `margin`, the hybrid score and its lead over the next server, or"
        " `semantic`, the likeness of meaning alone.",
    )
    read_threshold: Share = Field(
        default=0.50, description="Score with margin from which on a reading call is made by intent alone."
    )
    write_threshold: Share = Field(default=0.60, description="The same for a call that may change something.")
    semantic_threshold: Share = Field(default=0.50, description="Least cosine of a route in the mode `semantic`.")
    expose: Annotated[tuple[str, ...], BeforeValidator(_listed)] = Field(
        default=(), description="Backends whose tools clients see as their own, as in `github__search_issues`."
    )
    result_bytes: Whole = Field(
        default=50_000,
        ge=1_000,
        le=10_000_000,
        description="Longest result of a backend that is answered whole; the rest is kept for agora_get.",
    )
    result_hours: Seconds = Field(default=24.0, le=8_760, description="Hours that the rest of a long result is kept.")
