"""Fit the constants of the relevance score and compare it with its parts, on real questions.

Every set is saved through the public service into a fresh store; each question's candidates, their cosine and their
coverage are collected. One logistic is fitted for sets that the encoder reads and one for the others: its direction by
a listwise softmax (which candidate is right), its scale and bias by logistic regression over the first hit of each
question, questions of other sets included, which no document here answers: a score says how often a first hit with such
evidence is right. All sets weigh the same. Questions are split in two by the seed: constants come from one half,
figures from the other.
"""

from __future__ import annotations

import argparse
import json
import tempfile
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from agora.app.clock import SystemClock
from agora.embedding.onnx import OnnxEncoder, packaged_model
from agora.memory.notes import Notes
from agora.memory.ranking import FOREIGN, NATIVE, rank
from agora.model.caller import Caller, Scope
from agora.model.deadline import Deadline
from agora.model.note import Draft
from agora.model.query import Filter
from agora.stores.sqlite.store import SqliteStore
from agora.testing import SilentLog
from agora.text.analysis import analyse_query
from bench import datasets, machine

Floats = NDArray[np.float64]
NATIVE_SETS = ("agentnotes:en", "xquad:en-en", "scifact", "cosqa:dev", "tldr:en", "locomo")
FOREIGN_SETS = ("agentnotes:it", "agentnotes:ru", "xquad:ru-ru", "squad_it")
NAMES = ("cosine", "coverage", "squared", "both")
CALLER = Caller(Scope("bench", "argument"), agent="bench", session="h", client="bench")
LONG = Deadline(1e6)
CANDIDATES = 100


@dataclass
class Candidates:
    """Features (cosine, coverage, its square, their product) and labels of one question's candidates."""

    features: Floats
    right: NDArray[np.bool_]
    gold: int


