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
    spans, vectors = [], []
    for span in encoder.split(text, deadline):
        deadline.check()
        vectors.append(encoder.encode(text[span.start : span.stop], deadline))
        spans.append(Span(max(0, span.start - len(head)), max(0, span.stop - len(head))))
    return Embedded(encoder.fingerprint, tuple(spans), tuple(vectors))
