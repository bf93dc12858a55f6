from __future__ import annotations

import json
import os
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from agora.embedding.folder import Given
from agora.embedding.onnx import OnnxEncoder, packaged_model
from agora.embedding.signature import read_signature
from agora.errors import ConfigError, EmbeddingError, ModelMissing, ModelTampered
from agora.model.deadline import Deadline

TINY = Path(__file__).resolve().parents[2] / "data" / "embedding" / "tiny"
MEAN = {"word_embedding_dimension": 16, "pooling_mode_cls_token": False, "pooling_mode_mean_tokens": True}
CLS = {"word_embedding_dimension": 16, "pooling_mode_cls_token": True, "pooling_mode_mean_tokens": False}
MODULES = [
    {"idx": 0, "path": "", "type": "sentence_transformers.models.Transformer"},
    {"idx": 1, "path": "1_Pooling", "type": "sentence_transformers.models.Pooling"},
]
TEXT = "the zebra crosses the river at noon"

Export = Callable[..., Path]


@pytest.fixture
def export(tmp_path: Path) -> Export:
    """A folder as an export leaves it: a graph, its tokenizer, and JSON files by name."""

    def made(graph: str = "tokens", name: str = "model.onnx", **files: Any) -> Path:
        folder = tmp_path / f"export-{len(list(tmp_path.iterdir()))}"
        (folder / name).parent.mkdir(parents=True)
        shutil.copyfile(TINY / f"{graph}.onnx", folder / name)
        shutil.copyfile(TINY / "tokenizer.json", folder / "tokenizer.json")
        for path, content in files.items():
            file = folder / f"{path.replace('__', '/')}.json"
            file.parent.mkdir(exist_ok=True)
            file.write_text(json.dumps(content), "utf-8")
        return folder

    return made


def soon() -> Deadline:
    return Deadline(60)


def opened(folder: Path, **given: Any) -> OnnxEncoder:
    return OnnxEncoder(folder, given=Given(**given))


def refusal(folder: Path, **given: Any) -> EmbeddingError:
    """What is said about a folder that no encoder can be made of."""
    with pytest.raises(EmbeddingError) as caught:
        opened(folder, **given).encode(TEXT, soon())
    assert caught.value.hint
    return caught.value


# Shapes of graphs


@pytest.mark.parametrize("name", ["model.onnx", "onnx/model.onnx"])
def test_a_graph_with_a_vector_a_token_is_pooled_as_its_files_say(export: Export, name: str) -> None:
    mean = opened(export(name=name, modules=MODULES, **{"1_Pooling__config": MEAN}))
    first = opened(export(name=name, modules=MODULES, **{"1_Pooling__config": CLS}))
    assert (mean.fingerprint.pooling, first.fingerprint.pooling) == ("mean", "cls")
    assert mean.fingerprint.digest() != first.fingerprint.digest()
    one, other = (encoder.encode(TEXT, soon()) for encoder in (mean, first))
    # The graph that pools by itself gives the mean; the first token is the same for every text.
    assert np.allclose(one, opened(export("sentence")).encode(TEXT, soon()), atol=1e-5)
    assert np.allclose(other, first.encode("a cat", soon()), atol=1e-6)
    assert not np.allclose(one, other, atol=0.1)


@pytest.mark.parametrize("graph", ["sentence", "unbatched"])
def test_a_graph_that_pools_by_itself_needs_no_other_file(export: Export, graph: str) -> None:
    encoder = opened(export(graph))
    vector = encoder.encode(TEXT, soon())
    assert vector.shape == (16,)
    assert vector.dtype == np.float32
    assert not vector.flags.writeable
    assert abs(float(np.linalg.norm(vector.astype(np.float64))) - 1) < 1e-6
    assert encoder.fingerprint.pooling == "graph"
    assert encoder.details()["folder"]


def test_newer_files_name_the_pooling_in_one_word(export: Export) -> None:
    assert opened(export(**{"1_Pooling__config": {"pooling_mode": "cls"}})).fingerprint.pooling == "cls"


def test_the_setting_says_how_to_pool_where_no_file_does(export: Export) -> None:
    folder = export()
    error = refusal(folder)
    assert "no file beside it" in error.message
    assert "embedding.pooling" in error.hint
    assert opened(folder, pooling="mean").fingerprint.pooling == "mean"
    assert opened(folder, pooling="cls").fingerprint.pooling == "cls"


def test_the_tokenizers_own_truncation_does_not_count(export: Export) -> None:
    # The file cuts at 16 tokens.
    encoder = opened(export("sentence"))
    long = "the cat sleeps on a warm roof " * 6
    assert not np.allclose(encoder.encode(long, soon()), encoder.encode(long + "zebra " * 9, soon()), atol=1e-3)


