from __future__ import annotations

import re
from collections.abc import Sequence

from agora.text.identity import near_duplicates, slots
from agora.text.normal import folded

_SHARE = 0.6
"""Of a text's word triples: from here on it repeats the other."""

_COMMON = 0.8
"""Of the words of both: with less, two texts are no near-duplicates, which share nine tenths."""

_READ = 20_000
"""Characters of a text that are compared."""

_WORD = re.compile(r"\w+")


class Echo:
    """A text that may repeat what its writer has read."""

    def __init__(self, text: str) -> None:
        self._text = text[:_READ]
        self._words = _words(self._text)
        self._triples = _triples(self._words)
        self._slots = slots(self._text)

    def share(self, source: str) -> float:
        """How much of this text comes from `source`, in [0, 1]; 0 if it does not repeat it.

        It repeats it if at least three fifths of its word triples stand there, or if the two are near-duplicates
        (`agora.text.identity`). A text that has a number, a name or a negation in the place of another one is a
        correction: it repeats nothing, however much of the wording it keeps.
        """
        source = source[:_READ]
        words = _words(source)
        share = len(self._triples & _triples(words)) / len(self._triples) if self._triples else 0.0
        if share >= _SHARE:
            others = slots(source)
            # A quotation of a part has no slot of its own; a rewording with more detail lacks none.
            return share if self._slots <= others or others <= self._slots else 0.0
        mine, theirs = frozenset(self._words), frozenset(words)
        # Comparing slots costs far more than this, and few texts are as near as that.
        near = len(mine & theirs) >= _COMMON * len(mine | theirs)
        return _SHARE if near and near_duplicates(self._text, source) else 0.0


def _words(text: str) -> list[str]:
    return _WORD.findall(folded(text))


def _triples(words: Sequence[str]) -> frozenset[tuple[str, ...]]:
    return frozenset(zip(words, words[1:], words[2:], strict=False))
