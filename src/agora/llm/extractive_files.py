"""The paths and identifiers that a conversation names, with the messages that name them."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

from agora.llm.extractive_choosing import Budget
from agora.llm.extractive_lines import file_line
from agora.llm.extractive_pieces import HEAD, Source
from agora.text.anchors import anchors

LONGEST = 120
"""Characters of a name that is listed."""

NEVER = frozenset({"error", "symbol"})
"""Kinds of anchor that are no files: errors are quoted, symbols are too many."""

ROLES = {"user": 2.0, "assistant": 1.0, "tool": 0.7, "system": 0.5}

_MAY_NAME = re.compile(r"[\\/]\w|\w\.[A-Za-z]|#\d|[A-Z]-\d|\b[0-9a-f]{7,40}\b|file\b")
"""What a text has that names anything; most prose has none of it."""


def files_named(before: Mapping[str, Sequence[int]], sources: Sequence[Source], budget: Budget) -> list[str]:
    """Lines for the names that were said most and last, within the budget, in the order of their first mention."""
    named: dict[str, list[int]] = {name: list(seqs) for name, seqs in before.items()}
    weight: dict[str, float] = {name: 0.5 + len(seqs) for name, seqs in before.items()}
    for source in sources:
        text = source.text[:HEAD]
        if source.seq is None or not _MAY_NAME.search(text):
            continue
        for name in dict.fromkeys(_listable(text)):
            seqs = named.setdefault(name, [])
            if source.seq not in seqs:
                seqs.append(source.seq)
                weight[name] = weight.get(name, 0.0) + ROLES[source.role]
    lines: dict[str, str] = {}
    for name in sorted(named, key=lambda name: (-weight[name], -max(named[name]), name)):
        line = file_line(name, sorted(named[name]))
        words, size = len(line.split()), len(line.encode()) + 1
        # The heading is a word too.
        if budget.holds(words + (not lines), size + (0 if lines else len("\nFiles:"))):
            budget.spend(words + (not lines), size + (0 if lines else len("\nFiles:")))
            lines[name] = line
    return [lines[name] for name in sorted(lines, key=lambda name: (min(named[name]), name))]


def _listable(text: str) -> list[str]:
    return [
        anchor.value
        for anchor in anchors(text)
        if anchor.kind not in NEVER and len(anchor.value) <= LONGEST and not any(map(str.isspace, anchor.value))
    ]
