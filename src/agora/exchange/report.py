from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from typing import Any

from agora.exchange.events import Broken
from agora.ports.transfer import Outcome, Version

_LISTED = 10_000
"""Duplicates, conflicts and broken lines that are kept by name; beyond it they are only counted."""

_FIRST = 20
_OPENING = 80
_FATES = ("created", "updated", "history", "contested", "duplicate", "conflict")


@dataclass(slots=True)
class Report:
    """What an import of one file did, or would do in a dry run."""

    file: str
    format: str
    dry_run: bool
    counts: Counter[str] = field(default_factory=Counter)
    left_out: Counter[str] = field(default_factory=Counter)
    redacted: Counter[str] = field(default_factory=Counter)
    """Secrets that were replaced by labels, by kind."""
    first: list[dict[str, Any]] = field(default_factory=list)
    duplicates: list[dict[str, Any]] = field(default_factory=list)
    conflicts: list[dict[str, Any]] = field(default_factory=list)
    broken: list[dict[str, Any]] = field(default_factory=list)
    problems: list[str] = field(default_factory=list)
    lowered: int = 0
    """Savers whose origin was lowered to that of whoever imports."""

    @property
    def whole(self) -> bool:
        """Whether everything in the file could be read."""
        return not self.counts["broken"] and not self.problems

    def took(self, version: Version, outcome: Outcome) -> None:
        """Count one version."""
        self.counts[outcome.fate] += 1
        if len(self.first) < _FIRST:
            self.first.append(_row(version, outcome))
        told = {"id": version.id, "namespace": version.namespace, "key": version.key, "kept": outcome.other}
        told["reason"] = outcome.reason
        if outcome.fate == "duplicate" and len(self.duplicates) < _LISTED:
            self.duplicates.append(_filled(told))
        if outcome.fate == "conflict" and len(self.conflicts) < _LISTED:
            self.conflicts.append(_filled(told))

    def missed(self, broken: Broken) -> None:
        """Count something that could not be read."""
        self.counts["broken"] += 1
        if len(self.broken) < _LISTED:
            self.broken.append({"place": broken.place, "reason": broken.reason})

    def as_data(self) -> dict[str, Any]:
        """The report as plain data."""
        return {
            "file": self.file,
            "format": self.format,
            "dry_run": self.dry_run,
            "whole": self.whole,
            "problems": self.problems,
            "counts": {fate: self.counts[fate] for fate in (*_FATES, "broken")},
            "left_out": dict(sorted(self.left_out.items())),
            "redacted": dict(sorted(self.redacted.items())),
            "lowered": self.lowered,
            "first": self.first,
            "duplicates": self.duplicates,
            "conflicts": self.conflicts,
            "broken": self.broken,
        }


def _row(version: Version, outcome: Outcome) -> dict[str, Any]:
    at = version.occurred_at or version.created_at
    opening = " ".join((version.content or "")[: 4 * _OPENING].split())
    return _filled(
        {
            "fate": outcome.fate,
            "id": version.id,
            "namespace": version.namespace,
            "kind": version.kind,
            "key": version.key,
            "agent": version.savers[0].agent if version.savers else None,
            "at": at.isoformat().replace("+00:00", "Z"),
            "title": version.title,
            "opening": opening if len(opening) <= _OPENING else opening[: _OPENING - 1] + "…",
        }
    )


def _filled(fields: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in fields.items() if value is not None}
