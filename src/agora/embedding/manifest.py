from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass
from importlib import resources
from pathlib import Path
from typing import Any

from agora.embedding.graph import Graph
from agora.errors import EmbeddingError, ModelMissing, ModelTampered
from agora.model.profile import Fingerprint

MODEL = "model.onnx"
TOKENIZER = "tokenizer.json"
MANIFEST = "manifest.json"

REINSTALL = (
    "Install Agora again: `python -m pip install --force-reinstall agora-memory`. "
    "If the folder is your own, put the file back, build the model again, or start Agora again if the change was meant."
)


@dataclass(frozen=True, slots=True)
class ModelFile:
    """One file of a model: its name in the folder, and the SHA-256 and size it must have."""

    name: str
    sha256: str
    bytes: int


@dataclass(frozen=True, slots=True)
class Manifest:
    """What a model folder holds, as its `manifest.json` says; the files themselves were not looked at."""

    folder: Path
    model: ModelFile
    tokenizer: ModelFile
    fingerprint: Fingerprint
    languages: tuple[str, ...]
    """That the model was trained on; empty for any."""
    graph: Graph | None = None
    """How to run a graph that is not our own; ours takes token ids and gives the vector."""
    question_prefix: str = ""
    document_prefix: str = ""
    """What stands before a question and before a text that is to be found."""

    def files(self) -> tuple[ModelFile, ModelFile]:
        """Model, then tokenizer: the order of the fingerprint."""
        return self.model, self.tokenizer

    def verify(self) -> None:
        """Return if every file is there with the SHA-256 it must have; reads them in blocks.

        Raises: ModelMissing, ModelTampered.
        """
        for file in self.files():
            path = self.folder / file.name
            try:
                size = path.stat().st_size
                # A wrong size is enough to refuse, and a huge file is not read for it.
                if size == file.bytes:
                    with path.open("rb") as stream:
                        _compare(path, file, hashlib.file_digest(stream, "sha256").hexdigest())
                    continue
            except OSError as error:
                raise _unreadable(path, error) from error
            raise _tampered(path, f"has {size} bytes, must have {file.bytes}")

    def read(self, file: ModelFile) -> bytes:
        """The bytes of `file`, checked: what is returned is what was hashed.

        Raises: ModelMissing, ModelTampered.
        """
        path = self.folder / file.name
        try:
            data = path.read_bytes()
        except OSError as error:
            raise _unreadable(path, error) from error
        _compare(path, file, hashlib.sha256(data).hexdigest())
        return data


def packaged_model(name: str = "all-MiniLM-L6-v2-int8") -> Path:
    """The folder of a model that comes with the package.

    Raises: ModelMissing if there is none of that name.
    """
    folder = Path(str(resources.files("agora.embedding.models") / name))
    if not (folder / MANIFEST).is_file():
        there = sorted(path.parent.name for path in folder.parent.glob(f"*/{MANIFEST}"))
        raise ModelMissing(
            f"no model named {name!r} comes with the package (there is: {', '.join(there) or 'none'})",
            hint=f"Name one that is there, or a folder by its path. {REINSTALL}",
        )
    return folder


def read_manifest(folder: Path) -> Manifest:
    """What `folder` says about its model.

    Raises: ModelMissing if there is no manifest, ModelTampered if it cannot be understood.
    """
    path = folder / MANIFEST
    try:
        text = path.read_text("utf-8")
    except OSError as error:
        raise _unreadable(path, error) from error
    except UnicodeDecodeError as error:
        raise _tampered(path, f"is not UTF-8: {error}") from error
    try:
        return _parse(folder, json.loads(text))
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise _tampered(path, f"cannot be understood: {error!r}") from error


def _parse(folder: Path, found: Mapping[str, Any]) -> Manifest:
    model, tokenizer = (
        ModelFile(name, str(found["files"][name]["sha256"]), int(found["files"][name]["bytes"]))
        for name in (MODEL, TOKENIZER)
    )
    if found["pooling"] != "mean" or found["normalised"] is not True:
        # The graph does both; a manifest that says otherwise describes another graph.
        raise ValueError("pooling must be 'mean' and normalised must be true")
    fingerprint = Fingerprint(
        name=str(found["name"]),
        sha256=f"{model.sha256}+{tokenizer.sha256}",
        dimension=int(found["dimension"]),
        pooling="mean",
        prefix=str(found["prefix"]),
        normalised=True,
        max_tokens=int(found["max_tokens"]),
    )
    languages = tuple(str(language) for language in found.get("languages", ()))
    prefix = fingerprint.prefix
    return Manifest(folder, model, tokenizer, fingerprint, languages, None, prefix, prefix)


def _compare(path: Path, file: ModelFile, digest: str) -> None:
    if digest != file.sha256:
        raise _tampered(path, f"has SHA-256 {digest}, must have {file.sha256}")


def _tampered(path: Path, what: str) -> ModelTampered:
    return ModelTampered(f"the model file {path} {what}; it is not loaded", hint=REINSTALL)


def _unreadable(path: Path, error: OSError) -> EmbeddingError:
    if isinstance(error, FileNotFoundError | NotADirectoryError):
        return ModelMissing(f"the model file {path} is not there", hint=REINSTALL)
    return ModelMissing(
        f"the model file {path} cannot be read: {error.strerror or error}", hint="Check who may read the file."
    )
