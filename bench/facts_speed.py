"""What it costs to remember a fact, to recall it by its key, and to make the profile of a subject.

Three namespaces of one store: `spread`, 100 subjects with 100 keys each; `heap`, all keys on one subject; `chain`, one
key that is told another value again and again. The encoder is a fake, so that only the memory counts.
"""

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
from agora.memory.facts import FactMemory
from agora.model.caller import Caller, Scope
from agora.model.deadline import Deadline
from agora.model.fact import FactDraft, Recollection
from agora.ports.extractor import Extraction
from agora.stores.sqlite.store import SqliteStore
from agora.testing import FakeEncoder, SilentLog
from bench import machine

NAMESPACES = ("spread", "heap", "chain")
CALLER = Caller(Scope("spread", "argument", frozenset(NAMESPACES)), agent="bench", session="h", client="bench")
LONG = Deadline(1e6)
SUBJECTS = 100
LAST = 200
"""Writes at the end of each part that are measured."""


class Nothing:
    """An extractor for a bench that extracts nothing."""

    def extract(self, text: str, deadline: Deadline) -> Extraction:  # noqa: ARG002 - the port's form
        """There is nothing in it."""
        return Extraction((), "nothing")


def main() -> None:
    """Fill a store, measure, write."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--facts", type=int, default=10_000)
    parser.add_argument("--chain", type=int, default=5_000)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="agora-bench-", ignore_cleanup_errors=True) as folder:
        figures = measure(Path(folder), options.facts, options.chain)
    report = {
        "machine": machine.describe(),
        "facts": options.facts,
        "chain": options.chain,
        "cpu_ms": figures,
    }
    options.out.parent.mkdir(parents=True, exist_ok=True)
    options.out.write_text(json.dumps(report, indent=2), encoding="utf-8")
    print(json.dumps(figures, indent=1))


def measure(folder: Path, size: int, chain: int) -> dict[str, Any]:
    """CPU milliseconds a call, by what is asked."""
    clock, encoder, rng = SystemClock(), FakeEncoder(32), random.Random(1)
    store = SqliteStore(folder / "agora.db", encoder.fingerprint, clock)
    memory = FactMemory(store.facts(), encoder, clock, SilentLog(), Nothing(), model_seconds=60)

    def remember(namespace: str, subject: str, key: str, value: int) -> float:
        draft = FactDraft(namespace, subject, key, value)
        return spent(lambda: memory.remember(draft, CALLER, LONG))

    keys = size // SUBJECTS
    places = [(f"service {one}", f"key {other}") for one in range(SUBJECTS) for other in range(keys)]
    rng.shuffle(places)
    written = {
        "spread": [remember("spread", *place, number) for number, place in enumerate(places)],
        "heap": [remember("heap", "service", f"key {number}", number) for number in range(size)],
        "chain": [remember("chain", "service", "key", number) for number in range(chain)],
    }

    def recalled(namespace: str, calls: int = 200, **asked: Any) -> dict[str, float]:
        def one() -> float:
            wanted = {name: value() if callable(value) else value for name, value in asked.items()}
            return spent(lambda: memory.recall(Recollection((namespace,), **wanted), CALLER, LONG))

        one()
        return summary([one() for _ in range(calls)])

    def subject() -> str:
        return f"service {rng.randrange(SUBJECTS)}"

    def key() -> str:
        return f"key {rng.randrange(keys)}"

    figures: dict[str, Any] = {
        f"remember, last {LAST} of {name}": summary(told[-LAST:]) for name, told in written.items()
    }
    past = clock.now()
    figures |= {
        "recall by subject and key": recalled("spread", subject=subject, key=key),
        "recall by subject and key, a subject of them all": recalled("heap", subject="service", key=key),
        "profile of a subject": recalled("spread", subject=subject),
        "profile of a subject of them all": recalled("heap", 20, subject="service"),
        "recall by key of every subject": recalled("spread", 50, key=key),
        "recall of everything": recalled("spread", 20),
        "recall of everything, as of an instant": recalled("spread", 10, as_of=past),
        "recall of a long chain": recalled("chain", subject="service", key="key"),
        "recall of a long chain with its history": recalled(
            "chain", 5, subject="service", key="key", include_history=True
        ),
        "recall of a long chain as of an instant": recalled("chain", 20, subject="service", key="key", as_of=past),
        "subjects": summary(
            [spent(lambda: memory.subjects(("spread",), "service 1", 20, CALLER, LONG)) for _ in range(20)]
        ),
    }
    store.close()
    return figures


def spent(call: Callable[[], object]) -> float:
    """CPU milliseconds of this process."""
    began = time.process_time()
    call()
    return (time.process_time() - began) * 1000


def summary(times: list[float]) -> dict[str, float]:
    """The middle and the slow end."""
    ordered = sorted(times)
    return {
        "median": round(statistics.median(ordered), 3),
        "p95": round(ordered[int(len(ordered) * 0.95) - 1], 3),
    }


if __name__ == "__main__":
    main()