def test_a_text_longer_than_the_model_reads_is_cut_there(export: Export) -> None:
    encoder = opened(export("sentence", sentence_bert_config={"max_seq_length": 20}))
    assert encoder.fingerprint.max_tokens == 20
    eighteen = "the cat sleeps " * 6
    assert np.array_equal(encoder.encode(eighteen, soon()), encoder.encode(eighteen + "zebra " * 9, soon()))
    assert len(encoder.split(eighteen, soon())) == 1
    assert len(encoder.split(eighteen + "zebra", soon())) == 2


@pytest.mark.parametrize(
    ("files", "limit"),
    [
        ({}, 256),
        ({"config": {"max_position_embeddings": 512}}, 512),
        ({"config": {"max_position_embeddings": 514, "model_type": "xlm-roberta"}}, 512),
        ({"config": {"max_position_embeddings": 512}, "sentence_bert_config": {"max_seq_length": 128}}, 128),
        ({"tokenizer_config": {"model_max_length": 1000000000000000019884624838656}}, 256),
        ({"tokenizer_config": {"model_max_length": 300}}, 300),
    ],
)
def test_the_files_say_how_much_the_model_reads(export: Export, files: dict[str, Any], limit: int) -> None:
    folder = export("sentence", **files)
    assert opened(folder).fingerprint.max_tokens == limit
    assert opened(folder, max_tokens=64).fingerprint.max_tokens == 64


# Prefixes


def test_questions_and_documents_get_the_prefixes_of_the_files_or_of_the_settings(export: Export) -> None:
    prompts = {"prompts": {"query": "why: ", "passage": "text: "}, "default_prompt_name": None}
    folder = export("sentence", config_sentence_transformers=prompts)
    plain = opened(export("sentence"))
    by_file, by_setting = opened(folder), opened(folder, question_prefix="", document_prefix="cat ")
    assert np.array_equal(by_file.encode("zebra", soon()), plain.encode("text: zebra", soon()))
    assert np.array_equal(by_file.encode_question("zebra", soon()), plain.encode("why: zebra", soon()))
    assert np.array_equal(by_setting.encode_all(["zebra"], soon())[0], plain.encode("cat zebra", soon()))
    assert np.array_equal(by_setting.encode_question("zebra", soon()), plain.encode("zebra", soon()))
    assert len({each.fingerprint.digest() for each in (plain, by_file, by_setting)}) == 3


def test_a_packaged_model_takes_prefixes_too_and_is_another_space_then() -> None:
    folder = packaged_model()
    plain, same, other = OnnxEncoder(folder), opened(folder), opened(folder, question_prefix="why: ")
    assert plain.fingerprint == same.fingerprint
    assert plain.fingerprint.digest() != other.fingerprint.digest()
    assert plain.languages == other.languages == ("en",)
    assert opened(folder, languages=("en", "it")).languages == ("en", "it")


@pytest.mark.parametrize("given", [{"pooling": "cls"}, {"max_tokens": 64}, {"dimension": 385}])
def test_what_a_manifest_fixes_no_setting_changes(given: dict[str, Any]) -> None:
    with pytest.raises(ConfigError, match="manifest"):
        opened(packaged_model(), **given)
    assert opened(packaged_model(), dimension=384).fingerprint.dimension == 384


# The profile


def test_the_fingerprint_is_of_the_files_and_not_of_the_folder(export: Export) -> None:
    one, other = opened(export("sentence")), opened(export("sentence"))
    assert one.fingerprint == other.fingerprint
    assert one.state == "cold"
    folder = export("sentence")
    with (folder / "tokenizer.json").open("ab") as file:
        file.write(b"\n")
    assert opened(folder).fingerprint.digest() != one.fingerprint.digest()
    assert opened(export("unbatched")).fingerprint.digest() != one.fingerprint.digest()


