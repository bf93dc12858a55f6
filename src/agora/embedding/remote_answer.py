from __future__ import annotations

import json
from typing import Any

import numpy as np

from agora.errors import EmbeddingError
from agora.ports.encoder import Vector

_PATH = "embedding.url must lead to an OpenAI-compatible API, as http://localhost:11434/v1 does."
_SERVER = "The server or its model is broken: look at its log, or take another model."


def vectors_of(body: bytes, kind: str, count: int, dimension: int | None, host: str) -> list[Vector]:
    """The `count` vectors in an answer, in the order of the texts: float32, L2-normalised, read-only.

    `dimension` is what their length must be; None takes what comes, if all are of one length.

    Raises: EmbeddingError for everything that is not exactly that.
    """
    who = f"the embedding server {host}"
    if kind != "application/json" and not kind.endswith("+json"):
        raise EmbeddingError(f"{who} answers {kind or 'something without a type'} and not JSON", hint=_PATH)
    try:
        data = json.loads(body)["data"]
        rows = _ordered(data)
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        raise EmbeddingError(f"{who} answers JSON without vectors ({type(error).__name__})", hint=_PATH) from error
    if len(rows) != count:
        raise EmbeddingError(f"{who} answers {len(rows)} vectors for {count} texts", hint=_SERVER)
    wanted = dimension
    vectors = []
    for row in rows:
        if not isinstance(row, list) or not all(type(number) in {float, int} for number in row):
            raise EmbeddingError(f"{who} answers a vector that is no list of numbers", hint=_SERVER)
        wanted = wanted or len(row)
        if len(row) != wanted or not row:
            raise EmbeddingError(
                f"{who} answers vectors of {len(row)} dimensions; {wanted} were expected",
                hint="Its model is not the one that the store was built with, or embedding.dimension is wrong:"
                " set both back, or migrate with `agora reembed`.",
            )
        vectors.append(_unit(row, who))
    return vectors


def _ordered(data: Any) -> list[Any]:  # noqa: ANN401 - JSON
    """The vectors by their `index`; where no row has one, as they stand."""
    if not isinstance(data, list):
        raise TypeError("data is no list")
    marks = [row.get("index") for row in data]
    if all(mark is None for mark in marks):
        return [row["embedding"] for row in data]
    if sorted(marks) != list(range(len(data))):
        raise ValueError("an index is missing or comes twice")
    return [row["embedding"] for row in sorted(data, key=lambda row: int(row["index"]))]


def _unit(row: list[float], who: str) -> Vector:
    try:
        wide = np.array(row, np.float64)
        with np.errstate(over="ignore"):
            length = float(np.linalg.norm(wide))
    except OverflowError:
        # A whole number of hundreds of digits.
        length = float("inf")
    if not np.isfinite(length) or length == 0:
        raise EmbeddingError(f"{who} answers a vector that is zero or not finite", hint=_SERVER)
    vector: Vector = (wide / length).astype(np.float32)
    vector.setflags(write=False)
    return vector
