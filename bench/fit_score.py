"""Fit the constants of the relevance score and compare it with its parts, on real questions.

Every set is saved through the public service into a fresh store; each question's candidates, their cosine and their
coverage are collected, then one logistic is fitted: its direction by a listwise softmax (which candidate is right),
its scale and bias by plain logistic regression (how likely it is right), all sets weighing the same. Questions are
split in two by the seed: constants come from one half, figures from the other.
"""

from __future__ import annotations

import argparse
import json
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bench import datasets, machine
from agora.app import SystemClock
from agora.embedding.onnx import OnnxEncoder, packaged_model
from agora.memory.notes import Notes
from agora.memory.ranking import CANDIDATES, WEIGHTS, rank
from agora.model.caller import Caller, Scope
from agora.model.deadline import Deadline
from agora.model.note import Draft
from agora.model.query import Filter
from agora.stores.sqlite.store import SqliteStore
from agora.testing import SilentLog
from agora.text.analysis import analyse_query

Floats = NDArray[np.float64]
SETS = (
    "agentnotes:en", "agentnotes:it", "agentnotes:ru", "xquad:en-en", "xquad:ru-ru", "squad_it", "scifact",
    "cosqa:dev", "tldr:en", "locomo",
)  # fmt: skip
CALLER = Caller(Scope("bench", "argument"), agent="bench", session="h", client="bench")
LONG = Deadline(1e6)


@dataclass
class Candidates:
    """Features (cosine, coverage, their product) and labels of one question's candidates."""

    features: Floats
    right: NDArray[np.bool_]
    gold: int


def main() -> None:
    """Collect, fit, compare, write."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--sets", nargs="+", default=list(SETS))
    parser.add_argument("--most", type=int, default=400, help="questions per set")
    parser.add_argument("--documents", type=int, default=2500, help="documents per set, gold ones first")
    options = parser.parse_args()
    collected = {name: collect(options, name) for name in options.sets}
    halves = {name: (found[::2], found[1::2]) for name, found in collected.items()}
    train = [half[0] for half in halves.values()]
    report: dict[str, Any] = {"machine": machine.describe(), "candidates": CANDIDATES}
    report["weights"] = {
        mode: fit(train, mask)
        for mode, mask in (("hybrid", (1, 1, 1)), ("semantic", (1, 0, 0)), ("lexical", (0, 1, 0)))
    }
    current = WEIGHTS["hybrid"]
    rankings = {
        "cosine": np.array([1.0, 0, 0]),
        "coverage": np.array([0, 1.0, 0]),
        "current": np.array([current.cosine, current.coverage, current.both]),
        "fitted": np.array([report["weights"]["hybrid"][key] for key in ("cosine", "coverage", "both")]),
    }
    report["figures"] = {
        name: {"questions": len(test), **{kind: figures(test, weights) for kind, weights in rankings.items()}}
        for name, (_, test) in halves.items()
    }
    options.out.parent.mkdir(parents=True, exist_ok=True)
    options.out.write_text(json.dumps(report, indent=2), encoding="utf-8")
    print(json.dumps(report["weights"], indent=1))
    for name, row in report["figures"].items():
        print(f"{name:15} n={row['questions']:4}", end="")
        for kind in rankings:
            print(
                f"  {kind} r@1 {row[kind]['recall@1']:.3f} r@5 {row[kind]['recall@5']:.3f} mrr {row[kind]['mrr']:.3f}",
                end="",
            )
        print()


def collect(options: argparse.Namespace, name: str) -> list[Candidates]:
    """The candidates of every question of a set, found through a fresh store."""
    data = datasets.load(options.data, name, most=options.most)
    wanted = {key for question in data.questions for key in question.gold}
    documents = sorted(data.documents, key=lambda document: document.id not in wanted)[: options.documents]
    encoder = OnnxEncoder(packaged_model("all-MiniLM-L6-v2-int8"))
    began = time.monotonic()
    with tempfile.TemporaryDirectory(prefix="agora-fit-", ignore_cleanup_errors=True) as folder:
        store = SqliteStore(Path(folder) / "agora.db", encoder.fingerprint, SystemClock())
        notes = Notes(store, encoder, SystemClock(), SilentLog(), model_seconds=1e6)
        ids: dict[str, str] = {}
        for document in documents:
            saved = notes.save(Draft(document.text, "bench", document.title), CALLER, LONG)
            ids.setdefault(saved.id, document.id)
        found = []
        with store.read(LONG) as reading:
            among = reading.among(Filter(("bench",)))
            for question in data.questions:
                ranked = rank(
                    reading, among, "hybrid", encoder.encode(question.text, LONG), analyse_query(question.text)
                )
                names = {row: ids.get(note.id) for row, note in reading.by_row([each.row for each in ranked]).items()}
                rows = [(max(0.0, each.cosine), each.coverage) for each in ranked]
                features = np.array([(c, v, c * v) for c, v in rows]).reshape(-1, 3)
                right = np.array([names[each.row] in question.gold for each in ranked], dtype=np.bool_)
                found.append(Candidates(features, right, len(question.gold)))
        store.close()
    print(f"{name}: {len(documents)} documents, {len(found)} questions, {time.monotonic() - began:.0f} s", flush=True)
    return found


def fit(sets: list[list[Candidates]], mask: tuple[int, int, int]) -> dict[str, float]:
    """Direction by softmax over each question's candidates, then scale and bias by logistic regression."""
    use = np.array(mask, dtype=np.float64)
    weights = 8.0 * use
    for step in range(1500):
        gradient, share = np.zeros(3), 0
        for candidates in sets:
            usable = [each for each in candidates if each.right.any()]
            for each in usable:
                chance = _softmax(each.features @ weights)
                target = each.right / each.right.sum()
                gradient += (target - chance) @ each.features / len(usable)
            share += bool(usable)
        weights = np.maximum(0.0, weights + 8.0 / (1 + step / 300) * use * (gradient / share - 2e-4 * weights))
    scale, bias = _calibrate(sets, weights)
    return {
        "bias": round(bias, 3),
        **{key: round(float(w * scale), 3) for key, w in zip(("cosine", "coverage", "both"), weights, strict=True)},
    }


