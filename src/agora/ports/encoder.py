from __future__ import annotations

from typing import Any, Literal, Protocol

import numpy as np
from numpy.typing import NDArray

from agora.model.deadline import Deadline
from agora.model.profile import Fingerprint, Span

Vector = NDArray[np.float32]
"""Shape (dimension,), L2-normalised."""

EncoderState = Literal["cold", "loading", "ready", "failed"]


class Encoder(Protocol):
    """Turns texts into unit vectors whose dot product is their likeness.

    Thread-safe. The model is loaded at the first need or by `warm_up`; a call that needs it waits.
    Texts are encoded one at a time: an int8 vector would otherwise depend on its batch mates.
    """

    @property
    def fingerprint(self) -> Fingerprint:
        """What fixes the vector space; known without loading the model."""
        ...

    @property
    def languages(self) -> tuple[str, ...]:
        """ISO 639-1 codes of the languages it was trained on; empty for any. Elsewhere its vectors tell little."""
        ...

    @property
    def state(self) -> EncoderState:
        """`cold`, `loading`, `ready`, or `failed` (then every `encode` raises the cause)."""
        ...

    def verify(self) -> None:
        """Return if the files are there and have the SHA-256 they must have, without loading them.

        Raises: ModelMissing, ModelTampered.
        """
        ...

    def warm_up(self) -> None:
        """Start loading in the background and return at once."""
        ...

    def split(self, text: str, deadline: Deadline) -> tuple[Span, ...]:
        """Overlapping passages that cover `text`, each at most what the model reads at once; at least one.

        Raises: WarmingUp, EmbeddingError.
        """
        ...

    def encode(self, text: str, deadline: Deadline) -> Vector:
        """The vector of `text`, which is cut at what the model reads at once.

        Raises: WarmingUp if the model is not ready before the deadline, EmbeddingError if it cannot load.
        """
        ...

    def details(self) -> dict[str, Any]:
        """State, fingerprint and load time as plain data, for the status."""
        ...
