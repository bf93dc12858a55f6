"""Where a text may be cut for a model whose tokenizer nobody knows: rather too many tokens than too few."""

from __future__ import annotations

import re
from collections.abc import Callable

from agora.embedding.splitting import WHOLE

_TOKEN = re.compile(r"[A-Za-z]{1,3}|[^\sA-Za-z]")
"""Three Latin letters, or one of anything else that is no blank.

Tokenizers in use make one token of four to five letters of English prose, of about three in code, of one or two
digits, and of one to two characters of Cyrillic or Chinese."""

_WIDE = "\u2e80"
"""From here on (Chinese, Japanese, Korean, emoji) a character may be several tokens: it counts as two."""


def pieces(max_tokens: int) -> tuple[Callable[[str], list[tuple[int, int]]], int]:
    """What `splitting.split` needs for passages of at most `max_tokens`: the offsets of pieces, and how many fit.

    A piece stands for one token, or for several where more of them fit than `split` puts into a passage.
    """
    step = max(1, max_tokens // WHOLE)

    def offsets(text: str) -> list[tuple[int, int]]:
        found: list[tuple[int, int]] = []
        for match in _TOKEN.finditer(text):
            found.extend([match.span()] * (2 if match[0] >= _WIDE else 1))
        return found[::step]

    return offsets, min(WHOLE, max_tokens // step)
