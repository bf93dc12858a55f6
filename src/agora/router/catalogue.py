from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import accumulate

import numpy as np
from numpy.typing import NDArray

from agora.errors import InvalidInput
from agora.model.backend import ToolDefinition
from agora.router import lexical
from agora.router.lexical import WordIndex
from agora.router.texts import PER_BACKEND, PER_TOOL, headline, words_of

Matrix = NDArray[np.float32]


@dataclass(frozen=True, slots=True)
class Listed:
    """One backend as it is looked for. `names`: of its tools, in the order of their rows. No vectors: None."""

    name: str
    description: str
    tools: Mapping[str, ToolDefinition]
    names: tuple[str, ...]
    vector: Matrix | None
    tool_vectors: Matrix | None


class Catalogue:
    """All that a call can be routed to, at one moment. Immutable; a change gives a new one that shares the rest.

    Tools are rows, counted through in the order of `backends`: those of a backend stand together, from `starts` on.
    """

    def __init__(
        self,
        backends: Mapping[str, Listed] | None = None,
        words: WordIndex | None = None,
        names: WordIndex | None = None,
    ) -> None:
        self.backends: Mapping[str, Listed] = {} if backends is None else backends
        self.words = WordIndex() if words is None else words
        """Of every tool."""
        self.names = WordIndex() if names is None else names
        """Of every backend's name and headline."""
        sizes = [len(listed.tools) for listed in self.backends.values()]
        self.sizes = np.array(sizes, dtype=np.int64)
        self.starts = np.array(list(accumulate(sizes, initial=0))[:-1], dtype=np.int64)
        # Stacked at the first need; two threads at once stack the same.
        self._stacked: tuple[Matrix, Matrix] | None = None

    def __len__(self) -> int:
        """Tools in it."""
        return int(self.sizes.sum())

    def with_backend(
        self, name: str, description: str, tools: Sequence[ToolDefinition], vectors: Matrix | None = None
    ) -> Catalogue:
        """With this backend, in the place of the one of the same name if there is one.

        `vectors`: unit vectors of `agora.router.texts.texts_of(name, description, tools)`, a row each, or None: then
        it is found by its words alone. Of several tools of one name the first counts.

        Raises: InvalidInput if there are not as many vectors as texts, or they are not as long as those of the others.
        """
        if vectors is not None:
            self._check(name, vectors, PER_BACKEND + PER_TOOL * len(tools))
        first: dict[str, int] = {}
        for place, tool in enumerate(tools):
            first.setdefault(tool.name, place)
        kept = [tools[place] for place in first.values()]
        server = of_tools = None
        if vectors is not None:
            server = _mean(vectors[:PER_BACKEND])
            pairs = vectors[PER_BACKEND:].reshape(len(tools), PER_TOOL, vectors.shape[1])
            of_tools = _mean(pairs[list(first.values())].swapaxes(0, 1))
        listed = Listed(name, description, {tool.name: tool for tool in kept}, tuple(first), server, of_tools)
        return Catalogue(
            {**self.backends, name: listed},
            self.words.exchanged(name, lexical.read([words_of(tool) for tool in kept])),
            self.names.exchanged(name, lexical.read([((name, 1.0), (headline(description), 1.0))])),
        )

    def without_backend(self, name: str) -> Catalogue:
        """Without this one; the same if there is none."""
        if name not in self.backends:
            return self
        left = {each: listed for each, listed in self.backends.items() if each != name}
        return Catalogue(left, self.words.exchanged(name, None), self.names.exchanged(name, None))

    def vectors(self, dimension: int) -> tuple[Matrix, Matrix]:
        """Those of the backends and those of the tools, a row each; zero where there is none of that length."""
        if self._stacked is None or self._stacked[0].shape[1] != dimension:
            servers = np.zeros((len(self.backends), dimension), dtype=np.float32)
            tools = np.zeros((len(self), dimension), dtype=np.float32)
            for place, (start, listed) in enumerate(zip(self.starts.tolist(), self.backends.values(), strict=True)):
                if listed.vector is not None and listed.tool_vectors is not None and len(listed.vector) == dimension:
                    servers[place] = listed.vector
                    tools[start : start + len(listed.tools)] = listed.tool_vectors
            self._stacked = servers, tools
        return self._stacked

    def _check(self, name: str, vectors: Matrix, rows: int) -> None:
        held = next((listed.vector for listed in self.backends.values() if listed.vector is not None), None)
        alone = held is None or set(self.backends) == {name}
        width = vectors.shape[-1] if held is None or alone else len(held)
        if vectors.shape != (rows, width):
            raise InvalidInput(
                "vectors",
                f"backend {name} has {rows} texts and wants vectors of the shape {(rows, width)}",
                vectors.shape,
                hint="Give one vector for each of texts_of(name, description, tools), all from one encoder.",
            )


def _mean(vectors: Matrix) -> Matrix:
    """The mean over the first axis, of unit length; zero stays zero."""
    total = vectors.sum(axis=0, dtype=np.float32)
    length = np.linalg.norm(total, axis=-1, keepdims=True)
    mean: Matrix = np.divide(total, length, out=np.zeros_like(total), where=length > 0)
    mean.flags.writeable = False
    return mean
