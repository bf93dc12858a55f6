"""Which tool a request means: a score of meaning and words for every backend, and the lead of the first."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final, Literal, Protocol

import numpy as np

from agora.errors import InvalidInput
from agora.ports.encoder import Vector
from agora.router.catalogue import Catalogue, Matrix
from agora.router.lexical import Floats, Mask, Rows
from agora.router.texts import questions

WORDS: Final = 0.6
"""Weight of the words that a tool shares with the request, beside its cosine, which weighs 1."""

SERVER: Final = 0.8
"""Weight of the cosine of the backend's own texts, beside its tools."""

NAME: Final = 0.15
"""Weight of the words that the backend's name and headline share with the request."""

BREADTH: Final = 0.3
"""How much of the tools' part is the mean of the best three; the rest is the best one."""

PART: Final = 0.3
"""How much of a score is that of the part of the request that fits best; the rest is that of the whole."""

SCALE: Final = 0.58
"""Brings scores to where the thresholds of the settings, which hold for score and margin together, have their rates."""

NOTHING: Final = 0.3
ALONE: Final = 0.5
"""What the first must lead over at least, and what it must if it is the only one: a lead over nothing is none. Of
functions of BFCL that are alone, .78 are called by requests that they fit and .14 by others that sound like them."""

_DIGITS = 6
"""Digits that count: sums of the same numbers may differ beyond them, and the order must not."""


@dataclass(frozen=True, slots=True)
class Candidate:
    """A backend and the tool of it that fits best, or one tool of a ranking of tools.

    `score` is what it stands by; `margin` how far the first leads over the second, as a share of its score, and 0 for
    all others. `cosine` and `lexical` are those of the tool and the whole request. `parts`: what the score is made of.
    """

    backend: str
    tool: str
    score: float
    cosine: float
    lexical: float
    margin: float = 0.0
    parts: Mapping[str, float] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Selection:
    """What a request may mean, best first, equal ones by name.

    `candidates`: backends, each with its best tool. `tools`: tools, whosever they are. `nearest`: the tool of the
    highest cosine. `unread`: backends without vectors of the question's encoder, which words alone could find.
    `degraded`: that is all of them, and meaning was not looked at.
    """

    candidates: tuple[Candidate, ...] = ()
    tools: tuple[Candidate, ...] = ()
    nearest: Candidate | None = None
    degraded: bool = False
    unread: tuple[str, ...] = ()


class Thresholds(Protocol):
    """From where on a call is made by a request alone; `agora.config.gateway.GatewaySettings` is one."""

    @property
    def mode(self) -> Literal["margin", "semantic"]:
        """What is compared with the thresholds."""
        ...

    @property
    def read_threshold(self) -> float:
        """Score and margin of a call that reads."""
        ...

    @property
    def write_threshold(self) -> float:
        """Score and margin of one that may write."""
        ...

    @property
    def semantic_threshold(self) -> float:
        """Cosine, in the mode `semantic`."""
        ...


def select(
    intent: str,
    catalogue: Catalogue,
    question_vector: Vector | Matrix | None,
    allowed: frozenset[str] | None = None,
    limit: int = 5,
) -> Selection:
    """The `limit` backends and the `limit` tools of `catalogue` that fit `intent` best.

    `question_vector`: a row for each of `agora.router.texts.questions(intent)`, or one vector, that of the whole, or
    None if there is no encoder to make them. Only backends in `allowed` are looked at, all if it is None; no other one
    moves a score, a margin or the weight of a word. Deterministic.

    Raises: InvalidInput if there are neither one vector nor as many as questions.
    """
    asked, vectors = _asked(intent, question_vector)
    names = list(catalogue.backends)
    seen = np.array([allowed is None or name in allowed for name in names], dtype=np.bool_) & (catalogue.sizes > 0)
    if not seen.any() or limit < 1:
        return Selection(degraded=vectors is None)
    return _Scored(asked, catalogue, vectors, seen).selection(limit)


