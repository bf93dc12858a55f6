"""Writers and readers in processes of their own on one data folder: how many a second, and how long one waits.

Wall time, since it is about waiting. The encoder is a fake, so that the store counts and not the model. First 1, 2, 4
and 8 writers beside 4 readers, all as fast as they can; then one reader alone and beside a peer that writes once a
second, in turn. Questions are never repeated, and no cache answers them.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from agora.app.clock import SystemClock
from agora.errors import AgoraError
from agora.memory.notes import Notes
from agora.model.caller import Caller, Scope
from agora.model.deadline import Deadline
from agora.model.note import Draft
from agora.model.query import Filter, Query
from agora.stores.sqlite.store import SqliteStore
from agora.testing import FakeEncoder, SilentLog
from bench import machine
from bench.start_and_query import note, question

WRITERS = (1, 2, 4, 8)
READERS = 4
SECONDS = 5.0
NOTES = 1_000
ROUNDS = 6
ROUND = 2.0
"""Seconds of one round, alone or beside the peer; the second is long enough for two or three of its writes."""


def main() -> None:
    """Measure, write, print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path)
    parser.add_argument("--seconds", type=float, default=SECONDS)
    parser.add_argument("--worker", nargs=2, metavar=("FOLDER", "NAME"), help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.worker:
        _Worker(Path(options.worker[0]), options.worker[1]).obey()
        return
    with tempfile.TemporaryDirectory(prefix="agora-bench-", ignore_cleanup_errors=True) as folder:
        filled = Path(folder) / "filled"
        _fill(filled)
        figures = {
            "machine": machine.describe(),
            "notes": NOTES,
            "readers": READERS,
            "seconds": options.seconds,
            "writers": [_beside_readers(filled, Path(folder) / str(n), n, options.seconds) for n in WRITERS],
            "peer": _beside_peer(filled, Path(folder) / "peer"),
        }
    if options.out:
        options.out.parent.mkdir(parents=True, exist_ok=True)
        options.out.write_text(json.dumps(figures, indent=2), encoding="utf-8")
    print(json.dumps({"writers": figures["writers"], "peer": figures["peer"]}, indent=1))


class _Worker:
    """One process's store: a command a line in, an answer a line out."""

    def __init__(self, folder: Path, name: str) -> None:
        self._name = name
        self._encoder = FakeEncoder(384)
        self._store = SqliteStore(folder / "agora.db", self._encoder.fingerprint, SystemClock())
        self._notes = Notes(self._store, self._encoder, SystemClock(), SilentLog(), model_seconds=60)
        self._caller = Caller(Scope("bench", "argument"), name, f"session-{name}", "bench")
        self._random = random.Random(name)
        self._turn = 0

    def obey(self) -> None:
        """Work until the end of input."""
        print(json.dumps("ready"), flush=True)
        for line in sys.stdin:
            command, seconds, pause = json.loads(line)
            print(json.dumps(self._busy(getattr(self, command), seconds, pause)), flush=True)
        self._store.close()

    def save(self) -> None:
        self._notes.save(Draft(note(self._random), "bench"), self._caller, Deadline(60))

    def query(self) -> None:
        self._turn += 1
        text = question(self._turn * 100 + os.getpid() % 100)
        self._notes.query(Query(text, Filter(("bench", "shared"))), self._caller, Deadline(60))

    def _busy(self, work: Any, seconds: float, pause: float) -> dict[str, Any]:
        ends, waits, errors = time.perf_counter() + seconds, list[float](), list[str]()
        began = time.perf_counter()
        while (at := time.perf_counter()) < ends:
            try:
                work()
            except AgoraError as error:
                errors.append(str(error.__cause__ or error))
            waits.append((time.perf_counter() - at) * 1000)
            if pause:
                time.sleep(max(0.0, min(at + pause, ends) - time.perf_counter()))
        return {"waits": waits, "errors": errors, "seconds": time.perf_counter() - began}


class _Process:
    def __init__(self, folder: Path, name: str) -> None:
        command = [sys.executable, "-m", "bench.concurrency", "--worker", str(folder), name]
        self._process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)

    def answer(self) -> Any:
        assert self._process.stdout
        line = self._process.stdout.readline()
        if not line:
            raise RuntimeError(f"a worker ended with {self._process.wait()}")
        return json.loads(line)

    def tell(self, command: str, seconds: float, pause: float = 0.0) -> None:
        assert self._process.stdin
        self._process.stdin.write(json.dumps([command, seconds, pause]) + "\n")
        self._process.stdin.flush()

    def end(self) -> None:
        assert self._process.stdin
        self._process.stdin.close()
        self._process.wait(60)


