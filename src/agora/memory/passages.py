from __future__ import annotations

from agora.model.deadline import Deadline
from agora.ports.encoder import Encoder
from agora.ports.records import Embedded
from agora.text.passages import placed, with_title


def embed(encoder: Encoder, title: str | None, content: str, deadline: Deadline) -> Embedded:
    """Passages over title and content together; their spans are given over the content alone.

    Raises: WarmingUp, EmbeddingError, DeadlineExceeded.
    """
    found = encoder.split(with_title(title, content), deadline)
    spans, texts = placed(title, content, found)
    if len(texts) > 1:
        deadline.tell(f"encoding {len(texts)} passages")
    return Embedded(encoder.fingerprint, spans, tuple(encoder.encode_all(texts, deadline)))
