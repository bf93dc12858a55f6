from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from pydantic import SecretStr
from tests.integration.embedding_server import EmbeddingServer, status

from agora.config.settings import EmbeddingSettings
from agora.embedding.choose import choose_encoder, examined, is_settled, settle
from agora.embedding.onnx import OnnxEncoder, packaged_model
from agora.embedding.remote import RemoteEncoder
from agora.errors import AgoraError, ConfigError, EmbeddingError, EncoderUnavailable, ModelMissing
from agora.model.deadline import Deadline
from agora.testing import FakeEncoder

TINY = Path(__file__).resolve().parents[2] / "data" / "embedding" / "tiny"
URL = "http://localhost:11434/v1"


def wanted(**settings: Any) -> EmbeddingSettings:
    return EmbeddingSettings(**settings)


def test_without_settings_it_is_the_packaged_model_exactly_as_before() -> None:
    encoder = choose_encoder(wanted())
    assert isinstance(encoder, OnnxEncoder)
    assert encoder.fingerprint == OnnxEncoder(packaged_model()).fingerprint
    assert is_settled(encoder)
    settle(encoder, Deadline(0))


@pytest.mark.parametrize("path", [TINY / "sentence.onnx", packaged_model()])
def test_a_path_is_a_folder_or_a_file_with_a_model(path: Path) -> None:
    assert isinstance(choose_encoder(wanted(model=str(path))), OnnxEncoder)


def test_every_setting_of_a_server_reaches_it() -> None:
    encoder = choose_encoder(
        wanted(
            model="openai:BAAI/bge-m3",
            url=URL,
            key=SecretStr("sk"),
            dimension=1024,
            timeout=3,
            retries=1,
            batch=7,
            query_prefix="q: ",
            document_prefix="d: ",
            languages=("en", "it"),
            max_tokens=512,
        )
    )
    assert isinstance(encoder, RemoteEncoder)
    assert encoder.name == "openai:BAAI/bge-m3@localhost:11434"
    assert encoder.languages == ("en", "it")
    used = encoder._wanted
    assert (used.timeout, used.retries, used.batch, used.max_tokens, used.dimension) == (3, 1, 7, 512, 1024)
    assert (used.query_prefix, used.document_prefix) == ("q: ", "d: ")
    assert used.key == SecretStr("sk")


@pytest.mark.parametrize(
    ("settings", "says"),
    [
        ({"model": "openai:words"}, "needs embedding.url"),
        ({"model": "openai:", "url": URL}, "needs a name"),
        ({"url": URL}, "needs no server"),
        ({"model": str(TINY / "sentence.onnx"), "url": URL}, "needs no server"),
        ({"model": "ollama:words"}, "not known"),
        ({"model": "https://example.com/model"}, "not known"),
        ({"model": "openai:words", "url": URL, "pooling": "cls"}, "pools by itself"),
    ],
)
def test_settings_that_do_not_go_together_are_refused_with_what_to_write(settings: dict[str, Any], says: str) -> None:
    with pytest.raises(ConfigError, match=says) as caught:
        choose_encoder(wanted(**settings))
    assert caught.value.hint


@pytest.mark.parametrize("name", ["unknown-model", "C:\\models\\none", "/no/such/folder", "./no/such/folder"])
def test_a_model_that_is_not_there_is_named(name: str) -> None:
    with pytest.raises(ModelMissing):
        choose_encoder(wanted(model=name))


def test_a_store_tells_the_dimension_unless_the_settings_do() -> None:
    profile = FakeEncoder(48).fingerprint
    unknown = choose_encoder(wanted(model="openai:words", url=URL))
    told = choose_encoder(wanted(model="openai:words", url=URL), None, lambda: profile)
    named = choose_encoder(wanted(model="openai:words", url=URL, dimension=64), None, lambda: profile)
    assert [is_settled(each) for each in (unknown, told, named)] == [False, True, True]
    assert (told.fingerprint.dimension, named.fingerprint.dimension) == (48, 64)


def test_the_doctor_tries_a_server_and_hashes_a_folder() -> None:
    assert examined(wanted()) == "all-MiniLM-L6-v2-int8, files whole"
    with EmbeddingServer(24) as server:
        settings = wanted(model="openai:words", url=server.url, retries=0)
        assert examined(settings).endswith("answers with 24 dimensions")
        server.then(status(401))
        with pytest.raises(EmbeddingError, match="asks for a key"):
            examined(settings)
        with pytest.raises(EmbeddingError, match="24 dimensions; 48 were expected"):
            examined(settings, lambda: FakeEncoder(48).fingerprint)
    with pytest.raises(EncoderUnavailable, match="cannot be reached"):
        examined(settings)


def test_nobody_is_asked_before_it_is_needed() -> None:
    with EmbeddingServer() as server:
        encoder = choose_encoder(wanted(model="openai:words", url=server.url))
        encoder.verify()
        with pytest.raises(AgoraError):
            _ = encoder.fingerprint
        assert server.requests == []
        settle(encoder, Deadline(30))
        encoder.close()
        assert len(server.requests) == 1


def test_the_documentation_tells_of_every_setting_that_another_encoder_has() -> None:
    page = (Path(__file__).resolve().parents[3] / "docs" / "encoders.md").read_text("utf-8")
    ours = {f"embedding.{name}" for name in EmbeddingSettings.model_fields}
    assert {name for name in ours if f"`{name}`" not in page} <= {"embedding.model", "embedding.threads"}
