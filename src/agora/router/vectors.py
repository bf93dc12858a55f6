from __future__ import annotations

import hashlib
from collections.abc import Sequence

import numpy as np

from agora.model.deadline import Deadline
from agora.ports.encoder import Encoder, Vector
from agora.ports.tool_vectors import ToolVectors
from agora.router.catalogue import Matrix
from agora.router.texts import questions

_BATCH = 64
"""Texts that are encoded before what there is gets kept: a start that is cut short goes on from there."""


class TextVectors:
    """Vectors of texts that are looked for and of requests that look, from one encoder. Thread-safe."""

    def __init__(self, encoder: Encoder, kept: ToolVectors) -> None:
        self._encoder = encoder
        self._kept = kept

    def text_vectors(self, texts: Sequence[str], deadline: Deadline) -> Matrix:
        """A row for each of `texts`, from what is kept, else from the encoder, and kept then. Blocks.

        Raises: WarmingUp, EmbeddingError, EncoderUnavailable, StoreError, DeadlineExceeded, Cancelled. What was
        encoded until then is kept.
        """
        hashes = [_hash(text) for text in texts]
        found = self._kept.get(set(hashes))
        missing = {digest: text for digest, text in zip(hashes, texts, strict=True) if digest not in found}
        wanted = list(missing)
        for start in range(0, len(wanted), _BATCH):
            batch = wanted[start : start + _BATCH]
            made = self._encoder.encode_all([missing[digest] for digest in batch], deadline)
            new: dict[bytes, Vector] = dict(zip(batch, made, strict=True))
            self._kept.put(new)
            found |= new
        return np.stack([found[digest] for digest in hashes]) if texts else np.zeros((0, 0), dtype=np.float32)

    def question_vectors(self, intent: str, deadline: Deadline) -> Matrix:
        """What `agora.router.select.select` wants as `question_vector`: a row for the whole and for each part.

        Raises: WarmingUp, EmbeddingError, EncoderUnavailable, DeadlineExceeded, Cancelled.
        """
        return np.stack([self._encoder.encode_question(text, deadline) for text in questions(intent)])


def _hash(text: str) -> bytes:
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).digest()
