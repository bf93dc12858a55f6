"""What a folder with somebody else's ONNX encoder holds: graph, tokenizer, and the files that say how to use them."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal

from agora.embedding.graph import Graph, graph_of
from agora.embedding.manifest import MANIFEST, TOKENIZER, Manifest, ModelFile, read_manifest
from agora.embedding.signature import read_signature
from agora.errors import ConfigError, EmbeddingError, ModelMissing
from agora.model.profile import Fingerprint

_TOKENS = 256
"""What a model reads at once if nothing says more: every encoder in use reads that much."""

_OFFSET = frozenset({"roberta", "xlm-roberta", "camembert", "mpnet", "longformer"})
"""Families whose `max_position_embeddings` counts two positions that no token gets."""

_POOLINGS: Mapping[str, Literal["mean", "cls"]] = {
    "pooling_mode_mean_tokens": "mean",
    "pooling_mode_cls_token": "cls",
    "mean": "mean",
    "cls": "cls",
}


@dataclass(frozen=True, slots=True)
class Given:
    """What the settings say about a model; None and empty where the model's own files decide."""

    question_prefix: str | None = None
    document_prefix: str | None = None
    languages: tuple[str, ...] = ()
    max_tokens: int | None = None
    pooling: Literal["mean", "cls"] | None = None
    dimension: int | None = None


def read_model(path: Path, given: Given) -> Manifest:
    """What to load from `path`: a folder with our manifest, one without, or one graph in such a folder.

    Without a manifest every file is hashed here and now, and held to that hash when it is loaded.

    Raises: ModelMissing, ModelTampered, EmbeddingError; ConfigError if a setting contradicts a manifest.
    """
    if (path / MANIFEST).is_file():
        found = read_manifest(path)
        if (
            given.max_tokens
            or given.pooling
            or (given.dimension or found.fingerprint.dimension) != (found.fingerprint.dimension)
        ):
            raise ConfigError(
                f"the manifest of {path} fixes dimension, pooling and max_tokens of the model",
                hint="Leave embedding.dimension, embedding.pooling and embedding.max_tokens out.",
            )
        return _with_prefixes(found, given, found.question_prefix, found.document_prefix)
    return _described(*_chosen(path), given)


def joined(question: str, document: str) -> str:
    """Both prefixes as the one text that a fingerprint holds: equal texts for equal pairs, and for nothing else."""
    return question if question == document else json.dumps([question, document], ensure_ascii=False)


def _with_prefixes(found: Manifest, given: Given, question: str, document: str) -> Manifest:
    question = question if given.question_prefix is None else given.question_prefix
    document = document if given.document_prefix is None else given.document_prefix
    return replace(
        found,
        fingerprint=replace(found.fingerprint, prefix=joined(question, document)),
        question_prefix=question,
        document_prefix=document,
        languages=given.languages or found.languages,
    )


def _chosen(path: Path) -> tuple[Path, Path]:
    """The folder and the graph in it."""
    if path.suffix == ".onnx" and path.is_file():
        return (path.parent.parent if path.parent.name == "onnx" else path.parent), path
    if not path.is_dir():
        raise ModelMissing(
            f"the model folder {path} is not there", hint="Set embedding.model to a folder that holds an ONNX encoder."
        )
    graphs = sorted([*path.glob("*.onnx"), *path.glob("onnx/*.onnx")])
    if not graphs:
        raise ModelMissing(
            f"there is no .onnx file in {path}, nor in its onnx folder",
            hint="Export the model, for example with `optimum-cli export onnx --task feature-extraction`.",
        )
    if len(graphs) > 1:
        names = ", ".join(str(graph.relative_to(path)) for graph in graphs)
        raise EmbeddingError(
            f"{path} holds {len(graphs)} graphs: {names}",
            hint=f"Name the one that is meant, as in embedding.model = {str(graphs[0])!r}.",
        )
    return path, graphs[0]


def _described(folder: Path, path: Path, given: Given) -> Manifest:
    model, tokenizer = _hashed(folder, path), _hashed(folder, folder / TOKENIZER)
    try:
        signature = read_signature(path)
    except (OSError, ValueError) as error:
        raise EmbeddingError(
            f"{path} cannot be read as an ONNX graph: {error}", hint="Copy or export the file again."
        ) from error
    if signature.external:
        raise EmbeddingError(
            f"{path} keeps its weights in another file, which could change after it was checked",
            hint="Export the model into one file; a quantised one is small enough.",
        )
    pooling, dense = _pooling(folder)
    graph = graph_of(path, signature, given.pooling or pooling)
    if dense and not graph.pooled:
        raise EmbeddingError(
            f"modules.json in {folder} names a Dense layer that the graph does not contain",
            hint="Export the model as a whole, with an output named sentence_embedding.",
        )
    fingerprint = Fingerprint(
        # Not the folder: the same files elsewhere make the same vectors.
        name=f"onnx:{model.sha256[:12]}",
        sha256=f"{model.sha256}+{tokenizer.sha256}",
        dimension=_dimension(folder, graph, given),
        pooling=graph.pooling,
        prefix="",
        normalised=True,
        max_tokens=given.max_tokens or _max_tokens(folder),
    )
    prompts = _read(folder, "config_sentence_transformers.json")
    found = prompts.get("prompts")
    if not isinstance(found, dict):
        found = {}
    usual = found.get(prompts.get("default_prompt_name"), "")
    document = found.get("document", found.get("passage", usual))
    manifest = Manifest(folder, model, tokenizer, fingerprint, (), graph)
    return _with_prefixes(manifest, given, str(found.get("query", usual)), str(document))


