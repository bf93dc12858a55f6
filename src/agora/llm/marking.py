"""Texts of others on their way to a model: between marks that nobody could know when they were written."""

from __future__ import annotations

import secrets

LONGEST = 100_000
"""Characters of one request at most: about 25,000 tokens of English, which most models in use read at once."""


def mark_beside(text: str) -> str:
    """A new random mark that does not occur in `text`."""
    while (mark := f"data-{secrets.token_hex(8)}") in text:
        pass
    return mark


def marked(text: str, mark: str) -> str:
    """`text` between `mark` and its end."""
    return f"[{mark}]\n{text}\n[/{mark}]"
