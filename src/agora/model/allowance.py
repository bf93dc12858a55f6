from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Allowance:
    """What one writer may save: `saves` in an hour, and `size` bytes of texts in all; None is no limit."""

    saves: int | None = None
    size: int | None = None


@dataclass(frozen=True, slots=True)
class Allowances:
    """What each agent may save, and all agents together in each namespace."""

    agent: Allowance = Allowance()
    namespace: Allowance = Allowance()
