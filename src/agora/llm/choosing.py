"""From the settings `[model]` to the models that they name, one for each kind of work."""

from __future__ import annotations

from agora.config.language_model import ModelSettings
from agora.errors import ConfigError
from agora.llm.anthropic import OWN, anthropic_model
from agora.llm.openai import Compatibility, openai_model
from agora.llm.served import Wanted
from agora.model.deadline import Deadline
from agora.ports.language_model import Asked, LanguageModel
from agora.ports.log import Log

_OPENAI_ONLY = ("json_mode", "token_parameter")
_FOR_A_MODEL = ("url", "key", "summary_model", "extraction_model")


def summary_model(settings: ModelSettings, log: Log | None = None) -> LanguageModel | None:
    """The model that writes summaries; None where rules do. Nothing is imported and no server is asked.

    Raises: ConfigError about settings that make no sense, MissingExtra.
    """
    return _model(settings, settings.summary_model, log)


def extraction_model(settings: ModelSettings, log: Log | None = None) -> LanguageModel | None:
    """The model that finds facts; None where rules do. Otherwise as `summary_model`."""
    return _model(settings, settings.extraction_model, log)


def examined(settings: ModelSettings) -> str:
    """What `agora doctor` says of the language models after it has asked each for a word.

    Raises: as `summary_model`, and what `LanguageModel.complete` raises.
    """
    found: list[str] = []
    for model in (summary_model(settings), extraction_model(settings)):
        if model is None or f"{model.name} answers" in found:
            continue
        try:
            model.complete(Asked("Answer with one word.", "Are you ready?", settings.max_tokens), _patience(settings))
        finally:
            model.close()
        found.append(f"{model.name} answers")
    return "; ".join(found) or "none: summaries and facts by rules"


def _patience(settings: ModelSettings) -> Deadline:
    return Deadline(settings.timeout * (settings.retries + 1))


def _model(settings: ModelSettings, name: str | None, log: Log | None) -> LanguageModel | None:
    _check(settings)
    if settings.adapter == "none" or name is None:
        return None
    wanted = Wanted(
        model=name,
        url=settings.url or OWN,
        key=settings.key,
        timeout=settings.timeout,
        max_tokens=settings.max_tokens,
        retries=settings.retries,
        temperature=None if settings.temperature == "default" else settings.temperature,
    )
    if settings.adapter == "anthropic":
        return anthropic_model(wanted, log)
    return openai_model(wanted, Compatibility(settings.json_mode, settings.token_parameter), log)


def _check(settings: ModelSettings) -> None:
    """Return if the settings make sense together.

    Raises: ConfigError.
    """
    if settings.adapter == "none":
        if given := [name for name in _FOR_A_MODEL if getattr(settings, name) is not None]:
            raise ConfigError(
                f"model.{given[0]} is set, but model.adapter = 'none' asks no model",
                hint="Set model.adapter to 'openai' or 'anthropic', or leave the rest of [model] out.",
            )
        return
    if settings.summary_model is None and settings.extraction_model is None:
        raise ConfigError(
            f"model.adapter = {settings.adapter!r}, but no model is named",
            hint="Set model.summary_model, model.extraction_model, or both; or leave model.adapter out.",
        )
    if settings.adapter == "openai":
        if settings.url is None:
            raise ConfigError(
                "model.adapter = 'openai' needs model.url: texts go nowhere that nobody wrote down",
                hint="As in http://localhost:11434/v1 for Ollama, or https://api.openai.com/v1.",
            )
        return
    usual = ModelSettings()
    if given := [name for name in _OPENAI_ONLY if getattr(settings, name) != getattr(usual, name)]:
        raise ConfigError(f"model.{given[0]} is for model.adapter = 'openai'", hint="Leave it out.")
    if settings.temperature not in {0.0, "default"}:
        raise ConfigError("model.temperature is not known to Anthropic's API any more", hint="Leave it out.")
    if settings.url is None and settings.key is None:
        raise ConfigError(
            "model.adapter = 'anthropic' needs model.key", hint="As in model.key = '${ANTHROPIC_API_KEY}'."
        )
