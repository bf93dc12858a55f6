from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from agora.embedding.signature import Signature, Value
from agora.errors import EmbeddingError
from agora.ports.encoder import Vector

Pooling = Literal["mean", "cls", "graph"]
"""Mean over the tokens, the first token, or what the graph itself does."""

_SENTENCE = "sentence_embedding"
_TOKENS = ("last_hidden_state", "token_embeddings")
_KNOWN = ("input_ids", "attention_mask", "token_type_ids", "position_ids")
_HINT = "Export the encoder alone, as sentence-transformers or Optimum do for feature extraction."


@dataclass(frozen=True, slots=True)
class Graph:
    """How to run a graph that is not our own: what it takes, which output counts, and what is left to do."""

    inputs: tuple[Value, ...]
    output: str
    pooled: bool
    """Whether the output is one vector; else it is one a token."""
    batched: bool
    """Whether a batch of texts goes in and out; it gets batches of one."""
    pooling: Pooling
    dimension: int | None
    """As the graph says; None if it leaves it open."""

    def run(self, session: Any, ids: list[int]) -> Vector:  # noqa: ANN401 - onnxruntime has no types
        """The vector of token ids: float32, L2-normalised.

        Raises: EmbeddingError if what comes out has not the shape that the graph promises; what onnxruntime raises.
        """
        feed = {each.name: self._input(each, ids) for each in self.inputs}
        found: NDArray[Any] = session.run([self.output], feed)[0]
        shape = found.shape
        if self.batched and shape[:1] == (1,):
            found = found[0]
        if found.ndim != (1 if self.pooled else 2) or (not self.pooled and len(found) != len(ids)):
            raise EmbeddingError(
                f"the output {self.output} has shape {shape} for {len(ids)} tokens: no vector, and not one a token",
                hint=_HINT,
            )
        wide = found.astype(np.float64)
        if not self.pooled:
            wide = wide[0] if self.pooling == "cls" else wide.mean(axis=0)
        length = float(np.linalg.norm(wide))
        if not np.isfinite(length) or length == 0:
            raise EmbeddingError(
                f"the output {self.output} is zero or not finite", hint="Half precision overflows: export in float32."
            )
        return (wide / length).astype(np.float32)

    def _input(self, value: Value, ids: list[int]) -> NDArray[Any]:
        rows = {
            "input_ids": ids,
            "attention_mask": [1] * len(ids),
            "token_type_ids": [0] * len(ids),
            "position_ids": list(range(len(ids))),
        }
        row = np.array(rows[value.name], value.element)
        return row[None] if self.batched else row


def graph_of(path: Path, signature: Signature, pooling: Literal["mean", "cls"] | None) -> Graph:
    """How to run the graph in `path`, whose tokens are pooled by `pooling` if it gives one vector a token.

    Raises: EmbeddingError if it is no text encoder, or if nothing says how to pool.
    """
    names = [each.name for each in signature.inputs]
    strange = [name for name in names if name not in _KNOWN]
    if "input_ids" not in names or strange:
        raise EmbeddingError(
            f"{path} is no text encoder: it takes {', '.join(names) or 'nothing'}, and of these only"
            f" {', '.join(_KNOWN)} are known",
            hint=_HINT,
        )
    ids = next(each for each in signature.inputs if each.name == "input_ids")
    wrong = [each for each in signature.inputs if each.element not in {"int64", "int32"}]
    if wrong or len(ids.shape) not in {1, 2} or any(len(each.shape) != len(ids.shape) for each in signature.inputs):
        raise EmbeddingError(
            f"{path} is no text encoder: its inputs are {_listed(signature.inputs)}, not whole numbers with one axis,"
            " or two for a batch",
            hint=_HINT,
        )
    batched = len(ids.shape) == 2
    output = _output(path, signature)
    axes = len(output.shape) - batched
    if axes not in {1, 2} or output.element not in {"float32", "float16", "float64"}:
        raise EmbeddingError(f"{path}: the output {output} is neither one vector nor one a token", hint=_HINT)
    if axes == 2 and pooling is None:
        raise EmbeddingError(
            f"{path} gives a vector for each token, and no file beside it says how to make one of them",
            hint="Set embedding.pooling to mean or cls, as the model's card says, or copy the model's modules.json and"
            " 1_Pooling folder.",
        )
    return Graph(
        signature.inputs, output.name, axes == 1, batched, "graph" if axes == 1 else pooling or "mean", output.shape[-1]
    )


def _output(path: Path, signature: Signature) -> Value:
    by_name = {each.name: each for each in signature.outputs}
    for name in (_SENTENCE, *_TOKENS):
        if name in by_name:
            return by_name[name]
    if len(by_name) != 1 or "logits" in next(iter(by_name)):
        raise EmbeddingError(
            f"{path} is no encoder: it gives {_listed(signature.outputs)}; none of them is {_SENTENCE} or {_TOKENS[0]}",
            hint=_HINT,
        )
    return signature.outputs[0]


def _listed(values: tuple[Value, ...]) -> str:
    return ", ".join(map(str, values)) or "nothing"
