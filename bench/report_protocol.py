"""The tables of what the protocol layer costs and of the conformance suite."""

from __future__ import annotations

from typing import Any

Figures = dict[str, Any]
Rows = list[tuple[str, ...]]


def cost(figures: Figures) -> tuple[tuple[str, ...], Rows]:
    """Head and rows of `protocol.json`."""
    calls, starts = figures["medians"]["cpu_ms_per_call"], figures["medians"]["start_to_list_seconds"]
    return (
        ("over stdio, median", "the SDK's bare low-level server", "Agora"),
        [
            ("a tool that does nothing", f"{calls['sdk']:.2f} ms CPU", f"{calls['protocol']:.2f} ms CPU"),
            ("start to `tools/list`", f"{1000 * starts['sdk']:.0f} ms", f"{1000 * starts['agora']:.0f} ms"),
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
