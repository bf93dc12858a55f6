from __future__ import annotations

import hashlib
import threading
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from cachetools import LRUCache

from agora.cache.disk import Disk
from agora.model.deadline import Deadline
from agora.model.profile import Fingerprint, Span
from agora.ports.clock import Clock
from agora.ports.encoder import Encoder, EncoderState, Vector

_KIND = "embedding"
_LONGEST = 2000
"""Characters of a text whose vector is kept: questions come again, long texts do not."""


class CachedEncoder:
    """An encoder that remembers; implements `agora.ports.encoder.Encoder` around another.

    Keys are the SHA-256 of the encoder's fingerprint and the text, so that no other model's vector can come back.
    With a hit, a question is answered before the model is loaded.
    """

    def __init__(self, inner: Encoder, clock: Clock, disk: Disk | None, *, entries: int, disk_seconds: float) -> None:
        self._inner = inner
        self._clock = clock
        self._disk = disk
        self._life = int(disk_seconds * 1e6)
        self._salt = inner.fingerprint.digest().encode()
        self._lock = threading.Lock()
        self._memory: LRUCache[bytes, Vector] = LRUCache(entries)
        self._hits, self._misses = 0, 0

    @property
    def fingerprint(self) -> Fingerprint:
        """Of the encoder inside."""
        return self._inner.fingerprint

    @property
    def languages(self) -> tuple[str, ...]:
        """Of the encoder inside."""
        return self._inner.languages

    @property
    def state(self) -> EncoderState:
        """Of the encoder inside."""
        return self._inner.state

    def verify(self) -> None:
        """As the encoder inside."""
        self._inner.verify()

    def warm_up(self) -> None:
        """As the encoder inside."""
        self._inner.warm_up()

    def split(self, text: str, deadline: Deadline) -> tuple[Span, ...]:
        """As the encoder inside."""
        return self._inner.split(text, deadline)

    def encode(self, text: str, deadline: Deadline) -> Vector:
        """The vector of `text`, from memory, from disk, or from the encoder inside."""
        return self._remembered(b"", text, self._inner.encode, deadline)

    def encode_all(self, texts: Sequence[str], deadline: Deadline) -> list[Vector]:
        """As the encoder inside: passages of a note do not come again."""
        return self._inner.encode_all(texts, deadline)

    def encode_question(self, text: str, deadline: Deadline) -> Vector:
        """As `encode`, for a question."""
        return self._remembered(b"?", text, self._inner.encode_question, deadline)

    def _remembered(
        self, role: bytes, text: str, encode: Callable[[str, Deadline], Vector], deadline: Deadline
    ) -> Vector:
        if len(text) > _LONGEST:
            return encode(text, deadline)
        deadline.check()
        key = hashlib.sha256(role + self._salt + text.encode("utf-8", "surrogatepass")).digest()
        found = self._known(key)
        if found is None:
            found = encode(text, deadline)
            if self._disk is not None:
                now = int(self._clock.now().timestamp() * 1e6)
                self._disk.put(_KIND, key, found.astype("<f4").tobytes, now, now + self._life)
        with self._lock:
            self._memory[key] = found
        return found

    def details(self) -> dict[str, Any]:
        """As the encoder inside, with hits and misses."""
        with self._lock:
            counts = {"entries": len(self._memory), "hits": self._hits, "misses": self._misses}
        return {**self._inner.details(), "cache": counts}

    def close(self) -> None:
        """As the encoder inside."""
        self._inner.close()

    def _known(self, key: bytes) -> Vector | None:
        with self._lock:
            found = self._memory.get(key)
        if found is None and self._disk is not None:
            stored = self._disk.get(_KIND, key, int(self._clock.now().timestamp() * 1e6))
            if stored is not None and len(stored[0]) == 4 * self.fingerprint.dimension:
                found = np.frombuffer(stored[0], dtype="<f4").astype(np.float32)
                found.flags.writeable = False
        with self._lock:
            self._hits, self._misses = self._hits + (found is not None), self._misses + (found is None)
        return found
