from __future__ import annotations

from typing import TYPE_CHECKING, Any

from agora.config.served import checked_key
from agora.llm.address import read_address
from agora.llm.answer import Answer, count
from agora.llm.libraries import load, require
from agora.llm.served import ServedModel, Wanted
from agora.ports.language_model import Asked
from agora.ports.log import Log

if TYPE_CHECKING:
    import httpx2
    from anthropic.types import Message

OWN = "https://api.anthropic.com"

_CUT_OFF = {
    "max_tokens": "it was cut off at the limit of tokens (model.max_tokens)",
    "model_context_window_exceeded": "it was cut off: text and answer are too long for the model",
}
_WHOLE = frozenset({"end_turn", "stop_sequence"})


class AnthropicDialect:
    """Anthropic's messages API. JSON by `output_config.format`; there is no temperature in this API any more."""

    name = "anthropic"

    def __init__(self, wanted: Wanted) -> None:
        require("anthropic")
        self.address = read_address(wanted.url, ("/messages", "/v1"), "")
        self._wanted = wanted
        self._key = checked_key("model", wanted.key)

    def headers(self) -> dict[str, str]:
        """The key of the settings, and never one of the environment."""
        return {} if self._key is None else {"x-api-key": self._key.get_secret_value()}

    def open(self, http: httpx2.Client) -> Any:  # noqa: ANN401 - the library is imported late
        """The library's client; what it takes from the environment is dropped by `wire`."""
        return load("anthropic").Anthropic(
            api_key="not-sent", base_url=self.address.base, http_client=http, max_retries=0, open_telemetry=False
        )

    def send(self, client: Any, asked: Asked, max_tokens: int, seconds: float) -> Answer:  # noqa: ANN401 - as above
        """One message."""
        request: dict[str, Any] = {
            "model": self._wanted.model,
            "max_tokens": max_tokens,
            "system": asked.instructions,
            "messages": [{"role": "user", "content": asked.text}],
        }
        if asked.schema is not None:
            request["output_config"] = {"format": {"type": "json_schema", "schema": dict(asked.schema)}}
        return _read(client.messages.create(**request, timeout=seconds))


def anthropic_model(wanted: Wanted, log: Log | None = None) -> ServedModel:
    """A model behind Anthropic's messages API.

    Raises: MissingExtra; ConfigError about address and key.
    """
    return ServedModel(AnthropicDialect(wanted), wanted, log)


def _read(found: Message) -> Answer:
    """The answer in a message. The library looks at nothing, so any of its parts may be missing.

    Raises: AttributeError, TypeError if it is not of the shape that the API has.
    """
    usage = found.usage
    read = ("input_tokens", "cache_creation_input_tokens", "cache_read_input_tokens")
    cost = (sum(count(getattr(usage, name, 0)) for name in read), count(getattr(usage, "output_tokens", 0)))
    reason = found.stop_reason
    flaw = None
    if reason in _CUT_OFF:
        flaw = _CUT_OFF[reason]
    elif reason == "refusal":
        flaw = "the model refused"
    elif reason not in _WHOLE:
        flaw = "it is not whole"
    # Thinking stands in blocks of its own.
    text = "".join([block.text for block in found.content if block.type == "text"])
    return Answer(text, str(found.model or ""), *cost, flaw)
