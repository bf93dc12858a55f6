from __future__ import annotations

import os
from hashlib import blake2b
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from agora.suspicion.rule import Reason

_MOST = 8_192
"""Texts whose answer is remembered: some 2 MB."""

_KEY = os.urandom(16)
_known: dict[bytes, tuple[Reason, ...]] = {}


def known_reasons(text: str) -> tuple[Reason, ...]:
    """As `reasons`, at once for a text that this process has judged before.

    Nothing of the text is kept, and what is kept cannot be tested against a guessed text outside this process.
    """
    mark = blake2b(text.encode("utf-8", "surrogatepass"), digest_size=16, key=_KEY).digest()
    found = _known.get(mark)
    if found is None:
        from agora.suspicion.flags import reasons  # noqa: PLC0415 - a server that starts has no use for it

        found = reasons(text)
        if len(_known) >= _MOST:
            # All at once: it happens once in thousands of texts, and needs neither an order nor a lock.
            _known.clear()
        _known[mark] = found
    return found
