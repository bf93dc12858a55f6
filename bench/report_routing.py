"""The tables of what a request is routed to."""

from __future__ import annotations

from typing import Any

Figures = dict[str, Any]
Rows = list[tuple[str, ...]]

_SYSTEMS = {"agora": "Agora", "words": "Agora, words alone", "linear": "linear mix", "cosine": "cosine", "bm25": "BM25"}
_RANKED = (
    "livemcpbench, tasks",
    "livemcpbench, steps",
    "livemcpbench, both",
    "livemcpbench, tasks in the pool",
    "metatool, one plugin",
    "metatool, two plugins",
    "bfcl, a function fits",
)


def ranks(figures: Figures) -> tuple[tuple[str, ...], Rows]:
    """Head and rows: how often the right server is the first and among five, and a right tool among five."""
    rows = []
    for name in _RANKED:
        found = figures["sets"][name]
        cells = [
            f"{row['server top-1']:.3f} / {row['server top-5']:.3f} / {row['tool any@5']:.3f}"
            for row in (found["systems"][system] for system in _SYSTEMS)
        ]
        rows.append((f"{name} ({found['requests']})", *cells))
    return ("server top-1 / top-5 / tool any@5 (requests)", *_SYSTEMS.values()), rows


def calls(figures: Figures) -> tuple[tuple[str, ...], Rows]:
    """Head and rows: what is called by the request alone, as shares of all requests."""
    rows = []
    for name, found in figures["sets"].items():
        agora, cosine = found["systems"]["agora"], found["systems"]["cosine"]
        rows.append(
            (
                name,
                *(f"{agora[f'right, {kind}']:.3f} / {agora[f'wrong, {kind}']:.3f}" for kind in ("read", "write")),
                f"{cosine['right']:.3f} / {cosine['wrong']:.3f}",
            )
        )
    return ("called right / wrong", "reading calls", "writing calls", "plain cosine from 0.5"), rows


def goals(figures: Figures) -> tuple[tuple[str, ...], Rows]:
    """Head and rows of the figures that had a goal."""
    return (
        ("routing by meaning", "found", "wanted"),
        [(name, f"{row['found']:g}", f"{row['wanted']:g}") for name, row in figures["summary"].items()],
    )
