"""Agora's vector index with each kernel, beside numpy, faiss and hnswlib, in one run.

CPU milliseconds of one thread, medians over questions; the systems take turns, so that a drift of the machine's speed
touches all alike. Recall is against exact products in float64.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from agora.errors import ConfigError
from agora.stores.sqlite.kernels import choose_kernel
from agora.stores.sqlite.store import INDEX_FOLDER
from bench import index_goals, index_peers, machine
from bench.index_opening import opening
from bench.index_peers import Ask, Peer
from bench.index_store import Ids, Opened, fill, opened
from bench.index_vectors import Floats, Searched, clustered, real

LIMIT = 10
KERNELS = ("numpy", "simsimd", "numkong")
SHARES = (0.01, 0.1, 0.5)
LARGE = 500_000
"""Vectors from which on fewer questions are asked, fewer times."""
_BLOCK = 50_000
_ONE_THREAD = {f"{name}_NUM_THREADS": "1" for name in ("OPENBLAS", "OMP", "MKL", "VECLIB_MAXIMUM", "NUMEXPR")}
_LOOKS = 1000


def main() -> None:
    """Measure every size, write, print; in a process of its own if threads are not yet limited to one."""
    if any(os.environ.get(name) != "1" for name in _ONE_THREAD) or "OPENBLAS_CORETYPE" in os.environ:
        # A BLAS reads these when it is loaded, which is before this line.
        environment = os.environ | _ONE_THREAD
        environment.pop("OPENBLAS_CORETYPE", None)
        raise SystemExit(subprocess.call([sys.executable, "-m", "bench.index", *sys.argv[1:]], env=environment))
    options = _options()
    began = time.monotonic()
    options.out.parent.mkdir(parents=True, exist_ok=True)
    report: dict[str, Any] = {"machine": machine.describe(), "limit": LIMIT, "runs": []}
    for searched in _searched(options):
        with tempfile.TemporaryDirectory(prefix="agora-bench-", dir=options.work, ignore_cleanup_errors=True) as folder:
            report["runs"].append(measure(searched, Path(folder)))
        print(index_goals.told(report["runs"][-1]), flush=True)
        report |= {"goals": index_goals.reached(report["runs"]), "seconds": round(time.monotonic() - began, 1)}
        # After each of them: the largest takes longest, and may be interrupted.
        options.out.write_text(json.dumps(report, indent=1), encoding="utf-8")
    print(index_goals.summary(report))


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--sizes", type=lambda text: [int(size) for size in text.split(",")])
    parser.add_argument("--data", type=Path, help="folder of the evaluation sets: their sentences are searched too")
    parser.add_argument("--vectors", type=Path, help="file that keeps the vectors of --data from one run to the next")
    parser.add_argument("--seconds", type=float, default=240, help="time for encoding the sentences of --data")
    parser.add_argument("--work", type=Path, help="folder for the stores, 4 GB for a million; temporary by default")
    options = parser.parse_args()
    options.sizes = options.sizes or [10_000, 100_000, 1_000_000]
    return options


def _searched(options: argparse.Namespace) -> Iterator[Searched]:
    """One after the other: a million vectors are not held while the next ones are made."""
    for size in options.sizes:
        yield clustered(size)
    if options.data:
        with tempfile.TemporaryDirectory(prefix="agora-bench-") as folder:
            yield real(options.data, options.vectors or Path(folder) / "vectors.npz", options.seconds)


def measure(searched: Searched, folder: Path) -> dict[str, Any]:
    """Every figure about one set of vectors; `phases` are wall seconds."""
    vectors, large = searched.vectors, len(searched.vectors) >= LARGE
    questions = searched.questions[:100] if large else searched.questions
    rounds = 2 if large else 3
    phases = _Phases(f"{searched.origin} {len(vectors):,}")
    truth = _exact(vectors, questions)
    phases.end("exact answers")
    store = folder / "agora.db"
    fill(store, vectors)
    phases.end("store and index files")
    sidecar = sum(file.stat().st_size for file in (folder / INDEX_FOLDER).iterdir())
    peers, missing = _peers(vectors, lambda ask: _recall([ask(each, LIMIT) for each in questions], truth))
    phases.end("peers")
    with contextlib.ExitStack() as stack:
        desks: dict[str, Opened] = {}
        for kernel in KERNELS:
            try:
                choose_kernel(kernel)
            except ConfigError as error:
                missing[f"agora, {kernel}"] = error.message
                continue
            desk = desks[kernel] = stack.enter_context(opened(store, kernel))
            peers.append(Peer(f"agora, {kernel}", desk.ids, sidecar / len(vectors)))
        found = _in_turn({peer.name: peer.ask for peer in peers}, questions, truth, rounds)
        systems = {
            peer.name: found[peer.name] | {"bytes_per_vector": round(peer.bytes_per_vector, 1)} | peer.notes
            for peer in peers
        }
        phases.end("searches")
        asked = questions[: 20 if large else 40]
        filters = {str(share): _filtered(vectors, asked, share, desks, rounds) for share in SHARES}
        phases.end("filtered searches")
        empty = _empty(next(iter(desks.values())))
    starts = opening(store, questions, folder, rows=1 if large else 3)
    phases.end("fresh processes")
    return {
        "origin": searched.origin,
        "vectors": len(vectors),
        "questions": len(questions),
        "rounds": rounds,
        "systems": systems,
        "left_out": missing,
        "filters": filters,
        "empty_check": empty,
        "opening": starts,
        "phases": phases.seconds,
    }


class _Phases:
    """Says on the screen what was done, and keeps how long it took."""

    def __init__(self, name: str) -> None:
        self.seconds: dict[str, float] = {}
        self._name, self._began = name, time.monotonic()

    def end(self, phase: str) -> None:
        now = time.monotonic()
        self.seconds[phase] = round(now - self._began, 1)
        self._began = now
        print(f"{self._name}: {phase} {self.seconds[phase]} s", file=sys.stderr, flush=True)


def _peers(vectors: Floats, recall: Callable[[Ask], float]) -> tuple[list[Peer], dict[str, str]]:
    """Those that can be had here, and why the others cannot."""
    peers, missing = [index_peers.numpy_float32(vectors), index_peers.numpy_vecdot(vectors)], {}
    makers: dict[str, Callable[[], Peer]] = {
        "faiss flat": partial(index_peers.faiss_flat, vectors),
        "hnswlib": partial(index_peers.hnsw, vectors, recall),
    }
    for name, make in makers.items():
        try:
            peers.append(make())
        except (ImportError, ValueError) as error:
            missing[name] = str(error)
    return peers, missing


def _filtered(
    vectors: Floats, questions: Floats, share: float, desks: dict[str, Opened], rounds: int
) -> dict[str, dict[str, float]]:
    """Searches among a random share of the rows, which is given as a sorted list."""
    count = len(vectors)
    among = np.sort(np.random.default_rng(2).choice(count, int(count * share), replace=False))
    asks: dict[str, Ask] = {"numpy float32, gathered": index_peers.filtered_float32(vectors, among)}
    for kernel, desk in desks.items():
        asks[f"agora, {kernel}"] = partial(desk.ids, among=among)
    return _in_turn(asks, questions, among[_exact(vectors[among], questions)], rounds)


def _empty(desk: Opened) -> dict[str, float]:
    """Microseconds of a read transaction that finds nothing new, of one that does not look, and the difference."""
    found: dict[str, list[float]] = {"look": [], "transaction": []}
    for _ in range(9):
        for name, call in (("look", desk.look), ("transaction", desk.transaction)):
            start = time.process_time_ns()
            for _ in range(_LOOKS):
                call()
            found[name].append((time.process_time_ns() - start) / 1000 / _LOOKS)
    looked, plain = (statistics.median(found[name]) for name in ("look", "transaction"))
    return {
        "with_look_us": round(looked, 2),
        "without_us": round(plain, 2),
        "check_us": round(
            statistics.median(a - b for a, b in zip(found["look"], found["transaction"], strict=True)), 2
        ),
    }


def _in_turn(asks: dict[str, Ask], questions: Floats, truth: Ids, rounds: int) -> dict[str, dict[str, float]]:
    """Recall, and CPU milliseconds a question: each asks all questions, then the next one does, and so some rounds."""
    taken: dict[str, list[float]] = {name: [] for name in asks}
    answers: dict[str, list[Ids]] = {name: [] for name in asks}
    for ask in asks.values():
        ask(questions[0], LIMIT)
    for _ in range(rounds):
        for name, ask in asks.items():
            for question in questions:
                start = time.process_time_ns()
                answer = ask(question, LIMIT)
                taken[name].append((time.process_time_ns() - start) / 1e6)
                answers[name].append(answer)
    return {
        name: _spread(values) | {"recall@10": round(_recall(answers[name][: len(questions)], truth), 4)}
        for name, values in taken.items()
    }


def _spread(values: Sequence[float]) -> dict[str, float]:
    tenths = statistics.quantiles(values, n=10)
    return {"cpu_ms": round(statistics.median(values), 4), "p10": round(tenths[0], 4), "p90": round(tenths[-1], 4)}


def _exact(vectors: Floats, questions: Floats) -> Ids:
    """The places of the nearest by products in float64, for each question."""
    asked = questions.astype(np.float64)
    scores, places = np.empty((len(asked), 0)), np.empty((len(asked), 0), np.int64)
    for start in range(0, len(vectors), _BLOCK):
        block = asked @ vectors[start : start + _BLOCK].astype(np.float64).T
        scores = np.concatenate([scores, block], axis=1)
        places = np.concatenate(
            [places, np.broadcast_to(np.arange(start, start + block.shape[1]), block.shape)], axis=1
        )
        best = np.argpartition(scores, -LIMIT, axis=1)[:, -LIMIT:] if scores.shape[1] > LIMIT else np.argsort(scores)
        scores, places = np.take_along_axis(scores, best, 1), np.take_along_axis(places, best, 1)
    return places


def _recall(answers: Sequence[Ids], truth: Ids) -> float:
    shared = [len(set(found.tolist()) & set(right)) for found, right in zip(answers, truth.tolist(), strict=True)]
    return sum(shared) / truth.size


if __name__ == "__main__":
    main()
