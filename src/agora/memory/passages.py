from __future__ import annotations

from agora.model.deadline import Deadline
from agora.model.profile import Span
from agora.ports.encoder import Encoder
from agora.ports.records import Embedded


def embed(encoder: Encoder, title: str | None, content: str, deadline: Deadline) -> Embedded:
    """Passages over title and content together; their spans are given over the content alone.

    Raises: WarmingUp, EmbeddingError, DeadlineExceeded.
    """
    head = f"{title}\n" if title else ""
    text = head + content
    found = encoder.split(text, deadline)
    vectors = encoder.encode_all([text[span.start : span.stop] for span in found], deadline)
    spans = (Span(max(0, span.start - len(head)), max(0, span.stop - len(head))) for span in found)
    return Embedded(encoder.fingerprint, tuple(spans), tuple(vectors))
