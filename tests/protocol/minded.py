"""A model behind HTTP that every process can ask, and that a test can hold."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager

from tests.integration.embedding_server import PATIENCE, Asked, EmbeddingServer, Handler, vectors


class Held:
    """Texts that hold one word, and what became of them."""

    def __init__(self, word: str) -> None:
        self.word = word
        self.asked: list[str] = []
        self.entered = threading.Event()
        self.release = threading.Event()


class Minded(EmbeddingServer):
    """Answers at once, but for texts with a word that is held."""

    def __init__(self) -> None:
        super().__init__()
        self.usual = self._answer
        self._held: dict[str, Held] = {}

    @property
    def settings(self) -> dict[str, object]:
        """Of a server that asks this model, one passage a request."""
        return {
            "namespace.default": "acme/shop",
            "embedding.model": "openai:minded",
            "embedding.url": self.url,
            "embedding.dimension": self.encoder.fingerprint.dimension,
            "embedding.retries": 0,
            "embedding.batch": 1,
        }

    @contextmanager
    def holding(self, word: str) -> Iterator[Held]:
        """While the block runs, a text with that word waits for `release`."""
        held = Held(word)
        with self.lock:
            self._held[word] = held
        try:
            yield held
        finally:
            held.release.set()
            with self.lock:
                del self._held[word]

    def _answer(self, handler: Handler, asked: Asked) -> None:
        with self.lock:
            held = [each for each in self._held.values() if any(each.word in text for text in asked.texts)]
        for each in held:
            each.asked += asked.texts
            each.entered.set()
            each.release.wait(PATIENCE)
        vectors(handler, asked)
