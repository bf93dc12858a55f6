from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import asdict
from typing import Any

from agora.memory.duplicates import collapse
from agora.memory.packing import DEFAULT_BUDGET, pack
from agora.memory.ranking import VERSION, Ranked, Weights, candidates, rank
from agora.model.query import Answer, Hit, Query
from agora.ports.encoder import Vector
from agora.ports.log import Log
from agora.ports.records import Reading
from agora.text.analysis import Group
from agora.text.tokens import cost

_MOST = 640
"""Candidates of each index at the most, however many near-copies there are: what bounds a query's time."""


def search(
    reading: Reading, query: Query, weights: Weights, vector: Vector | None, groups: Sequence[Group], log: Log
) -> Answer:
    """The answer to `query` in one snapshot: filter, rank, floor, fold near-copies, pack."""
    among = reading.among(query.filter)
    limit = candidates(query.top_k)
    while True:
        ranked = rank(reading, among, weights, vector, groups, limit)
        total = len(ranked)
        if query.min_score is not None:
            ranked = [found for found in ranked if found.score >= query.min_score]
        places: dict[str, tuple[int, int]] = {}
        best = collapse(_hits(reading, ranked, weights, 2 * query.top_k + 10, places), query.top_k)
        # Near-copies fold into one: where they took the candidates' places, the next ones get a turn.
        if len(best) == query.top_k or len(ranked) < total or total < limit or limit >= _MOST:
            break
        limit = min(_MOST, 4 * limit)
    budget = DEFAULT_BUDGET if query.max_tokens is None else query.max_tokens
    packed, squeezed = pack(best, budget, lambda hit: reading.span(*places[hit.note.id]))
    log.debug(
        "query stages",
        mode=query.mode,
        words=len(groups),
        filtered=None if among.rows is None else len(among.rows),
        candidates=total,
        above_floor=len(ranked),
        folded=sum(len(hit.similar) for hit in best),
        returned=len(packed),
        squeezed=squeezed,
        sequence=reading.sequence,
        ranking=VERSION,
    )
    omitted = len(ranked) - len(packed) - sum(len(hit.similar) for hit in packed)
    return Answer(packed, omitted, query.filter.namespaces, reading.sequence, query.mode)


def _hits(
    reading: Reading, ranked: Sequence[Ranked], weights: Weights, block: int, places: dict[str, tuple[int, int]]
) -> Iterator[Hit]:
    """The hits of `ranked` in order, read `block` at a time as they are asked for; `places` learns of each."""
    for start in range(0, len(ranked), block):
        pool = ranked[start : start + block]
        notes = reading.by_row([found.row for found in pool])
        for found in pool:
            if (note := notes.get(found.row)) is not None:
                places[note.id] = (found.row, found.passage)
                yield Hit(note, found.score, note.content, False, cost(note.content), parts=_parts(found, weights))  # noqa: FBT003 - not cut yet


def _parts(found: Ranked, weights: Weights) -> dict[str, Any]:
    return {
        "cosine": round(found.cosine, 4),
        "coverage": round(found.coverage, 4),
        "bm25": round(found.bm25, 4),
        "words": list(found.words),
        "weights": {name: weight for name, weight in asdict(weights).items() if weight},
        "ranking": VERSION,
    }
