from __future__ import annotations

import threading

from agora.model.deadline import Deadline
from agora.ports.extractor import Extraction, Extractor


def make_extractor() -> Extractor:
    """What finds the facts that a text states: the patterns. Nothing of them is loaded before the first text."""
    return _Patterns()


class _Patterns:
    """Implements `Extractor`."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._made: Extractor | None = None

    def extract(self, text: str, deadline: Deadline) -> Extraction:
        """As `Extractor.extract`."""
        with self._lock:
            if self._made is None:
                from agora.llm.patterns.extractor import PatternExtractor  # noqa: PLC0415 - see above

                self._made = PatternExtractor()
        return self._made.extract(text, deadline)
