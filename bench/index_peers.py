"""What the index is compared with: plain numpy, and two libraries where they are installed."""

from __future__ import annotations

import importlib
import os
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from bench.index_store import Ids
from bench.index_vectors import Floats

Ask = Callable[[Floats, int], Ids]

_LARGEST_GRAPH = 100_000
"""Vectors up to which a graph is built: a million would take two cores a quarter of an hour."""
_BREADTHS = (20, 40, 80, 160, 320, 640)
_GOOD = 0.99


@dataclass(frozen=True, slots=True)
class Peer:
    """One way to find the nearest; `ask` gives their places in the matrix."""

    name: str
    ask: Ask
    bytes_per_vector: float
    notes: dict[str, Any] = field(default_factory=dict)


def numpy_float32(vectors: Floats) -> Peer:
    """All products, then a partition: what an index has to beat."""
    return Peer("numpy float32", lambda question, limit: _best(vectors @ question, limit), 4 * vectors.shape[1])


def numpy_vecdot(vectors: Floats) -> Peer:
    """The same by a function of numpy that does not go through BLAS's product of a matrix and a vector."""
    return Peer(
        "numpy vecdot", lambda question, limit: _best(np.vecdot(vectors, question), limit), 4 * vectors.shape[1]
    )


def filtered_float32(vectors: Floats, among: Ids) -> Ask:
    """The same over the rows that a filter leaves, gathered at each question."""
    return lambda question, limit: among[_best(vectors[among] @ question, limit)]


def faiss_flat(vectors: Floats) -> Peer:
    """Faiss's full scan, one thread. Raises: ImportError."""
    faiss = importlib.import_module("faiss")
    faiss.omp_set_num_threads(1)
    index = faiss.IndexFlatIP(vectors.shape[1])
    index.add(vectors)

    def ask(question: Floats, limit: int) -> Ids:
        found: Ids = index.search(question[np.newaxis], limit)[1][0]
        return found

    return Peer("faiss flat", ask, 4 * vectors.shape[1])


def hnsw(vectors: Floats, recall: Callable[[Ask], float]) -> Peer:
    """A graph, searched as broadly as a recall of .99 needs. Raises: ImportError; ValueError if it is not built."""
    hnswlib = importlib.import_module("hnswlib")
    count, dimension = vectors.shape
    if count > _LARGEST_GRAPH:
        raise ValueError(f"left out: building a graph of {count:,} vectors takes too long")
    index = hnswlib.Index(space="ip", dim=dimension)
    index.init_index(max_elements=count, M=16, ef_construction=100, random_seed=1)
    index.add_items(vectors, num_threads=os.cpu_count() or 1)
    index.set_num_threads(1)

    def ask(question: Floats, limit: int) -> Ids:
        found: Ids = index.knn_query(question, k=limit)[0][0].astype(np.int64)
        return found

    breadth = 0
    for breadth in _BREADTHS:
        index.set_ef(breadth)
        if recall(ask) >= _GOOD:
            break
    notes = {"M": 16, "ef_construction": 100, "ef": breadth}
    return Peer("hnswlib", ask, index.index_file_size() / count, notes)


def _best(scores: Floats, limit: int) -> Ids:
    if len(scores) <= limit:
        return np.argsort(-scores)
    best = np.argpartition(scores, len(scores) - limit)[len(scores) - limit :]
    return best[np.argsort(-scores[best])]