def _calibrate(sets: list[list[Candidates]], weights: Floats) -> tuple[float, float]:
    """Scale and bias under which the score is the share of such candidates that are right (Newton's method)."""
    values = [np.concatenate([each.features @ weights for each in candidates]) for candidates in sets]
    labels = [np.concatenate([each.right for each in candidates]).astype(float) for candidates in sets]
    importance = np.concatenate(
        [np.full(len(value), 1 / len(candidates)) for value, candidates in zip(values, sets, strict=True)]
    )
    x = np.column_stack([np.concatenate(values), np.ones(len(importance))])
    y = np.concatenate(labels)
    beta = np.array([1.0, -float(weights.sum())])
    for _ in range(50):
        p = 1 / (1 + np.exp(-np.clip(x @ beta, -30, 30)))
        slope = x.T @ (importance * (y - p))
        curve = (x * (importance * p * (1 - p) + 1e-9)[:, None]).T @ x
        beta += np.linalg.solve(curve, slope)
    return float(beta[0]), float(beta[1])


def figures(candidates: list[Candidates], weights: Floats) -> dict[str, float]:
    """Mean recall of the gold documents at 1 and 5 (any of them), and reciprocal rank of the first."""
    ranks = []
    for each in candidates:
        order = np.argsort(-(each.features @ weights), kind="stable")
        places = np.flatnonzero(each.right[order])
        ranks.append(places[0] + 1 if len(places) else np.inf)
    found = np.array(ranks)
    return {
        "recall@1": round(float((found <= 1).mean()), 4),
        "recall@5": round(float((found <= 5).mean()), 4),
        "recall@10": round(float((found <= 10).mean()), 4),
        "mrr": round(float((1 / found).mean()), 4),
    }


def _softmax(values: Floats) -> Floats:
    shifted = np.exp(values - values.max())
    return shifted / shifted.sum()


if __name__ == "__main__":
    main()
