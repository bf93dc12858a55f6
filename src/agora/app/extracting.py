from __future__ import annotations

import threading
from collections.abc import Callable

from agora.model.deadline import Deadline
from agora.ports.extractor import Extraction, Extractor
from agora.ports.language_model import LanguageModel


def make_extractor(model: LanguageModel | None, max_tokens: int, redact: Callable[[str], str]) -> Extractor:
    """What finds the facts that a text states: the patterns, or a model for which they stand in.

    Nothing of the patterns is loaded before the first text. `max_tokens`: of one answer of the model. `redact` runs
    over what is sent to it.
    """
    if model is None:
        return _Patterns()
    from agora.llm.extracting import ModelExtractor  # noqa: PLC0415 - most have no model

    return ModelExtractor(model, _Patterns(), redact, max_tokens)


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
