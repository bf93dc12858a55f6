"""What a hit in memory, a hit on disk and a miss cost inside the service, beside the service without a cache."""

from __future__ import annotations

import argparse
import json
import random
import statistics
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from agora.app.clock import SystemClock
from agora.cache.disk import Disk
from agora.cache.results import TwoLevelCache
from agora.memory.notes import Notes
from agora.model.caller import Caller, Scope
from agora.model.deadline import Deadline
from agora.model.note import Draft
from agora.model.query import Filter, Query
from agora.stores.sqlite.store import SqliteStore
from agora.testing import FakeEncoder, SilentLog
from bench import machine
from bench.start_and_query import QUESTIONS, note

REPEATS = 5
CALLS = 200
CALLER = Caller(Scope("bench", "argument"), agent="bench", session="h", client="bench")
LONG = Deadline(1e6)


def main() -> None:
    """Fill a store, measure, write."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--notes", type=int, default=10_000)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="agora-bench-", ignore_cleanup_errors=True) as folder:
        figures = measure(Path(folder), options.notes)
    report = {"machine": machine.describe(), "notes": options.notes, "calls": CALLS, "cpu_ms": figures}
    options.out.parent.mkdir(parents=True, exist_ok=True)
    options.out.write_text(json.dumps(report, indent=2), encoding="utf-8")
    print(json.dumps(figures, indent=1))


def measure(folder: Path, size: int) -> dict[str, Any]:
    """CPU milliseconds per query: the encoder is a fake, so that only the service counts."""
    clock, encoder, rng = SystemClock(), FakeEncoder(384), random.Random(1)
    store = SqliteStore(folder / "agora.db", encoder.fingerprint, clock)
    disk = Disk(folder / "cache.db", SilentLog(), entries=10_000)
    cache = TwoLevelCache(clock, disk, entries=1_000, seconds=300, disk_seconds=86_400)
    plain = Notes(store, encoder, clock, SilentLog(), model_seconds=60)
    cached = Notes(store, encoder, clock, SilentLog(), model_seconds=60, cache=cache)
    for _ in range(size):
        plain.save(Draft(note(rng), "bench"), CALLER, LONG)
    queries = [Query(question, Filter(("bench", "shared"))) for question in QUESTIONS]

    def fresh_query(turn: int) -> Query:
        # Another floor is another key; it changes neither the work nor the answer.
        return Query(QUESTIONS[turn % len(QUESTIONS)], Filter(("bench", "shared")), min_score=turn * 1e-12)

    def empty_memory(turn: int) -> Query:
        cache.forget_memory()
        return queries[turn % len(queries)]

    for query in queries:
        cached.query(query, CALLER, LONG)
    disk.flush()
    counter = iter(range(1, 10**9))
    found = {
        "L1 hit": _per_call(cached, lambda turn: queries[turn % len(queries)]),
        "L2 hit": _per_call(cached, empty_memory),
    }
    # In turn, so that a drift of the machine's speed touches both alike.
    pairs = [
        (_once(plain, lambda _: fresh_query(next(counter))), _once(cached, lambda _: fresh_query(next(counter))))
        for _ in range(REPEATS)
    ]
    found["no cache"] = _summary([pair[0] for pair in pairs])
    found["miss"] = _summary([pair[1] for pair in pairs])
    ratios = [pair[1] / pair[0] for pair in pairs]
    store.close()
    cache.close()
    return found | {"miss / no cache": _summary(ratios)}


def _per_call(notes: Notes, make: Callable[[int], Query]) -> dict[str, float]:
    return _summary([_once(notes, make) for _ in range(REPEATS)])


def _once(notes: Notes, make: Callable[[int], Query]) -> float:
    queries = [make(turn) for turn in range(CALLS)] if make.__name__ != "empty_memory" else None
    total = 0.0
    for turn in range(CALLS):
        query = queries[turn] if queries is not None else make(turn)
        # Of this thread alone: the disk is written by another, off the query's path.
        began = time.thread_time()
        notes.query(query, CALLER, LONG)
        total += time.thread_time() - began
    return total * 1000 / CALLS


def _summary(values: list[float]) -> dict[str, float]:
    return {"median": round(statistics.median(values), 4), "min": round(min(values), 4), "max": round(max(values), 4)}


if __name__ == "__main__":
    main()
