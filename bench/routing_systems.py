"""Ways to find the server and the tool of a request: Agora's, and what is measured beside it."""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from agora.config.settings import EmbeddingSettings
from agora.embedding.choose import choose_encoder
from agora.model.deadline import Deadline
from agora.ports.encoder import Vector
from agora.router.catalogue import Catalogue, Matrix
from agora.router.select import select
from agora.router.texts import texts_of
from agora.router.vectors import TextVectors
from agora.text.analysis import analyse, analyse_query
from bench.routing_sets import Server

LONG = Deadline(1e6)
Scores = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Ranked:
    """Servers and tools, best first, at most five; the first server's score and lead, and the highest cosine's tool."""

    servers: list[str]
    tools: list[tuple[str, str]]
    score: float = 0.0
    margin: float = 0.0
    nearest: tuple[str, float] = ("", 0.0)


class Kept:
    """Vectors in a file, by the hash of their text; implements `agora.ports.tool_vectors.ToolVectors`."""

    def __init__(self, file: Path | None) -> None:
        self._file = file
        self._held: dict[bytes, Vector] = {}
        if file is not None and file.exists():
            with np.load(file) as held:
                self._held = {key.tobytes(): vector for key, vector in zip(held["keys"], held["vectors"], strict=True)}

    def get(self, hashes: Collection[bytes]) -> dict[bytes, Vector]:
        """As the port."""
        return {each: self._held[each] for each in hashes if each in self._held}

    def put(self, vectors: Mapping[bytes, Vector]) -> None:
        """As the port, in memory."""
        self._held |= vectors

    def save(self) -> None:
        """Write them to the file, if there is one."""
        if self._file is not None and self._held:
            keys = np.frombuffer(b"".join(self._held), dtype=np.uint8).reshape(-1, 32)
            np.savez(self._file, keys=keys, vectors=np.stack(list(self._held.values())))


class Texts:
    """The packaged encoder: vectors of texts, kept in a file, and of requests."""

    def __init__(self, file: Path | None) -> None:
        self._kept = Kept(file)
        self._encoder = choose_encoder(EmbeddingSettings())
        self._vectors = TextVectors(self._encoder, self._kept)
        self.name = self._encoder.fingerprint.name

    def of(self, texts: Sequence[str]) -> Matrix:
        """A row for each of `texts`."""
        return self._vectors.text_vectors(texts, LONG)

    def asked(self, intent: str) -> Matrix:
        """A row for the request and each of its parts."""
        return self._vectors.question_vectors(intent, LONG)

    def save(self) -> None:
        """Write what was encoded to the file."""
        self._kept.save()


class Agora:
    """What the gateway does."""

    def __init__(self, servers: Sequence[Server], texts: Texts) -> None:
        self.catalogue = Catalogue()
        for server in servers:
            vectors = texts.of(texts_of(server.name, server.description, server.tools))
            self.catalogue = self.catalogue.with_backend(server.name, server.description, server.tools, vectors)
        texts.save()

    def ask(self, intent: str, asked: Matrix | None, among: frozenset[str] | None = None) -> Ranked:
        """What `intent` finds among these servers, by words alone if there are no vectors."""
        found = select(intent, self.catalogue, asked, among)
        if not found.candidates:
            return Ranked([], [])
        first, nearest = found.candidates[0], found.nearest
        return Ranked(
            [each.backend for each in found.candidates],
            [(each.backend, each.tool) for each in found.tools],
            first.score,
            first.margin,
            ("", 0.0) if nearest is None else (nearest.backend, nearest.cosine),
        )


class Baselines:
    """BM25 (k1 1.2, b 0.75, stems, no function words), plain cosine, and their linear mix with the server's text."""

    def __init__(self, servers: Sequence[Server], texts: Texts) -> None:
        self._servers = [server.name for server in servers]
        self._tools = [(server.name, tool.name) for server in servers for tool in server.tools]
        place = {name: number for number, name in enumerate(self._servers)}
        self._owner = np.array([place[name] for name, _ in self._tools])
        said = [f"{server.name} {tool.name} {tool.description}" for server in servers for tool in server.tools]
        self._vectors = texts.of([each[:2000] for each in said])
        self._described = texts.of([f"{server.name} {server.description}"[:2000] for server in servers])
        texts.save()
        read = [analyse(each[:2000]) for each in said]
        self._lengths = np.array([each.length for each in read], dtype=np.float64)
        self._postings: dict[str, list[tuple[int, int]]] = defaultdict(list)
        for row, analysed in enumerate(read):
            for term, count in Counter(analysed.terms).items():
                self._postings[term].append((row, count))

    def ask(self, intent: str, asked: Matrix, among: frozenset[str] | None = None) -> dict[str, Ranked]:
        """What `intent` finds among these servers, by each of them."""
        seen = np.array([among is None or name in among for name in self._servers])
        words = self._bm25(intent)
        cosine = (self._vectors @ asked[0]).astype(np.float64)
        described = (self._described @ asked[0]).astype(np.float64)
        of_words, of_meaning = self._best(words), self._best(cosine)
        mixed = 0.5 * of_meaning + 0.3 * described + 0.2 * of_words / max(1e-9, float(of_words.max()))
        tools = 0.7 * cosine + 0.3 * words / max(1e-9, float(words.max()))
        return {
            "bm25": self._ranked(of_words, words, seen),
            "cosine": self._ranked(of_meaning, cosine, seen),
            "linear": self._ranked(mixed, tools, seen),
        }

    def _bm25(self, intent: str) -> Scores:
        found = np.zeros(len(self._tools))
        average = self._lengths.mean()
        for group in analyse_query(intent):
            held: dict[int, int] = {}
            for term in () if group.common else group.alternatives:
                for row, count in self._postings.get(term, ()):
                    held[row] = max(count, held.get(row, 0))
            rarity = math.log1p((len(self._tools) - len(held) + 0.5) / (len(held) + 0.5))
            for row, count in held.items():
                found[row] += rarity * count * 2.2 / (count + 1.2 * (0.25 + 0.75 * self._lengths[row] / average))
        return found

    def _best(self, scores: Scores) -> Scores:
        found = np.full(len(self._servers), -1.0)
        np.maximum.at(found, self._owner, scores)
        return found

    def _ranked(self, servers: Scores, tools: Scores, seen: NDArray[np.bool_]) -> Ranked:
        servers = np.where(seen, servers, -np.inf)
        tools = np.where(seen[self._owner], tools, -np.inf)
        order = np.argsort(-servers, kind="stable")[: min(5, int(seen.sum()))]
        rows = np.argsort(-tools, kind="stable")[:5]
        return Ranked(
            [self._servers[each] for each in order],
            [self._tools[row] for row in rows if tools[row] > -np.inf],
            float(servers[order[0]]) if len(order) else 0.0,
        )
