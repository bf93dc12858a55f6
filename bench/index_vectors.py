"""What the index benchmark searches: made-up vectors of any number, and real ones from the packaged model."""

from __future__ import annotations

import random
import re
import time
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from agora.embedding.onnx import OnnxEncoder, packaged_model
from agora.model.deadline import Deadline
from bench import datasets

Floats = NDArray[np.float32]

DIMENSION = 384
QUESTIONS = 200
SETS = ("agentnotes:en", "locomo", "xquad:en-en", "scifact", "tldr:en")
_SENTENCE = re.compile(r"(?<=[.!?])\s+|\n+")
_SHORTEST = 25
_PER_CLUSTER = 250
_BLOCK = 50_000
_LONG = Deadline(1e6)


@dataclass(frozen=True, slots=True)
class Searched:
    """Unit vectors and unit questions, float32; `origin` says what they are."""

    origin: str
    vectors: Floats
    questions: Floats


def clustered(count: int, seed: int = 1) -> Searched:
    """Clusters of about 250 under one random rotation, whose directions weigh as place ** -0.5, as in real embeddings.

    Within a cluster cosines are about .3 to .55: finding the ten nearest by one bit a dimension is no easier than on
    real embeddings. Questions are further members of the clusters.
    """
    rng = np.random.default_rng(seed)
    weights = (np.arange(1, DIMENSION + 1) ** -0.5).astype(np.float32)
    rotation = np.linalg.qr(rng.standard_normal((DIMENSION, DIMENSION)))[0].astype(np.float32)
    centres = rng.standard_normal((max(1, count // _PER_CLUSTER), DIMENSION), dtype=np.float32)
    clusters = rng.integers(0, len(centres), count + QUESTIONS)
    found = np.empty((count + QUESTIONS, DIMENSION), np.float32)
    for start in range(0, len(found), _BLOCK):
        chosen = clusters[start : start + _BLOCK]
        block = centres[chosen] + 1.5 * rng.standard_normal((len(chosen), DIMENSION), dtype=np.float32)
        block = (block * weights) @ rotation
        found[start : start + _BLOCK] = block / np.linalg.norm(block, axis=1, keepdims=True)
    return Searched("clustered", found[:count], found[count:])


def real(data: Path, cache: Path, seconds: float) -> Searched:
    """Sentences of the evaluation sets in `data`, and questions of theirs, as the packaged model encodes them.

    Encoding stops after so many seconds; the order is random, so what is left out is a sample. The result is kept in
    the file `cache` and read from there when it exists.
    """
    if not cache.exists():
        texts, asked = _texts(data)
        encoder = OnnxEncoder(packaged_model())
        ends = time.monotonic() + seconds
        vectors = []
        for text in texts:
            vectors.append(encoder.encode(text, _LONG))
            if time.monotonic() >= ends:
                break
        questions = [encoder.encode_question(text, _LONG) for text in asked]
        cache.parent.mkdir(parents=True, exist_ok=True)
        with cache.open("wb") as file:
            np.savez(file, vectors=np.stack(vectors), questions=np.stack(questions))
    with np.load(cache) as held:
        return Searched("real", held["vectors"], held["questions"])


def _texts(data: Path) -> tuple[list[str], list[str]]:
    """Distinct sentences and questions, both in random order."""
    sentences: dict[str, None] = {}
    questions: dict[str, None] = {}
    for name in SETS:
        loaded = datasets.load(data, name)
        for document in loaded.documents:
            pieces = (piece.strip() for piece in _SENTENCE.split(document.text))
            sentences.update(dict.fromkeys(piece for piece in pieces if len(piece) >= _SHORTEST))
        questions.update(dict.fromkeys(question.text for question in loaded.questions))
    rng = random.Random(1)
    texts, asked = list(sentences), list(questions)
    rng.shuffle(texts)
    rng.shuffle(asked)
    return texts, asked[:QUESTIONS]
