"""The tables of what the protocol layer and the shared server cost, and of the conformance suite."""

from __future__ import annotations

from typing import Any

Figures = dict[str, Any]
Rows = list[tuple[str, ...]]


def cost(figures: Figures) -> tuple[tuple[str, ...], Rows]:
    """Head and rows of `protocol.json`."""
    calls, starts = figures["medians"]["cpu_ms_per_call"], figures["medians"]["start_to_list_seconds"]
    listed = {name: f"{1000 * seconds:.0f} ms" for name, seconds in starts.items()}
    return (
        ("over stdio, median", "the SDK's bare low-level server", "Agora"),
        [
            ("a tool that does nothing", f"{calls['sdk']:.2f} ms CPU", f"{calls['protocol']:.2f} ms CPU"),
            ("start to `tools/list`, a server of its own", listed["sdk"], listed["agora"]),
        ],
    )


def conformance(figures: Figures) -> tuple[tuple[str, ...], Rows]:
    """Head and rows of `conformance.json`."""
    return (
        (f"{figures['suite']}", "checks passed", "failed", "of these about Tasks, which Agora does not offer"),
        [
            (
                revision,
                str(found["passed"]),
                str(found["failed"]),
                str(found["failed_of_tasks"]),
            )
            for revision, found in figures["revisions"].items()
        ],
    )


def beside_goals(title: str, figures: Figures) -> tuple[tuple[str, ...], Rows]:
    """Head and rows of `start.json` and `fleet.json`: each figure beside what it should be at most."""
    return (
        (title, "found", "wanted, at most"),
        [
            (name, f"{row['found']:g}", "" if row["wanted"] is None else f"{row['wanted']:g}")
            for name, row in figures["summary"].items()
        ],
    )
