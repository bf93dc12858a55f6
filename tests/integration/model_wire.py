"""What the two APIs of language models send, in the shapes of their references, and models that read it."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from pydantic import SecretStr
from tests.integration.embedding_server import Answer, Asked, Handler, status

from agora.llm.anthropic import anthropic_model
from agora.llm.openai import Compatibility, openai_model
from agora.llm.served import ServedModel, Wanted
from agora.ports.log import Log

KEY = "sk-very-secret-0123456789"
SPENT = (117, 23)
"""Tokens in and out that every answer costs."""


@dataclass(frozen=True)
class Wire:
    """One API: where it listens, who may ask, what it answers."""

    name: str
    path: str
    key_header: str
    key: str
    body: Callable[[str, str], dict[str, Any]]
    """Text and reason to an answer."""
    reasons: Mapping[str, str]
    """What it calls the reasons `whole`, `cut` and `refused`."""
    error: Callable[[str, str], dict[str, Any]]
    """Kind and message to the body of an error."""

    def model(self, url: str, log: Log | None = None, **wanted: Any) -> ServedModel:
        usual: dict[str, Any] = {"model": "words", "url": url, "key": SecretStr(KEY), "timeout": 20.0, "retries": 3}
        compatible = Compatibility(**{name: wanted.pop(name) for name in ("json_mode",) if name in wanted})
        made = Wanted(**usual | wanted)
        return openai_model(made, compatible, log) if self.name == "openai" else anthropic_model(made, log)

    def says(self, text: str, reason: str = "whole") -> Answer:
        """Answers with `text`."""
        return status(200, self.body(text, self.reasons[reason]))

    def fails(self, number: int, kind: str = "some_error", message: str = "not now", **headers: str) -> Answer:
        """Answers with an error."""
        return status(number, self.error(kind, message), **headers)

    def schema_in(self, asked: Asked) -> object:
        """The schema that a request asks for."""
        if self.name == "openai":
            wanted = asked.body["response_format"]
            assert wanted["type"] == "json_schema"
            assert wanted["json_schema"]["strict"] is True
            return wanted["json_schema"]["schema"]
        wanted = asked.body["output_config"]["format"]
        assert wanted["type"] == "json_schema"
        return wanted["schema"]


def _chat_completion(text: str, reason: str) -> dict[str, Any]:
    refused = reason == "refusal"
    message = {"role": "assistant", "content": None if refused else text, "refusal": text if refused else None}
    return {
        "id": "chatcmpl-B9MBs8CjcvOU2jLn4n570S5qMJKcT",
        "object": "chat.completion",
        "created": 1741569952,
        "model": "words-2026-11-01",
        "choices": [
            {
                "index": 0,
                "message": message | {"annotations": []},
                "logprobs": None,
                "finish_reason": "stop" if refused else reason,
            }
        ],
        "usage": {
            "prompt_tokens": SPENT[0],
            "completion_tokens": SPENT[1],
            "total_tokens": sum(SPENT),
            "prompt_tokens_details": {"cached_tokens": 0, "audio_tokens": 0},
            "completion_tokens_details": {"reasoning_tokens": 0, "audio_tokens": 0},
        },
        "service_tier": "default",
    }


def _message(text: str, reason: str) -> dict[str, Any]:
    refused = reason == "refusal"
    return {
        "id": "msg_013Zva2CMHLNnXjNJJKqJ2EF",
        "type": "message",
        "role": "assistant",
        "model": "words-2026-11-01",
        "content": [
            {"type": "thinking", "thinking": "", "signature": "EosnCkYICxIMMb3LzNrMu"},
            *([] if refused else [{"type": "text", "text": text}]),
        ],
        "stop_reason": reason,
        "stop_sequence": None,
        "stop_details": {"type": "refusal", "category": None, "explanation": text} if refused else None,
        # The cached ones are told apart and count too.
        "usage": {
            "input_tokens": SPENT[0] - 100,
            "cache_creation_input_tokens": 40,
            "cache_read_input_tokens": 60,
            "output_tokens": SPENT[1],
            "service_tier": "standard",
        },
    }


def _openai_error(kind: str, message: str) -> dict[str, Any]:
    return {"error": {"message": message, "type": "invalid_request_error", "param": None, "code": kind}}


def _anthropic_error(kind: str, message: str) -> dict[str, Any]:
    return {
        "type": "error",
        "error": {"type": kind, "message": message},
        "request_id": "req_011CSHoEeqs5C35K2UUqR7Fy",
    }


OPENAI = Wire(
    name="openai",
    path="/v1/chat/completions",
    key_header="authorization",
    key=f"Bearer {KEY}",
    body=_chat_completion,
    reasons={"whole": "stop", "cut": "length", "refused": "refusal"},
    error=_openai_error,
)
ANTHROPIC = Wire(
    name="anthropic",
    path="/v1/messages",
    key_header="x-api-key",
    key=KEY,
    body=_message,
    reasons={"whole": "end_turn", "cut": "max_tokens", "refused": "refusal"},
    error=_anthropic_error,
)
WIRES = (OPENAI, ANTHROPIC)


def half(wire: Wire) -> Answer:
    """Half of the body that is announced."""

    def answer(handler: Handler, asked: Asked) -> None:
        del asked
        content = json.dumps(wire.body("whole", wire.reasons["whole"])).encode()
        handler.send_response(200)
        handler.send_header("Content-Type", "application/json")
        handler.send_header("Content-Length", str(len(content)))
        handler.end_headers()
        handler.wfile.write(content[: len(content) // 2])
        handler.close_connection = True

    return answer
