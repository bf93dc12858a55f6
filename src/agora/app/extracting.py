"""What finds the facts that a text states: a language model if the settings name one, else the patterns."""

from __future__ import annotations

import threading
from typing import Any

from agora.config.language_model import ModelSettings
from agora.config.settings import Settings
from agora.model.deadline import Deadline
from agora.ports.extractor import Extraction, Extractor
from agora.ports.language_model import LanguageModel
from agora.ports.log import Log
from agora.protocol.redacting import Guard


def make_extractor(settings: Settings, guard: Guard, log: Log) -> Extracting:
    """The extractor that the settings want; nothing of it is loaded before the first text, and no server is asked.

    Raises: ConfigError about settings that make no sense, MissingExtra.
    """
    model = None
    if settings.model != ModelSettings():
        from agora.llm.choosing import extraction_model  # noqa: PLC0415 - a server that starts has no use for it

        model = extraction_model(settings.model, log)
    return Extracting(model, guard, settings.model.max_tokens)


class Extracting:
    """Implements `Extractor`: by `model`, and by the patterns where there is none or its answer cannot be used."""

    def __init__(self, model: LanguageModel | None, guard: Guard, max_tokens: int) -> None:
        """Secrets are taken out by `guard` before a text leaves; `max_tokens` is how much the model may write."""
        self._model = model
        self._guard = guard
        self._max_tokens = max_tokens
        self._lock = threading.Lock()
        self._made: Extractor | None = None

    def extract(self, text: str, deadline: Deadline) -> Extraction:
        """As `Extractor.extract`."""
        with self._lock:
            if self._made is None:
                self._made = self._make()
        return self._made.extract(text, deadline)

    def details(self) -> dict[str, Any] | None:
        """Name, calls, failures and tokens of the model; None if there is none."""
        return None if self._model is None else self._model.details()

    def close(self) -> None:
        """Let the model's connections go."""
        if self._model is not None:
            self._model.close()

    def _make(self) -> Extractor:
        from agora.llm.patterns.extractor import PatternExtractor  # noqa: PLC0415 - see `make_extractor`

        rules = PatternExtractor()
        if self._model is None:
            return rules
        from agora.llm.extracting import ModelExtractor  # noqa: PLC0415 - see above

        return ModelExtractor(self._model, rules, lambda text: self._guard.kept(text)[0], self._max_tokens)
