from __future__ import annotations

from contextlib import suppress

from agora.errors import EmbeddingError
from agora.model.deadline import Deadline
from agora.ports.encoder import Encoder


def warm(encoder: Encoder, seconds: float) -> None:
    """Return once the model is loaded, or is known not to come within so many seconds.

    For who appends a message and is gone: an append by itself waits for no model, and nobody would make the vectors.
    """
    if encoder.state != "ready":
        with suppress(EmbeddingError):
            encoder.encode("ready", Deadline(seconds))