def decide(selection: Selection, reads: Callable[[str, str], bool], settings: Thresholds) -> Candidate | None:
    """The candidate whose tool may be called by the request alone, or None: then somebody has to choose.

    `reads` says of a backend and a tool whether calling it changes nothing. What was found by words alone is not
    called: they are wrong too often.
    """
    if selection.degraded:
        return None
    if settings.mode == "semantic":
        nearest = selection.nearest
        return nearest if nearest is not None and nearest.cosine >= settings.semantic_threshold else None
    first = next(iter(selection.candidates), None)
    if first is None or first.backend in selection.unread:
        return None
    needed = settings.read_threshold if reads(first.backend, first.tool) else settings.write_threshold
    return first if first.score + first.margin >= needed else None


def _asked(intent: str, given: Vector | Matrix | None) -> tuple[tuple[str, ...], Matrix | None]:
    asked = questions(intent)
    if given is None:
        # The words of a part are words of the whole: parts are for vectors.
        return asked[:1], None
    vectors = np.atleast_2d(np.asarray(given, dtype=np.float32))
    if len(vectors) not in {1, len(asked)}:
        raise InvalidInput(
            "question_vector",
            f"the request has {len(asked)} parts with the whole",
            len(vectors),
            hint="Give the vector of each of questions(intent), or that of the intent alone.",
        )
    return asked[: len(vectors)], vectors


class _Scored:
    """Every backend and tool with its scores for one request; `seen` are the backends that count."""

    def __init__(self, asked: tuple[str, ...], catalogue: Catalogue, vectors: Matrix | None, seen: Mask) -> None:
        self._catalogue = catalogue
        self._names = list(catalogue.backends)
        self._owners: Rows = np.repeat(np.arange(len(self._names)), catalogue.sizes)
        self._seen = seen
        width = 0 if vectors is None else vectors.shape[1]
        self._unread = tuple(
            sorted(
                name
                for name, listed, counts in zip(self._names, catalogue.backends.values(), seen.tolist(), strict=True)
                if counts and (listed.vector is None or len(listed.vector) != width)
            )
        )
        self._degraded = len(self._unread) == int(seen.sum())
        rows = seen[self._owners]
        self._lexical = catalogue.words.coverage(asked, rows)
        self._named = catalogue.names.coverage(asked, seen)
        self._cosines: Floats = np.zeros_like(self._lexical)
        self._servers: Floats = np.zeros_like(self._named)
        if vectors is not None:
            servers, tools = catalogue.vectors(vectors.shape[1])
            # One dot product for each pair: its last digit depends on nothing but the two.
            self._cosines = np.vecdot(tools[:, np.newaxis, :], vectors[np.newaxis])
            self._servers = np.vecdot(servers[:, np.newaxis, :], vectors[np.newaxis])
        tools = self._cosines + np.float32(WORDS) * self._lexical
        self._offered = _offered(tools, self._owners, catalogue)
        self._wholes = (self._offered + SERVER * self._servers + NAME * self._named) / (1 + SERVER)
        self._scores = np.where(seen, np.maximum(_blended(self._wholes), 0), -np.inf)
        # Among many that are called alike a tool is known by whose it is, by the name if nothing else tells.
        whose = NAME * self._named if self._degraded else SERVER * self._servers
        ranked = np.asarray((tools + whose[self._owners]) / (1 + SERVER), dtype=np.float32)
        self._of_tools = np.where(rows, _blended(ranked), -np.inf)

    def selection(self, limit: int) -> Selection:
        """The best of them."""
        backends = _best(self._scores, limit, lambda place: self._names[place])

        def full_name(row: int) -> tuple[str, str]:
            return self._names[self._owners[row]], self._tool(row)

        rows = _best(self._of_tools, limit, full_name)
        nearest = _best(np.where(self._of_tools > -np.inf, self._cosines[:, 0], -np.inf), 1, full_name)
        leads = [_lead(self._scores), *[0.0] * len(backends)]
        return Selection(
            tuple(self._backend(place, lead) for place, lead in zip(backends, leads, strict=False)),
            tuple(self._ranked(row) for row in rows),
            None if self._degraded else self._ranked(nearest[0]),
            self._degraded,
            self._unread,
        )

    def _backend(self, place: int, lead: float) -> Candidate:
        start = int(self._catalogue.starts[place])
        own = self._of_tools[start : start + int(self._catalogue.sizes[place])]
        row = start + _best(own, 1, lambda each: self._tool(start + each))[0]
        parts = {
            "tools": self._offered[place, 0],
            "server": self._servers[place, 0],
            "name": self._named[place, 0],
            "whole": self._wholes[place, 0],
            "best_part": self._wholes[place].max(),
        }
        return Candidate(
            self._names[place],
            self._tool(row),
            round(float(self._scores[place]) * SCALE, _DIGITS),
            round(float(self._cosines[row, 0]), _DIGITS),
            round(float(self._lexical[row, 0]), _DIGITS),
            round(lead, _DIGITS),
            {name: round(float(value), _DIGITS) for name, value in parts.items()},
        )

    def _ranked(self, row: int) -> Candidate:
        return Candidate(
            self._names[self._owners[row]],
            self._tool(row),
            round(max(0.0, float(self._of_tools[row])) * SCALE, _DIGITS),
            round(float(self._cosines[row, 0]), _DIGITS),
            round(float(self._lexical[row, 0]), _DIGITS),
        )

    def _tool(self, row: int) -> str:
        owner = self._owners[row]
        names = self._catalogue.backends[self._names[owner]].names
        return names[row - int(self._catalogue.starts[owner])]


