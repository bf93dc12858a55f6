from __future__ import annotations

from typing import TYPE_CHECKING, Any

from agora.config.language_model import ModelSettings
from agora.ports.log import Log

if TYPE_CHECKING:
    from agora.ports.language_model import LanguageModel


class LanguageModels:
    """The language models that the settings name: one object for both kinds of work if both name the same model."""

    def __init__(self, settings: ModelSettings, log: Log) -> None:
        """Nothing is asked yet.

        Raises: ConfigError, MissingExtra.
        """
        self.summary: LanguageModel | None = None
        self.extraction: LanguageModel | None = None
        if settings == ModelSettings(extract_from_conversations=settings.extract_from_conversations):
            # Rules alone: nothing of what models need is loaded.
            return
        from agora.llm.choosing import extraction_model, summary_model  # noqa: PLC0415 - see above

        self.summary = summary_model(settings, log)
        same = settings.extraction_model == settings.summary_model
        self.extraction = self.summary if same else extraction_model(settings, log)

    def details(self) -> list[dict[str, Any]]:
        """What the status says of each: name, what it is for, calls, failures, tokens, the last error."""
        uses: dict[int, tuple[LanguageModel, list[str]]] = {}
        for model, use in ((self.summary, "summaries"), (self.extraction, "facts")):
            if model is not None:
                uses.setdefault(id(model), (model, []))[1].append(use)
        return [{**model.details(), "used_for": used} for model, used in uses.values()]

    def close(self) -> None:
        """Let their connections go."""
        for model in {id(each): each for each in (self.summary, self.extraction) if each is not None}.values():
            model.close()
