from __future__ import annotations

import hashlib
import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from agora.embedding.onnx import OnnxEncoder, packaged_model
from agora.model.deadline import Deadline


@pytest.fixture(scope="session")
def encoder() -> OnnxEncoder:
    """The packaged model, loaded once for all tests that only use it."""
    found = OnnxEncoder(packaged_model())
    found.encode("warm", Deadline(60))
    return found


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A copy of the packaged model that a test may damage."""
    copy = tmp_path / "model"
    copy.mkdir()
    for name in ("manifest.json", "model.onnx", "tokenizer.json"):
        shutil.copyfile(packaged_model() / name, copy / name)
    return copy


@pytest.fixture
def declare(folder: Path) -> Callable[..., None]:
    """Write the manifest anew: with the hash and size that a file has now, and with other fields."""

    def write(*files: str, **fields: Any) -> None:
        manifest = json.loads((folder / "manifest.json").read_text("utf-8")) | fields
        for name in files:
            data = (folder / name).read_bytes()
            manifest["files"][name] = {"sha256": hashlib.sha256(data).hexdigest(), "bytes": len(data)}
        (folder / "manifest.json").write_text(json.dumps(manifest), "utf-8")

    return write
