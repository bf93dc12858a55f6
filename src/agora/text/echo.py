from __future__ import annotations

import re
from collections.abc import Sequence

from agora.text.identity import near_duplicates, slots
from agora.text.normal import folded

_SHARE = 0.6
"""Of a text's word triples: from here on it repeats the other."""

_READ = 20_000
"""Characters of a text that are compared."""

_WORD = re.compile(r"\w+")


class Echo:
    """A text that may repeat what its writer has read."""

    def __init__(self, text: str) -> None:
        self._text = text[:_READ]
        self._triples = _triples(self._text)
        self._slots = slots(self._text)

    def share(self, source: str) -> float:
        """How much of this text comes from `source`, in [0, 1]; 0 if it does not repeat it.

        It repeats it if at least three fifths of its word triples stand there, or if the two are near-duplicates
        (`agora.text.identity`). A text that has a number, a name or a negation in the place of another one is a
        correction: it repeats nothing, however much of the wording it keeps.
        """
        source = source[:_READ]
        share = len(self._triples & _triples(source)) / len(self._triples) if self._triples else 0.0
        if share >= _SHARE:
            theirs = slots(source)
            # A quotation of a part has no slot of its own; a rewording with more detail lacks none.
            return share if self._slots <= theirs or theirs <= self._slots else 0.0
        return _SHARE if near_duplicates(self._text, source) else 0.0


def _triples(text: str) -> frozenset[tuple[str, ...]]:
    words: Sequence[str] = _WORD.findall(folded(text))
    return frozenset(zip(words, words[1:], words[2:], strict=False))
