from __future__ import annotations

import hashlib
import os
import re
import threading
from collections.abc import Callable
from typing import Final

from agora.errors import InvalidInput

_ALPHABET: Final = "0123456789ABCDEFGHJKMNPQRSTVWXYZ"
"""Crockford's base 32: no I, L, O, U, so that an id can be read aloud."""

_ULID = re.compile("[0-7][0-9A-HJKMNP-TV-Z]{25}")
_RANDOM_BITS = 80
_LATEST_MS = (1 << 48) - 1


def new_id(prefix: str, at_ms: int, random: Callable[[int], bytes] = os.urandom) -> str:
    """`prefix`, `_` and a ULID: 48 bits of `at_ms` (milliseconds since 1970) and 80 random bits.

    Ids sort by time; those that one process makes in the same millisecond sort in the order they were made,
    also across threads. An id names a row and is never a secret.

    Source: https://github.com/ulid/spec

    Raises: InvalidInput if `at_ms` is before 1970 or after the year 10889.
    """
    if not 0 <= at_ms <= _LATEST_MS:
        raise InvalidInput("at_ms", "is outside the range of a ULID", at_ms, hint="Check the clock.")
    return _written(prefix, at_ms << _RANDOM_BITS | _SEQUENCE.next(at_ms, random))


def id_of(prefix: str, text: str) -> str:
    """The id that is always the same for `text`: its time is 1970, its last 80 bits are of the SHA-256.

    For what must be known again when it comes a second time.
    """
    return _written(prefix, int.from_bytes(hashlib.sha256(text.encode()).digest()[:10], "big"))


def is_id(text: str, prefix: str) -> bool:
    """Whether `text` has exactly the form of an id that `new_id` makes with that prefix."""
    head, _, ulid = text.rpartition("_")
    return head == prefix and _ULID.fullmatch(ulid) is not None


def _written(prefix: str, number: int) -> str:
    return f"{prefix}_{''.join(_ALPHABET[number >> shift & 31] for shift in range(125, -1, -5))}"


class _Sequence:
    """The random part of ids: one more than the last within a millisecond, so that order is kept."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._last = (0, 0, 0)

    def next(self, at_ms: int, random: Callable[[int], bytes]) -> int:
        process = os.getpid()
        with self._lock:
            owner, last_ms, last = self._last
            # A forked child inherits the last number and must not go on from it: its parent does. The top bit
            # of a new number stays free, so that counting on from there cannot overflow.
            follows = (owner, last_ms) == (process, at_ms)
            value = last + 1 if follows else int.from_bytes(random(10), "big") >> 1
            self._last = (process, at_ms, value)
        return value


_SEQUENCE = _Sequence()