def _hashed(folder: Path, path: Path) -> ModelFile:
    try:
        with path.open("rb") as stream:
            digest = hashlib.file_digest(stream, "sha256").hexdigest()
            return ModelFile(path.relative_to(folder).as_posix(), digest, stream.tell())
    except OSError as error:
        missing = isinstance(error, FileNotFoundError)
        raise ModelMissing(
            f"{path} {'is not there' if missing else f'cannot be read: {error.strerror or error}'}",
            hint="Copy the tokenizer.json of the same model beside the graph; no other format is read."
            if missing and path.name == TOKENIZER
            else "Check the file and who may read it.",
        ) from error


def _pooling(folder: Path) -> tuple[Literal["mean", "cls"] | None, bool]:
    """How the files say that tokens are pooled, and whether a layer of weights comes after it."""
    modules = [module for module in _read(folder, "modules.json", list) if isinstance(module, dict)]
    kinds = [str(module.get("type", "")).rpartition(".")[2] for module in modules]
    place = next((module.get("path", "") for module, kind in zip(modules, kinds, strict=True) if kind == "Pooling"), "")
    found = _read(folder, f"{place or '1_Pooling'}/config.json")
    modes = [name for name, wanted in found.items() if name.startswith("pooling_mode_") and wanted is True]
    if isinstance(found.get("pooling_mode"), str):
        modes = [found["pooling_mode"]]
    if not modes:
        return None, "Dense" in kinds
    if len(modes) > 1 or modes[0] not in _POOLINGS:
        raise EmbeddingError(
            f"the model in {folder} pools by {', '.join(modes)}; only the mean and the first token are known",
            hint="Export it with its pooling inside the graph, as an output named sentence_embedding.",
        )
    return _POOLINGS[modes[0]], "Dense" in kinds


def _dimension(folder: Path, graph: Graph, given: Given) -> int:
    files = {
        "the graph": graph.dimension,
        "embedding.dimension": given.dimension,
    }
    if graph.dimension is None and given.dimension is None:
        said = _read(folder, "1_Pooling/config.json").get("word_embedding_dimension")
        files["the model's files"] = said or _read(folder, "config.json").get("hidden_size")
    told = {source: value for source, value in files.items() if isinstance(value, int) and value > 0}
    if not told:
        raise EmbeddingError(
            f"neither the graph nor config.json in {folder} says how long the vectors are",
            hint="Set embedding.dimension.",
        )
    if len(set(told.values())) > 1:
        raise EmbeddingError(
            f"{folder}: {' but '.join(f'{source} says {value} dimensions' for source, value in told.items())}",
            hint="Leave embedding.dimension out.",
        )
    return next(iter(told.values()))


def _max_tokens(folder: Path) -> int:
    config = _read(folder, "config.json")
    positions = config.get("max_position_embeddings")
    if isinstance(positions, int) and config.get("model_type") in _OFFSET:
        positions -= 2
    said = (
        _read(folder, "sentence_bert_config.json").get("max_seq_length"),
        _read(folder, "tokenizer_config.json").get("model_max_length"),
        positions,
    )
    # Some files hold 1e30 for "no limit".
    limits = [value for value in said if isinstance(value, int) and 0 < value <= 1_000_000]
    return min(limits, default=_TOKENS)


def _read(folder: Path, name: str, kind: type[Any] = dict) -> Any:  # noqa: ANN401 - JSON
    """What the file holds; an empty `kind` if there is no such file."""
    path = folder / name
    try:
        found = json.loads(path.read_text("utf-8"))
    except (FileNotFoundError, NotADirectoryError):
        return kind()
    except (OSError, ValueError) as error:
        raise EmbeddingError(
            f"{path} cannot be read: {error}", hint="Copy it again, or leave it out and set embedding.pooling."
        ) from error
    if not isinstance(found, kind):
        raise EmbeddingError(f"{path} holds a {type(found).__name__}, not a {kind.__name__}", hint="Copy it again.")
    return found
