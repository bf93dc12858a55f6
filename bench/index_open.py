"""What a fresh process pays until its first answer: `python -m bench.index_open STORE QUESTION --started SECONDS`.

Prints one JSON object. Run by `bench.index`, once for each way of opening.
"""

from __future__ import annotations

import argparse
import json
import time
from pathlib import Path
from typing import Any

import numpy as np

from bench.index_store import LONG, opened

_QUERIES = 50


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("store", type=Path)
    parser.add_argument("questions", type=Path)
    parser.add_argument("--folder", type=Path, help="where the files of the index are, if not beside the store")
    parser.add_argument("--started", type=float, required=True, help="time.time() when this process was started")
    options = parser.parse_args()
    questions = np.load(options.questions)
    before = _memory()
    with opened(options.store, folder=options.folder) as desk:
        wall, cpu = time.perf_counter(), time.process_time()
        with desk.store.source(LONG) as source, desk.index.follow(source, LONG) as view:
            size = view.size()
        figures: dict[str, Any] = {"open": _since(wall, cpu)}
        wall, cpu = time.perf_counter(), time.process_time()
        found = desk.ids(questions[0], 10)
        figures["first_query"] = _since(wall, cpu)
        figures["start_to_answer_wall_ms"] = round((time.time() - options.started) * 1000, 1)
        for question in questions[:_QUERIES]:
            desk.nearest(question, 10)
        after = _memory()
        figures |= {"passages": size, "problem": desk.index.details()["problem"], "found": len(found)}
        figures["memory_bytes"] = {name: after[name] - before[name] for name in after}
    print(json.dumps(figures))


def _since(wall: float, cpu: float) -> dict[str, float]:
    return {
        "wall_ms": round((time.perf_counter() - wall) * 1000, 3),
        "cpu_ms": round((time.process_time() - cpu) * 1000, 3),
    }


def _memory() -> dict[str, int]:
    """Resident bytes: of this process alone, and of files that all processes share. Empty where nobody tells."""
    try:
        lines = Path("/proc/self/status").read_text(encoding="ascii").splitlines()
    except OSError:
        return {}
    told = dict(line.split(":", 1) for line in lines if line.startswith(("RssAnon", "RssFile")))
    names = {"RssAnon": "private", "RssFile": "files"}
    return {names[name]: int(value.split()[0]) * 1024 for name, value in told.items()}


if __name__ == "__main__":
    main()
