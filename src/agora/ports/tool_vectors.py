from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Protocol

from agora.ports.encoder import Vector


class ToolVectors(Protocol):
    """Vectors of the texts of servers and tools, kept from one start to the next. Thread-safe.

    It is made for one fingerprint of an encoder and never gives a vector of another one. A key is the SHA-256 of the
    text, 32 bytes. What is kept can be made anew at any time: losing it costs time alone.
    """

    def get(self, hashes: Collection[bytes]) -> dict[bytes, Vector]:
        """The vectors that are kept for any of `hashes`; the others are not in the answer. Thousands at a time.

        Raises: StoreUnavailable, StoreCorrupt.
        """
        ...

    def put(self, vectors: Mapping[bytes, Vector]) -> None:
        """Keep these, over what was kept for the same keys: all of them or none.

        Raises: StoreUnavailable, StoreCorrupt.
        """
        ...
