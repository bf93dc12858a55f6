from __future__ import annotations

import json
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

from agora.config.served import checked_key
from agora.llm.address import read_address
from agora.llm.answer import Answer, count
from agora.llm.libraries import load, require
from agora.llm.served import ServedModel, Wanted
from agora.ports.language_model import Asked
from agora.ports.log import Log

if TYPE_CHECKING:
    import httpx2
    from openai.types.chat import ChatCompletion

OWN = "api.openai.com"
"""OpenAI's own server, which differs from the compatible ones in the name of a parameter, and in keeping answers."""

JsonMode = Literal["schema", "object"]
TokenParameter = Literal["max_tokens", "max_completion_tokens"]

_THOUGHT = re.compile(r"\A\s*<think>.*?</think>", re.DOTALL)
"""What some servers leave of a model's thinking before its answer."""

_AS_JSON = "\n\nAnswer with one JSON object of this JSON schema, and with nothing else:\n"


@dataclass(frozen=True, slots=True)
class Compatibility:
    """What a server knows. `json_mode`: `object` for one that knows no schema; the schema is then told in words.

    `token_parameter`: what it calls the limit of tokens; None for what OpenAI itself or all others call it.
    """

    json_mode: JsonMode = "schema"
    token_parameter: TokenParameter | None = None


class OpenAIDialect:
    """Chat completions of OpenAI and of every server that is compatible: Ollama, vLLM, llama.cpp, LM Studio."""

    name = "openai"

    def __init__(self, wanted: Wanted, compatible: Compatibility) -> None:
        require("openai")
        self.address = read_address(wanted.url, ("/chat/completions",), "/v1")
        self._wanted = wanted
        self._key = checked_key("model", wanted.key)
        self._json_mode = compatible.json_mode
        self._own = self.address.host == OWN
        usual: TokenParameter = "max_completion_tokens" if self._own else "max_tokens"
        self._token_parameter = compatible.token_parameter or usual

    def headers(self) -> dict[str, str]:
        """The key of the settings, and never one of the environment."""
        return {} if self._key is None else {"authorization": f"Bearer {self._key.get_secret_value()}"}

    def open(self, http: httpx2.Client) -> Any:  # noqa: ANN401 - the library is imported late
        """The library's client; what it takes from the environment is dropped by `wire`."""
        return load("openai").OpenAI(
            api_key="not-sent", base_url=self.address.base, http_client=http, max_retries=0, admin_api_key=""
        )

    def send(self, client: Any, asked: Asked, max_tokens: int, seconds: float) -> Answer:  # noqa: ANN401 - as above
        """One chat completion."""
        return _read(client.chat.completions.create(**self._request(asked, max_tokens), timeout=seconds))

    def _request(self, asked: Asked, max_tokens: int) -> dict[str, Any]:
        instructions = asked.instructions
        request: dict[str, Any] = {"model": self._wanted.model, self._token_parameter: max_tokens}
        if self._wanted.temperature is not None:
            request["temperature"] = self._wanted.temperature
        if self._own:
            request["store"] = False
        if asked.schema is not None and self._json_mode == "schema":
            named = {"name": "answer", "strict": True, "schema": dict(asked.schema)}
            request["response_format"] = {"type": "json_schema", "json_schema": named}
        elif asked.schema is not None:
            instructions += _AS_JSON + json.dumps(asked.schema, ensure_ascii=False)
            request["response_format"] = {"type": "json_object"}
        told = [{"role": "system", "content": instructions}, {"role": "user", "content": asked.text}]
        return request | {"messages": told}


def openai_model(wanted: Wanted, compatible: Compatibility | None = None, log: Log | None = None) -> ServedModel:
    """A model behind OpenAI's chat completions.

    Raises: MissingExtra; ConfigError about address and key.
    """
    return ServedModel(OpenAIDialect(wanted, compatible or Compatibility()), wanted, log)


def _read(found: ChatCompletion) -> Answer:
    """The answer in a completion. The library looks at nothing, so any of its parts may be missing.

    Raises: AttributeError, TypeError, IndexError if it is not of the shape that the API has.
    """
    usage, choice = found.usage, found.choices[0]
    cost = (count(getattr(usage, "prompt_tokens", 0)), count(getattr(usage, "completion_tokens", 0)))
    flaw = None
    if choice.finish_reason == "length":
        flaw = "it was cut off at the limit of tokens (model.max_tokens)"
    elif choice.finish_reason == "content_filter" or getattr(choice.message, "refusal", None):
        flaw = "the model refused"
    content = choice.message.content
    if not isinstance(content, str | None):
        raise TypeError("content is no text")
    return Answer(_THOUGHT.sub("", content or ""), str(found.model or ""), *cost, flaw)
