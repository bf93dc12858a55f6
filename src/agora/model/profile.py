from __future__ import annotations

import hashlib
import json
from dataclasses import asdict, dataclass


@dataclass(frozen=True, slots=True)
class Fingerprint:
    """What makes vectors comparable: two encoders with equal fingerprints share one vector space."""

    name: str
    sha256: str
    """Of the model file and the tokenizer file, in this order, joined by `+`."""
    dimension: int
    pooling: str
    prefix: str
    normalised: bool
    max_tokens: int

    def digest(self) -> str:
        """Hexadecimal SHA-256 over all fields; equal digests mean comparable vectors."""
        return hashlib.sha256(json.dumps(asdict(self), sort_keys=True).encode()).hexdigest()


@dataclass(frozen=True, slots=True)
class Span:
    """A passage of a text as code point offsets, `start` included, `stop` excluded."""

    start: int
    stop: int
