from __future__ import annotations

from typing import Any

import pytest
from pydantic import ValidationError
from tests.integration.embedding_server import EmbeddingServer
from tests.integration.model_wire import KEY, WIRES, Wire

from agora.config.language_model import ModelSettings
from agora.errors import ConfigError, ModelUnavailable
from agora.llm.choosing import examined, extraction_model, summary_model
from agora.model.deadline import Deadline
from agora.ports.language_model import Asked

LOCAL = {"adapter": "openai", "url": "http://localhost:11434/v1"}


def settings(**values: Any) -> ModelSettings:
    return ModelSettings.model_validate(values)


def test_without_settings_there_is_no_model() -> None:
    assert summary_model(settings()) is None
    assert extraction_model(settings()) is None
    assert examined(settings()) == "none: summaries and facts by rules"
    # Rules find facts too.
    assert extraction_model(settings(extract_from_conversations=True)) is None


def test_each_kind_of_work_has_a_model_of_its_own_or_none() -> None:
    both = settings(**LOCAL, summary_model="large", extraction_model="small")
    found = summary_model(both), extraction_model(both)
    assert [model.name for model in found if model] == ["openai:large@localhost:11434", "openai:small@localhost:11434"]
    assert extraction_model(settings(**LOCAL, summary_model="large", extraction_model="")) is None
    assert summary_model(settings(**LOCAL, extraction_model="small")) is None


def test_anthropic_alone_has_an_address_by_default() -> None:
    model = summary_model(settings(adapter="anthropic", key=KEY, summary_model="claude"))
    assert model is not None
    assert model.name == "anthropic:claude@api.anthropic.com"
    assert KEY not in f"{model.details()}"


@pytest.mark.parametrize(
    ("given", "named"),
    [
        ({"url": "http://localhost/v1"}, "model.url"),
        ({"key": KEY}, "model.key"),
        ({"summary_model": "large"}, "model.summary_model"),
        ({"extraction_model": "small"}, "model.extraction_model"),
        ({"adapter": "openai", "summary_model": "large"}, "model.url"),
        ({"adapter": "openai", "summary_model": "large", "url": " "}, "model.url"),
        (LOCAL, "no model is named"),
        (LOCAL | {"summary_model": "large", "key": "has a blank"}, "model.key"),
        ({"adapter": "anthropic", "summary_model": "large"}, "model.key"),
        ({"adapter": "anthropic", "key": KEY, "summary_model": "a", "json_mode": "object"}, "model.json_mode"),
        (
            {"adapter": "anthropic", "key": KEY, "summary_model": "a", "token_parameter": "max_tokens"},
            "model.token_parameter",
        ),
        ({"adapter": "anthropic", "key": KEY, "summary_model": "a", "temperature": 0.5}, "model.temperature"),
    ],
)
def test_settings_that_make_no_sense_together_are_refused_with_what_to_do(given: dict[str, Any], named: str) -> None:
    for choose in (summary_model, extraction_model):
        if named == "model.key" and "blank" in str(given) and choose is extraction_model:
            continue
        with pytest.raises(ConfigError) as caught:
            choose(settings(**given))
        assert named in caught.value.message
        assert caught.value.hint
        assert KEY not in f"{caught.value.details()}"


@pytest.mark.parametrize(
    "given",
    [
        {"adapter": "gemini"},
        {"temperature": 2.1},
        {"temperature": "warm"},
        {"temperature": True},
        {"timeout": 0},
        {"max_tokens": 0},
        {"retries": -1},
        {"json_mode": "yaml"},
        {"token_parameter": "tokens"},
        {"model": "words"},
    ],
)
def test_a_value_that_a_setting_cannot_have_is_refused(given: dict[str, Any]) -> None:
    with pytest.raises(ValidationError):
        settings(**given)


def test_values_may_come_as_texts_as_variables_bring_them() -> None:
    found = settings(temperature="0.5", max_tokens="100", retries="0", timeout="5", extract_from_conversations="true")
    assert (found.temperature, found.max_tokens, found.retries, found.timeout) == (0.5, 100, 0, 5.0)
    assert found.extract_from_conversations
    assert settings(temperature="Default").temperature == "default"


@pytest.mark.parametrize("wire", WIRES, ids=lambda wire: wire.name)
def test_every_setting_reaches_the_server(wire: Wire) -> None:
    with EmbeddingServer() as server:
        server.usual = wire.fails(500)
        given: dict[str, Any] = {"adapter": wire.name, "url": server.url, "key": KEY, "summary_model": "large"}
        if wire.name == "openai":
            given |= {"temperature": "default", "json_mode": "object", "token_parameter": "max_completion_tokens"}
        model = summary_model(settings(**given, retries=1, max_tokens=77))
        assert model is not None
        with pytest.raises(ModelUnavailable):
            model.complete(Asked("a", "b", 500, {"type": "object"}), Deadline(30))
        model.close()
        assert len(server.requests) == 2
        asked = server.requests[0]
        assert asked.headers[wire.key_header] == wire.key
        assert asked.body["model"] == "large"
        assert "temperature" not in asked.body
        if wire.name == "openai":
            assert asked.body["max_completion_tokens"] == 77
            assert "max_tokens" not in asked.body
            assert asked.body["response_format"] == {"type": "json_object"}
        else:
            assert asked.body["max_tokens"] == 77


@pytest.mark.parametrize("wire", WIRES, ids=lambda wire: wire.name)
def test_an_examination_asks_every_model_once(wire: Wire) -> None:
    with EmbeddingServer() as server:
        server.usual = wire.says("Yes.")
        given: dict[str, Any] = {"adapter": wire.name, "url": server.url, "key": KEY, "summary_model": "large"}
        said = examined(settings(**given, extraction_model="small"))
        assert [asked.body["model"] for asked in server.requests] == ["large", "small"]
        assert said.count("answers") == 2
        assert examined(settings(**given, extraction_model="large")).count("answers") == 1
        server.usual = wire.fails(401)
        with pytest.raises(ModelUnavailable):
            examined(settings(**given))
