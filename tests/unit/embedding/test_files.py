from __future__ import annotations

import json
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from agora.embedding.onnx import OnnxEncoder, packaged_model
from agora.errors import EmbeddingError, ModelMissing, ModelTampered
from agora.model.deadline import Deadline

FILES = ["model.onnx", "tokenizer.json"]


def flip(path: Path, at: int) -> None:
    """Change one bit, keep the size."""
    data = bytearray(path.read_bytes())
    data[at] ^= 1
    path.write_bytes(data)


def test_the_packaged_model_is_what_its_manifest_says() -> None:
    OnnxEncoder(packaged_model()).verify()


def test_the_fingerprint_is_known_without_loading() -> None:
    encoder = OnnxEncoder(packaged_model())
    found = encoder.fingerprint
    assert (found.name, found.dimension, found.max_tokens) == ("all-MiniLM-L6-v2-int8", 384, 256)
    assert (found.pooling, found.prefix, found.normalised) == ("mean", "", True)
    files = json.loads((packaged_model() / "manifest.json").read_text("utf-8"))["files"]
    assert found.sha256 == f"{files['model.onnx']['sha256']}+{files['tokenizer.json']['sha256']}"
    assert encoder.languages == ("en",)
    assert encoder.state == "cold"


@pytest.mark.parametrize("name", FILES)
def test_a_flipped_bit_is_refused_by_verify_and_by_loading(folder: Path, name: str) -> None:
    wanted = json.loads((folder / "manifest.json").read_text("utf-8"))["files"][name]["sha256"]
    flip(folder / name, 100_000)
    encoder = OnnxEncoder(folder)
    with pytest.raises(ModelTampered) as by_verify:
        encoder.verify()
    with pytest.raises(ModelTampered) as by_load:
        encoder.encode("text", Deadline(60))
    for error in (by_verify.value, by_load.value):
        assert str(folder / name) in error.message
        assert wanted in error.message
        assert error.message.count("SHA-256") == 1
        assert "--force-reinstall agora-memory" in error.hint
    assert encoder.state == "failed"


@pytest.mark.parametrize("name", FILES)
def test_a_file_that_is_cut_short_is_refused(folder: Path, name: str) -> None:
    (folder / name).write_bytes((folder / name).read_bytes()[:-1])
    with pytest.raises(ModelTampered, match="bytes, must have"):
        OnnxEncoder(folder).verify()
    with pytest.raises(ModelTampered, match="SHA-256"):
        OnnxEncoder(folder).encode("text", Deadline(60))


@pytest.mark.parametrize("name", FILES)
def test_a_missing_file_is_named(folder: Path, name: str) -> None:
    (folder / name).unlink()
    encoder = OnnxEncoder(folder)
    for refuse in (encoder.verify, lambda: encoder.encode("text", Deadline(60))):
        with pytest.raises(ModelMissing) as refused:
            refuse()
        assert str(folder / name) in refused.value.message
        assert refused.value.hint


def test_a_folder_in_place_of_a_file_is_refused(folder: Path) -> None:
    (folder / "model.onnx").unlink()
    (folder / "model.onnx").mkdir()
    encoder = OnnxEncoder(folder)
    with pytest.raises(EmbeddingError):
        encoder.verify()
    with pytest.raises(ModelMissing, match="cannot be read"):
        encoder.encode("text", Deadline(60))


def test_a_model_without_a_manifest_is_refused_at_once(folder: Path) -> None:
    (folder / "manifest.json").unlink()
    with pytest.raises(ModelMissing, match=r"manifest\.json"):
        OnnxEncoder(folder)


@pytest.mark.parametrize(
    "content", [b"", b"{", b"[]", b"{}", b"\xff\xfe", b'{"files": {}}', b'{"files": {"model.onnx": 1}}', b"null"]
)
def test_a_manifest_that_cannot_be_understood_is_refused_at_once(folder: Path, content: bytes) -> None:
    (folder / "manifest.json").write_bytes(content)
    with pytest.raises(ModelTampered, match=r"manifest\.json"):
        OnnxEncoder(folder)


@pytest.mark.parametrize("field", [{"pooling": "cls"}, {"normalised": False}, {"dimension": "many"}])
def test_a_manifest_that_promises_what_the_code_does_not_do_is_refused(
    folder: Path, declare: Callable[..., None], field: dict[str, object]
) -> None:
    declare(**field)
    with pytest.raises(ModelTampered):
        OnnxEncoder(folder)


@pytest.mark.parametrize("field", ["name", "dimension", "prefix", "max_tokens"])
def test_another_manifest_is_another_vector_space(folder: Path, declare: Callable[..., None], field: str) -> None:
    before = OnnxEncoder(folder).fingerprint.digest()
    declare(**{field: 128 if field in {"dimension", "max_tokens"} else "other: "})
    assert OnnxEncoder(folder).fingerprint.digest() != before


def test_an_unknown_packaged_model_is_refused_with_the_names_that_exist() -> None:
    with pytest.raises(ModelMissing, match="all-MiniLM-L6-v2-int8"):
        packaged_model("all-MiniLM-L7")


@pytest.mark.skipif(sys.platform == "win32", reason="Windows has no unreadable files for their owner")
def test_a_file_that_may_not_be_read_says_so(folder: Path) -> None:
    (folder / "model.onnx").unlink()
    # Even the superuser cannot open a symbolic link to itself.
    (folder / "model.onnx").symlink_to(folder / "model.onnx")
    with pytest.raises(ModelMissing, match="cannot be read"):
        OnnxEncoder(folder).verify()
