from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Literal

from agora.model.note import Note

Mode = Literal["hybrid", "semantic", "lexical"]


@dataclass(frozen=True, slots=True)
class Filter:
    """Conditions that a note must meet before it is ranked. Empty means no condition.

    `tags`: all of them; `agents`, `kinds`: any of them; `metadata`: equal values of top-level keys;
    `since` <= time < `until`, where time is `occurred_at`, else `created_at`.
    """

    namespaces: tuple[str, ...]
    tags: tuple[str, ...] = ()
    agents: tuple[str, ...] = ()
    kinds: tuple[str, ...] = ()
    metadata: Mapping[str, Any] = field(default_factory=dict)
    since: datetime | None = None
    until: datetime | None = None

    def narrows(self) -> bool:
        """Whether there is any condition beside the namespaces."""
        return bool(self.tags or self.agents or self.kinds or self.metadata or self.since or self.until)


@dataclass(frozen=True, slots=True)
class Query:
    """One question to the notes: validated, times absolute."""

    text: str
    filter: Filter
    top_k: int = 5
    mode: Mode = "hybrid"
    min_score: float | None = None
    max_tokens: int | None = None


@dataclass(frozen=True, slots=True)
class Hit:
    """A note that answers a query.

    `score` is in [0, 1] and means the same for every query. `content` is the whole text, or the part
    around the best passage when `cut` is true; `tokens` is what the whole text would cost. `similar`
    holds ids of near-copies that were folded into this hit. `parts` names every part of the score.
    """

    note: Note
    score: float
    content: str
    cut: bool
    tokens: int
    similar: tuple[str, ...] = ()
    parts: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Answer:
    """Hits, best first, and what was left out: `omitted` counts candidates cut by top_k or max_tokens.

    `cached` names the level of the cache that held it, None if it was found anew. `sequence`, here and in every answer:
    None for a caller who may not see everything, since it counts the changes of all namespaces.
    """

    hits: tuple[Hit, ...]
    omitted: int
    namespaces: tuple[str, ...]
    sequence: int | None
    mode: Mode
    cached: Literal["L1", "L2"] | None = None