def _fill(folder: Path) -> None:
    worker = _Worker(folder, "filling")
    for _ in range(NOTES):
        worker.save()
    worker._store.close()  # noqa: SLF001 - the worker of this process, which obeys nobody


def _started(filled: Path, folder: Path, names: list[str]) -> list[_Process]:
    """Processes that are ready, on a copy of the filled store."""
    shutil.copytree(filled, folder)
    found = [_Process(folder, name) for name in names]
    for each in found:
        each.answer()
        # The first question loads the index.
        each.tell("query", 0.1)
    for each in found:
        each.answer()
    return found


def _beside_readers(filled: Path, folder: Path, writers: int, seconds: float) -> dict[str, Any]:
    names = [*(f"writer {n}" for n in range(writers)), *(f"reader {n}" for n in range(READERS))]
    processes = _started(filled, folder, names)
    try:
        for place, each in enumerate(processes):
            each.tell("save" if place < writers else "query", seconds)
        told = [each.answer() for each in processes]
    finally:
        for each in processes:
            each.end()
    saves, queries = told[:writers], told[writers:]
    counts = [len(each["waits"]) for each in saves]
    errors = [error for each in told for error in each["errors"]]
    return {
        "writers": writers,
        "saves_per_second": _rate(saves),
        "save_wait_ms": _waits(saves),
        "smallest_share": round(min(counts) / (sum(counts) / writers), 3),
        "queries_per_second": _rate(queries),
        "query_wait_ms": _waits(queries),
        "locked": sum("locked" in error for error in errors),
        "errors": len(errors),
    }


def _beside_peer(filled: Path, folder: Path) -> dict[str, Any]:
    reader, peer = processes = _started(filled, folder, ["reader", "peer"])
    alone, beside = list[dict[str, Any]](), list[dict[str, Any]]()
    try:
        # In turn, so that a drift of the machine's speed touches both alike.
        for _ in range(ROUNDS):
            reader.tell("query", ROUND)
            alone.append(reader.answer())
            peer.tell("save", ROUND, 1.0)
            reader.tell("query", ROUND)
            beside.append(reader.answer())
            peer.answer()
    finally:
        for each in processes:
            each.end()
    rates = [(_rate([one]), _rate([other])) for one, other in zip(alone, beside, strict=True)]
    return {
        "alone_queries_per_second": statistics.median(rate[0] for rate in rates),
        "beside_queries_per_second": statistics.median(rate[1] for rate in rates),
        "times_slower": round(statistics.median(rate[0] / rate[1] for rate in rates), 3),
        "alone_wait_ms": _waits(alone),
        "beside_wait_ms": _waits(beside),
        "errors": sum(len(each["errors"]) for each in (*alone, *beside)),
    }


def _rate(told: list[dict[str, Any]]) -> float:
    return round(float(sum(len(each["waits"]) / each["seconds"] for each in told)), 1)


def _waits(told: list[dict[str, Any]]) -> dict[str, float]:
    waits = sorted(wait for each in told for wait in each["waits"])
    return {
        "median": round(statistics.median(waits), 3),
        "p99": round(waits[int(len(waits) * 0.99)], 3),
        "worst": round(waits[-1], 3),
    }


if __name__ == "__main__":
    main()
