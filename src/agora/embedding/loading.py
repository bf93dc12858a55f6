from __future__ import annotations

import re
import time
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from agora.embedding.gate import Gate
from agora.embedding.graph import Graph
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
    graph: Graph | None = None
    before: int = 1
    after: int = 1
    """Special tokens that the tokenizer puts around a text."""

    @property
    def room(self) -> int:
        """Word pieces of a text at most: what the special tokens leave."""
        return self.max_tokens - self.before - self.after

    def offsets(self, text: str) -> list[tuple[int, int]]:
        """Where each word piece of `text` stands, in code points, without special tokens."""
        with self.gate:
            return self.tokenizer.encode(readable(text), add_special_tokens=False).offsets

    def ids(self, text: str) -> list[int]:
        """The token ids of `text`, cut to `max_tokens`, the special tokens included.

        The time depends on what is kept, not on the length of the text.
        """
        reach = _FIRST_READ
        while True:
            with self.gate:
                found = self.tokenizer.encode(readable(text[:reach]))
            if reach >= len(text):
                break
            # The last word may go on behind the cut; all before it is as in the whole text.
            words = found.word_ids[self.before : len(found.ids) - self.after]
            if words and sum(word != words[-1] for word in words) >= self.room:
                break
            reach *= 4
        ids = found.ids
        kept = self.before + self.room
        return ids if len(ids) <= self.max_tokens else ids[:kept] + ids[len(ids) - self.after :]

    def vector(self, ids: list[int]) -> Vector:
        """The vector of token ids: float32, L2-normalised, read-only."""
        vector: Vector
        with self.gate:
            if self.graph is None:
                vector = self.session.run(None, {"input_ids": np.array(ids, np.int64)})[0]
            else:
                vector = self.graph.run(self.session, ids)
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
    if hasattr(session, "_model_bytes"):
        # Kept by onnxruntime to build the session again on another provider, which is never asked for: 23 MB.
        session._model_bytes = None  # noqa: SLF001 - there is no public way to let them go
    around = _special(tokenizer) if manifest.graph else (1, 1)
    loaded = Loaded(session, tokenizer, gate, manifest.fingerprint.max_tokens, 0.0, manifest.graph, *around)
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
    ids = loaded.ids("ready")
    if manifest.graph:
        # The highest id, and as many as there may be: a tokenizer of another model, or a limit that is too high,
        # would fail later and only for some texts.
        highest = max(loaded.tokenizer.get_vocab(with_added_tokens=True).values(), default=0)
        ids = [*(ids * loaded.max_tokens)[: loaded.max_tokens - 1], highest]
    vector = loaded.vector(ids)
    wanted = (manifest.fingerprint.dimension,)
    if vector.shape != wanted or vector.dtype != np.float32 or not 0.999 < float(vector @ vector) < 1.001:
        source, hint = ("manifest promises", "Build the model again with scripts/build_model.py.")
        if manifest.graph:
            source, hint = ("files promise", f"Set embedding.dimension to {vector.shape[-1]}.")
        raise EmbeddingError(
            f"the model in {manifest.folder} gives {vector.dtype} of shape {vector.shape}, "
            f"its {source} unit vectors of float32 and shape {wanted}",
            hint=hint,
        )


def _special(tokenizer: Tokenizer) -> tuple[int, int]:
    """How many special tokens stand before and after a text."""
    mask = tokenizer.encode("a").special_tokens_mask
    if 0 not in mask:
        raise EmbeddingError(
            "the tokenizer makes no token of the letter a", hint="Copy the model's own tokenizer.json."
        )
    return mask.index(0), mask[::-1].index(0)


def readable(text: str) -> str:
    """`text` with lone surrogates, which no tokenizer takes, replaced one for one."""
    return _SURROGATE.sub("\N{REPLACEMENT CHARACTER}", text)
