"""Build the tiny ONNX encoders that the tests load: tests/data/embedding/tiny, about 40 kB.

    python scripts/build_tiny_encoder.py        needs the dependency group `model`

They are bags of words: a table of one random vector a word, gathered and, in some, averaged. The same
version of `onnx` gives the same bytes.
"""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import numpy as np
from onnx import TensorProto, helper, numpy_helper, save

TARGET = Path(__file__).resolve().parents[1] / "tests/data/embedding/tiny"
WIDTH = 16
SPECIAL = ("[PAD]", "[UNK]", "[CLS]", "[SEP]")
WORDS = re.findall(
    r"\w+",
    "a after and are at bank boat by call cat checkout crosses deploy expired failed fish for had in is it key late"
    " limit lock noon of on order payments queue ready redis retry river roof server sleeps table text the three"
    " to token twice two warm was why zebra do because",
)
MARKS = tuple(".,:;!?(){}[]<>|='-_")
LETTERS = "abcdefghijklmnopqrstuvwxyz0123456789"


def vocabulary() -> dict[str, int]:
    """Each piece and its id."""
    pieces = dict.fromkeys([*SPECIAL, *WORDS, *MARKS, *LETTERS, *(f"##{letter}" for letter in LETTERS)])
    return {piece: number for number, piece in enumerate(pieces)}


def tokenizer(pieces: dict[str, int]) -> dict[str, Any]:
    """A BERT tokenizer, as `tokenizer.json` holds it."""

    def special(name: str) -> dict[str, Any]:
        return {"id": name, "ids": [pieces[name]], "tokens": [name]}

    def added(name: str) -> dict[str, Any]:
        flags = dict.fromkeys(("single_word", "lstrip", "rstrip", "normalized"), False)
        return {"id": pieces[name], "content": name, **flags, "special": True}

    ends = [{"SpecialToken": {"id": "[CLS]", "type_id": 0}}, {"Sequence": {"id": "A", "type_id": 0}}]
    ends.append({"SpecialToken": {"id": "[SEP]", "type_id": 0}})
    pair = [*ends, {"Sequence": {"id": "B", "type_id": 1}}, {"SpecialToken": {"id": "[SEP]", "type_id": 1}}]
    return {
        "version": "1.0",
        "truncation": {"direction": "Right", "max_length": 16, "strategy": "LongestFirst", "stride": 0},
        "padding": None,
        "added_tokens": [added(name) for name in SPECIAL],
        "normalizer": {
            "type": "BertNormalizer",
            "clean_text": True,
            "handle_chinese_chars": True,
            "strip_accents": None,
            "lowercase": True,
        },
        "pre_tokenizer": {"type": "BertPreTokenizer"},
        "post_processor": {
            "type": "TemplateProcessing",
            "single": ends,
            "pair": pair,
            "special_tokens": {name: special(name) for name in ("[CLS]", "[SEP]")},
        },
        "decoder": {"type": "WordPiece", "prefix": "##", "cleanup": True},
        "model": {
            "type": "WordPiece",
            "unk_token": "[UNK]",
            "continuing_subword_prefix": "##",
            "max_input_chars_per_word": 100,
            "vocab": pieces,
        },
    }


def table(rows: int) -> Any:
    """One direction a piece; those of [CLS] and [SEP] are short, or all texts would be alike.

    The seed is one that keeps the words of the contract tests apart: in sixteen dimensions not every one does.
    """
    found = np.random.default_rng(5).standard_normal((rows, WIDTH)).astype(np.float32)
    found[[SPECIAL.index("[CLS]"), SPECIAL.index("[SEP]")]] *= 0.05
    return found


def graph(kind: str, words: Any) -> Any:
    """A graph of one of the shapes that exports have."""
    batched = kind != "unbatched"
    axes = ["batch", "tokens"] if batched else ["tokens"]
    number = TensorProto.INT32 if kind == "sentence" else TensorProto.INT64
    inputs = [helper.make_tensor_value_info("input_ids", number, axes)]
    nodes = [helper.make_node("Gather", ["words", "input_ids"], ["rows"], axis=0)]
    name, shape = "last_hidden_state", [*axes, WIDTH]
    if kind == "tokens":
        inputs += [helper.make_tensor_value_info(each, number, axes) for each in ("attention_mask", "token_type_ids")]
        nodes += [
            helper.make_node("Add", ["attention_mask", "token_type_ids"], ["both"]),
            helper.make_node("Cast", ["both"], ["weights"], to=TensorProto.FLOAT),
            helper.make_node("Unsqueeze", ["weights", "last"], ["column"]),
            helper.make_node("Mul", ["rows", "column"], [name]),
        ]
    elif kind in {"sentence", "unbatched"}:
        name = "sentence_embedding" if batched else "out"
        shape = ["batch", WIDTH] if batched else [WIDTH]
        nodes.append(helper.make_node("ReduceMean", ["rows"], [name], axes=[-2], keepdims=0))
    elif kind == "images":
        inputs = [helper.make_tensor_value_info("pixel_values", TensorProto.FLOAT, ["batch", 3, 8, 8])]
        name, shape = "out", ["batch", WIDTH]
        nodes = [
            helper.make_node("ReduceMean", ["pixel_values"], ["mean"], axes=[2, 3], keepdims=0),
            helper.make_node("MatMul", ["mean", "words"], [name]),
        ]
    elif kind == "logits":
        name = "logits"
        nodes.append(helper.make_node("Identity", ["rows"], [name]))
    elif kind == "flat":
        # As many rows as it likes: neither one vector nor one a token.
        nodes.append(helper.make_node("Concat", ["rows", "rows"], [name], axis=1))
    elif kind == "deep":
        shape = ["batch", 1, "tokens", WIDTH]
        nodes.append(helper.make_node("Unsqueeze", ["rows", "last"], [name]))
    weights = [numpy_helper.from_array(words, "words")]
    weights.append(numpy_helper.from_array(np.array([1 if kind == "deep" else -1], np.int64), "last"))
    output = helper.make_tensor_value_info(name, TensorProto.FLOAT, shape)
    made = helper.make_graph(nodes, kind, inputs, [output], weights)
    return helper.make_model(made, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)


def main() -> None:
    """Write every file."""
    pieces = vocabulary()
    TARGET.mkdir(parents=True, exist_ok=True)
    words = table(len(pieces))
    for kind in ("tokens", "sentence", "unbatched", "flat"):
        save(graph(kind, words), TARGET / f"{kind}.onnx")
    for kind in ("images", "logits", "deep"):
        save(graph(kind, words[:3]), TARGET / f"{kind}.onnx")
    (TARGET / "tokenizer.json").write_text(json.dumps(tokenizer(pieces)) + "\n", "utf-8")
    for path in sorted(TARGET.iterdir()):
        print(f"{path.stat().st_size:7} {path.name}")


if __name__ == "__main__":
    main()
