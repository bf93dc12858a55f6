from __future__ import annotations

from collections.abc import Sequence
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
    A vector depends on its text alone, never on its batch mates.
    """

    @property
    def fingerprint(self) -> Fingerprint:
        """What fixes the vector space; known without loading the model.

        Raises: EncoderUnavailable if a server makes the vectors and nobody has said yet how long they are.
        """
        ...

    @property
    def languages(self) -> tuple[str, ...]:
        """ISO 639-1 codes of the languages it was trained on; empty for any. Elsewhere its vectors tell little."""
        ...

    @property
    def state(self) -> EncoderState:
        """`cold`, `loading`, `ready`, or `failed`.

        A model that failed to load has failed for good; a server is asked again by the next call.
        """
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
        """The vector of `text` as something to be found; it is cut at what the model reads at once.

        Raises: WarmingUp if the model is not ready before the deadline, EmbeddingError if it cannot load.
        """
        ...

    def encode_all(self, texts: Sequence[str], deadline: Deadline) -> list[Vector]:
        """What `encode` gives for each of `texts`, in order: a server gets many in one request.

        Raises: as `encode`; then there is no vector at all.
        """
        ...

    def encode_question(self, text: str, deadline: Deadline) -> Vector:
        """The vector of `text` as a question: some models want another prefix for it than for what is found.

        Raises: as `encode`.
        """
        ...

    def details(self) -> dict[str, Any]:
        """State, fingerprint and load time as plain data, for the status."""
        ...

    def close(self) -> None:
        """Let connections go, if there are any; a later call may open them again."""
        ...
