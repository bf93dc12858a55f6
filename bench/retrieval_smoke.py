"""A first honest figure: the service against BM25 alone and vectors alone, on three sets.

Documents are saved through the public service into a fresh store, shuffled by the seed; whoever retrieves sees a
question's text and nothing else. `any@k`: one gold document is among the first k; `all@k`: every one is.
"""

from __future__ import annotations

import argparse
import json
import math
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from agora.app.clock import SystemClock
from agora.embedding.onnx import OnnxEncoder, packaged_model
from agora.memory.notes import Notes
from agora.memory.ranking import VERSION
from agora.model.deadline import Deadline
from agora.model.note import Draft
from agora.model.query import Filter, Mode, Query
from agora.stores.sqlite.store import SqliteStore
from agora.testing import SilentLog
from agora.text.analysis import analyse_query
from bench import datasets, machine
from bench.fit_score import CALLER

LONG = Deadline(1e6)
DEPTH = 20
SETS = ("agentnotes:en", "agentnotes:it", "agentnotes:ru", "locomo", "scifact")


@dataclass(frozen=True, slots=True)
class Filled:
    """A store that holds one set, and which saved id is which document."""

    store: SqliteStore
    notes: Notes
    names: dict[str, str]


def main() -> None:
    """Fill, ask, score, write."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--sets", nargs="+", default=list(SETS))
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    report: dict[str, Any] = {"machine": machine.describe(), "ranking": VERSION, "seed": options.seed, "sets": {}}
    for name in options.sets:
        began = time.monotonic()
        data = datasets.load(options.data, name, options.seed)
        with tempfile.TemporaryDirectory(prefix="agora-smoke-", ignore_cleanup_errors=True) as folder:
            filled = _fill(Path(folder), data)
            rows = {kind: _score(data, ask) for kind, ask in _systems(filled).items()}
            filled.store.close()
        report["sets"][name] = {"questions": len(data.questions), "documents": len(data.documents), "systems": rows}
        print(f"{name}: {len(data.questions)} questions, {time.monotonic() - began:.0f} s", flush=True)
        for kind, row in rows.items():
            print(f"  {kind:9} {json.dumps(row)}", flush=True)
    options.out.parent.mkdir(parents=True, exist_ok=True)
    options.out.write_text(json.dumps(report, indent=2), encoding="utf-8")


def _fill(folder: Path, data: datasets.Set) -> Filled:
    encoder = OnnxEncoder(packaged_model("all-MiniLM-L6-v2-int8"))
    store = SqliteStore(folder / "agora.db", encoder.fingerprint, SystemClock())
    notes = Notes(store, encoder, SystemClock(), SilentLog(), model_seconds=1e6)
    names: dict[str, str] = {}
    for document in data.documents:
        saved = notes.save(Draft(document.text, "bench", document.title), CALLER, LONG)
        names.setdefault(saved.id, document.id)
    return Filled(store, notes, names)


def _systems(filled: Filled) -> dict[str, Callable[[str], list[str]]]:
    """Each system as a function from a question to document ids, best first."""

    def through(mode: Mode) -> Callable[[str], list[str]]:
        def ask(text: str) -> list[str]:
            query = Query(text, Filter(("bench",)), top_k=DEPTH, mode=mode, max_tokens=10_000_000)
            found = filled.notes.query(query, CALLER, LONG).hits
            # A near-copy that was folded stands where the hit stands that it was folded into.
            ids = [each for hit in found for each in (hit.note.id, *hit.similar)]
            return [filled.names[each] for each in ids][:DEPTH]

        return ask

    def bm25(text: str) -> list[str]:
        with filled.store.read(LONG) as reading:
            found = reading.text.matching(analyse_query(text), reading.among(Filter(("bench",))), DEPTH)
            notes = reading.by_row(found.rows.tolist())
        return [filled.names[notes[row].id] for row in found.rows.tolist()]

    return {"agora": through("hybrid"), "vectors": through("semantic"), "bm25": bm25}


def _score(data: datasets.Set, ask: Callable[[str], list[str]]) -> dict[str, float]:
    totals: dict[str, float] = {}
    for question in data.questions:
        found = ask(question.text)
        places = [place for place, each in enumerate(found, start=1) if each in question.gold]
        row = {"mrr": 1 / places[0] if places else 0.0, "ndcg@10": _ndcg(places, len(question.gold))}
        for k in (1, 5, 10, 20):
            inside = sum(place <= k for place in places)
            row |= {f"any@{k}": float(inside > 0), f"all@{k}": float(inside == len(question.gold))}
        for key, value in row.items():
            totals[key] = totals.get(key, 0.0) + value
    return {key: round(value / len(data.questions), 4) for key, value in totals.items()}


def _ndcg(places: list[int], gold: int) -> float:
    gain = sum(1 / math.log2(place + 1) for place in places if place <= 10)
    ideal = sum(1 / math.log2(place + 1) for place in range(1, min(gold, 10) + 1))
    return gain / ideal


if __name__ == "__main__":
    main()