def _offered(tools: Floats, owners: Rows, catalogue: Catalogue) -> Floats:
    """By backend and question what its tools are worth: the best one and the mean of the best three."""
    some = catalogue.sizes > 0
    starts = catalogue.starts[some]
    found = np.zeros((len(catalogue.sizes), tools.shape[1]), dtype=np.float32)
    left, total, count = tools, np.zeros_like(found), np.zeros_like(found)
    for turn in range(3):
        best = np.full_like(found, -np.inf)
        best[some] = np.maximum.reduceat(left, starts, axis=0)
        there = best > -np.inf
        total += np.where(there, best, 0)
        count += there
        # Equal ones go together: copies of a tool are no breadth.
        left = np.where(left >= best[owners], np.float32(-np.inf), left)
        if turn == 0:
            found = np.where(there, best, 0)
    mean: Floats = np.divide(total, count, out=np.zeros_like(total), where=count > 0)
    offered: Floats = (1 - BREADTH) * found + BREADTH * mean
    return offered


def _blended(scores: Floats) -> Floats:
    """One score a row: of the whole request, and of the part that fits best."""
    if scores.shape[1] == 1:
        return scores[:, 0]
    blended: Floats = (1 - PART) * scores[:, 0] + PART * scores[:, 1:].max(axis=1)
    return blended


def _lead(scores: Floats) -> float:
    """How far the first is ahead of the second, as a share of its own score."""
    ahead = np.sort(scores[scores > -np.inf])[::-1][:2].tolist()
    first, second = (*ahead, ALONE)[:2]
    return max(0.0, (first - max(second, NOTHING)) / first) if first > 0 else 0.0


def _best(scores: Floats, limit: int, key: Callable[[int], Any]) -> list[int]:
    """Places of the `limit` highest of `scores` that are none of minus infinity, equal ones by `key`."""
    rounded = np.round(scores, _DIGITS)
    least = -np.inf if len(rounded) <= limit else np.partition(rounded, -limit)[-limit]
    places = np.flatnonzero((rounded >= least) & (rounded > -np.inf)).tolist()
    return sorted(places, key=lambda place: (-rounded[place], key(place)))[:limit]
