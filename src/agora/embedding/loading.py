from __future__ import annotations

import re
import time
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from agora.embedding.gate import Gate
from agora.embedding.manifest import Manifest
from agora.errors import EmbeddingError
from agora.ports.encoder import Vector

if TYPE_CHECKING:
    from tokenizers import Tokenizer

_SURROGATE = re.compile("[\ud800-\udfff]")

_FIRST_READ = 2048
"""Code points of a long text that are tokenised first; 256 pieces of English are about 1,100."""


@dataclass(frozen=True, slots=True)
class Loaded:
    """A model in memory. Thread-safe: neither session nor tokenizer changes after loading."""

    session: Any
    tokenizer: Tokenizer
    gate: Gate
    max_tokens: int
    seconds: float

    def offsets(self, text: str) -> list[tuple[int, int]]:
        """Where each word piece of `text` stands, in code points, without special tokens."""
        with self.gate:
            return self.tokenizer.encode(readable(text), add_special_tokens=False).offsets

    def ids(self, text: str) -> list[int]:
        """The token ids of `text`, cut to `max_tokens`, the two special tokens included.

        The time depends on what is kept, not on the length of the text.
        """
        room, reach = self.max_tokens - 2, _FIRST_READ
        while True:
            with self.gate:
                found = self.tokenizer.encode(readable(text[:reach]))
            if reach >= len(text):
                break
            # The last word may go on behind the cut; all before it is as in the whole text.
            words = found.word_ids[1:-1]
            if words and sum(word != words[-1] for word in words) >= room:
                break
            reach *= 4
        ids = found.ids
        return ids if len(ids) <= self.max_tokens else [*ids[: room + 1], ids[-1]]

    def vector(self, ids: list[int]) -> Vector:
        """The vector of token ids: float32, L2-normalised, read-only."""
        with self.gate:
            vector: Vector = self.session.run(None, {"input_ids": np.array(ids, np.int64)})[0]
        vector.setflags(write=False)
        return vector


def load(manifest: Manifest, threads: int, gate: Gate) -> Loaded:
    """The model of a folder, ready to encode; nothing is written to stdout.

    The bytes that are hashed are the bytes that are loaded: there is no moment between check and use.

    Raises: ModelMissing, ModelTampered, EmbeddingError if the graph is not what the manifest says, and
    whatever onnxruntime and tokenizers raise.
    """
    with gate:
        return _load(manifest, threads, gate)


def _load(manifest: Manifest, threads: int, gate: Gate) -> Loaded:
    began = time.perf_counter()
    import onnxruntime  # noqa: PLC0415 - 0.1 s and 20 MB that only a process which encodes should pay
    from tokenizers import Tokenizer  # noqa: PLC0415 - as above

    tokenizer = Tokenizer.from_str(manifest.read(manifest.tokenizer).decode("utf-8"))
    # The upstream file pads to 128 tokens and cuts there; one text needs no padding and we cut ourselves.
    tokenizer.no_padding()
    tokenizer.no_truncation()

    onnxruntime.set_default_logger_severity(_ERROR)
    onnxruntime.disable_telemetry_events()
    session = onnxruntime.InferenceSession(
        manifest.read(manifest.model), _options(onnxruntime, threads), providers=["CPUExecutionProvider"]
    )
    loaded = Loaded(session, tokenizer, gate, manifest.fingerprint.max_tokens, 0.0)
    _try(loaded, manifest)
    return replace(loaded, seconds=time.perf_counter() - began)


_ERROR = 3
"""onnxruntime's severity: only errors, which go to stderr."""


def _options(onnxruntime: Any, threads: int) -> Any:  # noqa: ANN401 - onnxruntime has no types
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = threads
    options.inter_op_num_threads = 1
    options.log_severity_level = _ERROR
    # Waiting threads would otherwise burn a core between two texts.
    options.add_session_config_entry("session.intra_op.allow_spinning", "0")
    # A plan per text length is kept for ever and saves no time: 6 MB less without (ADR 2).
    options.enable_mem_pattern = False
    return options


def _try(loaded: Loaded, manifest: Manifest) -> None:
    """Encode one text, so that "ready" is a fact."""
    vector = loaded.vector(loaded.ids("ready"))
    wanted = (manifest.fingerprint.dimension,)
    if vector.shape != wanted or vector.dtype != np.float32 or not 0.999 < float(vector @ vector) < 1.001:
        raise EmbeddingError(
            f"the model in {manifest.folder} gives {vector.dtype} of shape {vector.shape}, "
            f"its manifest promises unit vectors of float32 and shape {wanted}",
            hint="Build the model again with scripts/build_model.py.",
        )


def readable(text: str) -> str:
    """`text` with lone surrogates, which no tokenizer takes, replaced one for one."""
    return _SURROGATE.sub("\N{REPLACEMENT CHARACTER}", text)