def main() -> None:
    """Collect, fit, compare, write."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--sets", nargs="+", default=[*NATIVE_SETS, *FOREIGN_SETS])
    parser.add_argument("--most", type=int, default=400, help="questions per set")
    parser.add_argument("--documents", type=int, default=2500, help="documents per set, gold ones first")
    options = parser.parse_args()
    groups = {
        "native": [name for name in options.sets if name in NATIVE_SETS],
        "foreign": [name for name in options.sets if name in FOREIGN_SETS],
    }
    collected = {}
    for names in groups.values():
        for place, name in enumerate(names):
            # A set whose questions none of these documents answers.
            collected[name] = collect(options, name, stranger=names[place - 1] if len(names) > 1 else None)
    halves = {name: (found[::2], found[1::2]) for name, found in collected.items()}

    def train(names: Sequence[str]) -> list[list[Candidates]]:
        return [halves[name][0] for name in names]

    fitted = {
        "native hybrid": fit(train(groups["native"]), (1, 0, 1, 0)),
        "foreign hybrid": fit(train(groups["foreign"]), (1, 1, 0, 1)),
        "semantic": fit(train(groups["native"]), (1, 0, 0, 0)),
        "lexical": fit(train(options.sets), (0, 1, 0, 0)),
    }
    figures = {}
    for group, names in groups.items():
        current = asdict((NATIVE if group == "native" else FOREIGN)["hybrid"])
        rankings = {
            "cosine": np.array([1.0, 0, 0, 0]),
            "coverage": np.array([0, 1.0, 0, 0]),
            "current": np.array([current[key] for key in NAMES]),
            "fitted": np.array([fitted[f"{group} hybrid"][key] for key in NAMES]),
        }
        for name in names:
            test = halves[name][1]
            rows = {kind: measure(test, weights) for kind, weights in rankings.items()}
            figures[name] = {"questions": sum(each.gold > 0 for each in test), **rows}
            told = "  ".join(
                f"{kind} r@1 {row['recall@1']:.3f} r@5 {row['recall@5']:.3f}" for kind, row in rows.items()
            )
            print(f"{name:15} n={figures[name]['questions']:4}  {told}")
    print(json.dumps(fitted, indent=1))
    report = {
        "machine": machine.describe(),
        "candidates": CANDIDATES,
        "documents": options.documents,
        "most": options.most,
        "weights": fitted,
        "figures": figures,
    }
    options.out.parent.mkdir(parents=True, exist_ok=True)
    options.out.write_text(json.dumps(report, indent=2), encoding="utf-8")


def collect(options: argparse.Namespace, name: str, stranger: str | None) -> list[Candidates]:
    """The candidates of every question of a set, and of half as many of `stranger`, found through a fresh store."""
    data = datasets.load(options.data, name, most=options.most)
    unanswered: tuple[datasets.Question, ...] = ()
    if stranger is not None and stranger.partition(":")[0] != name.partition(":")[0]:
        asked = datasets.load(options.data, stranger, most=len(data.questions) // 2).questions
        unanswered = tuple(datasets.Question(question.text, frozenset()) for question in asked)
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
            for question in (*data.questions, *unanswered):
                vector, groups = encoder.encode(question.text, LONG), analyse_query(question.text)
                ranked = rank(reading, among, NATIVE["hybrid"], vector, groups, CANDIDATES)
                names = {row: ids.get(note.id) for row, note in reading.by_row([each.row for each in ranked]).items()}
                rows = [(max(0.0, each.cosine), each.coverage) for each in ranked]
                features = np.array([(c, v, v * v, c * v) for c, v in rows]).reshape(-1, 4)
                right = np.array([names[each.row] in question.gold for each in ranked], dtype=np.bool_)
                found.append(Candidates(features, right, len(question.gold)))
        store.close()
    print(f"{name}: {len(documents)} documents, {len(found)} questions, {time.monotonic() - began:.0f} s", flush=True)
    return found


def fit(sets: list[list[Candidates]], mask: tuple[int, ...]) -> dict[str, float]:
    """Direction by softmax over each question's candidates (Adam), then scale and bias by logistic regression."""
    use = np.array(mask, dtype=np.float64)
    usable = [[each for each in candidates if each.right.any()] for candidates in sets]
    weights, momentum, spread = 3.0 * use, np.zeros(len(use)), np.zeros(len(use))
    for step in range(1, 401):
        gradient = -1e-4 * weights
        for candidates in usable:
            for each in candidates:
                chance = _softmax(each.features @ weights)
                target = chance * each.right
                share = (target / target.sum() - chance) @ each.features
                gradient += share / (len(candidates) * len(usable))
        momentum = 0.9 * momentum + 0.1 * gradient
        spread = 0.99 * spread + 0.01 * gradient**2
        move = momentum / (1 - 0.9**step) / (np.sqrt(spread / (1 - 0.99**step)) + 1e-9)
        weights = use * np.maximum(0.0, weights + 0.4 * move / (1 + step / 150))
    scale, bias = _calibrate(sets, weights)
    scaled = {key: round(float(weight * scale), 2) for key, weight in zip(NAMES, weights, strict=True)}
    return {"bias": round(bias, 2), **scaled}


def _calibrate(sets: list[list[Candidates]], weights: Floats) -> tuple[float, float]:
    """Scale and bias under which the score is the share of such first hits that are right (damped Newton)."""
    values, labels_, shares = [], [], []
    for candidates in sets:
        for each in candidates:
            if len(each.right):
                sums = each.features @ weights
                first = int(sums.argmax())
                values.append(sums[first])
                labels_.append(each.right[first])
                shares.append(1 / len(candidates))
    labels, importance = np.array(labels_, dtype=np.float64), np.array(shares)
    x = np.column_stack([np.array(values), np.ones(len(importance))])
    beta, loss = np.array([0.0, 0.0]), np.inf
    for _ in range(200):
        z = x @ beta
        now = float((importance * (np.logaddexp(0, z) - labels * z)).sum())
        if loss - now < 1e-9:
            break
        loss, p = now, 1 / (1 + np.exp(-z))
        slope = x.T @ (importance * (labels - p))
        curve = (x * (importance * p * (1 - p))[:, None]).T @ x + 1e-6 * np.eye(2)
        step = np.linalg.solve(curve, slope)
        beta += step / max(1.0, float(np.abs(step).max()))
    return float(beta[0]), float(beta[1])


def measure(candidates: list[Candidates], weights: Floats) -> dict[str, float]:
    """Mean recall of the gold documents at 1 and 5 (any of them), and reciprocal rank of the first."""
    ranks = []
    for each in candidates:
        if not each.gold:
            continue
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
    shifted: Floats = np.exp(values - values.max())
    return shifted / float(shifted.sum())


if __name__ == "__main__":
    main()