@pytest.mark.parametrize("name", ["model.onnx", "tokenizer.json"])
def test_a_file_of_the_same_size_and_age_with_other_bytes_is_not_loaded(export: Export, name: str) -> None:
    folder = export("sentence")
    encoder = opened(folder)
    path = folder / name
    state, content = path.stat(), bytearray(path.read_bytes())
    content[len(content) // 2] ^= 1
    path.write_bytes(content)
    os.utime(path, ns=(state.st_atime_ns, state.st_mtime_ns))
    assert path.stat().st_size == state.st_size
    for refuse in (encoder.verify, lambda: encoder.encode(TEXT, soon())):
        with pytest.raises(ModelTampered, match="SHA-256"):
            refuse()
    assert opened(folder).fingerprint.digest() != encoder.fingerprint.digest()


def test_the_signature_is_read_without_loading_the_graph() -> None:
    found = read_signature(TINY / "tokens.onnx")
    assert [(each.name, each.element, each.shape) for each in found.inputs] == [
        (name, "int64", (None, None)) for name in ("input_ids", "attention_mask", "token_type_ids")
    ]
    assert [(each.name, each.shape) for each in found.outputs] == [("last_hidden_state", (None, None, 16))]
    assert not found.external


# What is no encoder


def test_without_a_tokenizer_it_says_which_file_is_missing(export: Export) -> None:
    folder = export("sentence")
    (folder / "tokenizer.json").unlink()
    error = refusal(folder)
    assert isinstance(error, ModelMissing)
    assert str(folder / "tokenizer.json") in error.message


def test_without_a_graph_or_a_folder_it_says_so(tmp_path: Path) -> None:
    assert "no .onnx file" in refusal(tmp_path).message
    assert "is not there" in refusal(tmp_path / "nowhere").message


def test_of_several_graphs_the_one_that_is_named_counts(export: Export) -> None:
    folder = export("sentence")
    (folder / "onnx").mkdir()
    shutil.copyfile(TINY / "unbatched.onnx", folder / "onnx" / "model_quantized.onnx")
    error = refusal(folder)
    assert "2 graphs" in error.message
    assert "model_quantized.onnx" in error.message
    one, other = opened(folder / "model.onnx"), opened(folder / "onnx" / "model_quantized.onnx")
    assert one.fingerprint.digest() != other.fingerprint.digest()
    assert np.allclose(one.encode(TEXT, soon()), other.encode(TEXT, soon()), atol=1e-5)


@pytest.mark.parametrize(
    ("graph", "says"),
    [
        ("images", "takes pixel_values"),
        ("logits", "gives logits"),
        ("deep", "neither one vector nor one a token"),
        ("flat", "shape .1, 512, 16. for 256 tokens"),
    ],
)
def test_a_graph_that_is_no_text_encoder_is_refused(export: Export, graph: str, says: str) -> None:
    with pytest.raises(EmbeddingError, match=says):
        raise refusal(export(graph), pooling="mean")


@pytest.mark.parametrize("content", [b"", b"\x00", b"hello", b"\xff" * 100, b'{"a": 1}' * 100])
def test_a_file_that_is_no_graph_is_refused_at_once(export: Export, content: bytes) -> None:
    folder = export("sentence")
    (folder / "model.onnx").write_bytes(content)
    with pytest.raises(EmbeddingError, match="ONNX graph"):
        opened(folder)


@pytest.mark.parametrize("part", [0.1, 0.5, 0.9, 0.999])
def test_a_graph_that_is_cut_off_is_refused_at_once(export: Export, part: float) -> None:
    folder = export("sentence")
    content = (folder / "model.onnx").read_bytes()
    (folder / "model.onnx").write_bytes(content[: int(len(content) * part)])
    with pytest.raises(EmbeddingError, match="ONNX graph"):
        opened(folder)


@pytest.mark.parametrize("content", [b"{}", b"[]", b"no JSON", b"\xff"])
def test_a_tokenizer_that_cannot_be_read_is_an_error_of_every_call(export: Export, content: bytes) -> None:
    folder = export("sentence")
    (folder / "tokenizer.json").write_bytes(content)
    assert "could not be loaded" in refusal(folder).message


def test_a_tokenizer_of_another_model_is_found_when_it_is_loaded(export: Export) -> None:
    folder = export("sentence")
    shutil.copyfile(packaged_model() / "tokenizer.json", folder / "tokenizer.json")
    assert "of one model" in refusal(folder).hint


@pytest.mark.parametrize(
    ("files", "says"),
    [
        ({"1_Pooling__config": {"pooling_mode_lasttoken": True}}, "pooling_mode_lasttoken"),
        ({"1_Pooling__config": {"pooling_mode_mean_tokens": True, "pooling_mode_max_tokens": True}}, "max_tokens"),
        ({"modules": [*MODULES, {"type": "a.models.Dense"}], "1_Pooling__config": MEAN}, "Dense"),
        ({"modules": {}, "1_Pooling__config": MEAN}, "modules.json holds a dict"),
    ],
)
def test_files_that_ask_for_what_is_not_known_are_refused(export: Export, files: dict[str, Any], says: str) -> None:
    assert says in refusal(export(**files)).message


def test_a_dimension_that_the_graph_contradicts_is_refused(export: Export) -> None:
    error = refusal(export("sentence"), dimension=32)
    assert "the graph says 16 dimensions but embedding.dimension says 32" in error.message
