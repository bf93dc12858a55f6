from __future__ import annotations

from collections.abc import Sequence

from agora.model.profile import Span


def with_title(title: str | None, content: str) -> str:
    """What is cut into passages: the title on a line of its own, if there is one, and the content."""
    return f"{title}\n{content}" if title else content


def placed(title: str | None, content: str, found: Sequence[Span]) -> tuple[tuple[Span, ...], list[str]]:
    """Where the passages `found` of title and content lie in the content alone, and their texts, title included."""
    text = with_title(title, content)
    head = len(text) - len(content)
    spans = (Span(max(0, span.start - head), max(0, span.stop - head)) for span in found)
    return tuple(spans), [text[span.start : span.stop] for span in found]
