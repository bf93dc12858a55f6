"""The table of what summaries keep."""

from __future__ import annotations

from typing import Any

Figures = dict[str, Any]

_SYSTEMS = ("extractive", "first", "last", "random")
_KINDS = {"terms": "names, numbers, dates, paths", "answers": "words of the answers"}


def kept(figures: Figures) -> tuple[tuple[str, ...], list[tuple[str, ...]]]:
    """Head and rows: the share kept by each, and how much more than random sentences, over all windows."""
    rows = []
    for name, found in figures["sets"].items():
        for kind, words in _KINDS.items():
            row = found[kind]
            count, gain, low, high = row["over random, all windows"]
            cells = (f"{row[system]:.3f}" for system in _SYSTEMS)
            rows.append((f"{name}: {words}", *cells, f"{gain:+.3f} ({low:+.3f} to {high:+.3f}), {count}"))
    head = ("share kept, median of conversations", *_SYSTEMS, "over random, 95 of 100, windows")
    return head, rows
