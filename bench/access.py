"""What it costs a call to be told who makes it and what that may do, with and without access tables."""

from __future__ import annotations

import argparse
import itertools
import json
import statistics
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from agora.config.access import AccessTable
from agora.memory.access import require
from agora.model.access import Policy
from agora.protocol.context import Connection
from bench import machine

REPEATS = 7
CALLS = 5_000
GOAL_US = 50.0
_NUMBERS = itertools.count()


def main() -> None:
    """Measure, write."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path, required=True)
    options = parser.parse_args()
    figures = {name: measure(tables, named) for name, tables, named in cases()}
    report = {
        "machine": machine.describe(),
        "calls": CALLS,
        "repeats": REPEATS,
        "goal_us": GOAL_US,
        "cpu_us": figures,
    }
    options.out.parent.mkdir(parents=True, exist_ok=True)
    options.out.write_text(json.dumps(report, indent=2), encoding="utf-8")
    print(json.dumps(figures, indent=1))


def cases() -> list[tuple[str, list[AccessTable], int]]:
    """Name, tables, and how many namespaces the connection has named before."""
    few = [
        AccessTable(("*",), "admin", local=True),
        AccessTable(("{own}", "shared", "team-*"), "write", tokens=("ci",)),
        AccessTable(("shared",), "read", any=True),
    ]
    many = [*few, *(AccessTable((f"team-{n}-*", f"other-{n}"), "read", tokens=("ci",)) for n in range(97))]
    limited = [*few, AccessTable(("{own}", "shared"), "read", clients=("bench*",))]
    return [
        ("no tables", [], 0),
        ("3 tables", few, 0),
        ("3 tables, 10 namespaces named", few, 10),
        ("4 tables, one that limits", limited, 0),
        ("100 tables for one token", many, 0),
    ]


def measure(tables: Sequence[AccessTable], named: int) -> dict[str, dict[str, float]]:
    """CPU microseconds: of a call's caller with its namespaces, of one more check, and of a name's first look-up."""
    connection = Connection(at_ms=0, namespace="acme/web", door="http", token="ci", policy=Policy(tables))  # noqa: S106 - a name
    for n in range(named):
        connection.caller("bench", namespace=f"team-{n}")

    def whole_call() -> None:
        caller = connection.caller("bench", "1.0")
        require(caller, caller.scope.searched())
        caller.scope.visible()

    caller = connection.caller("bench", "1.0")
    return {
        "caller, check, visible namespaces": _summary(whole_call),
        "one check": _summary(lambda: require(caller, ("acme/web",))),
        "rights in a namespace not seen before": _summary(lambda: caller.scope.grants.level(f"new-{next(_NUMBERS)}")),
    }


def _summary(work: Callable[[], Any]) -> dict[str, float]:
    values = [_once(work) for _ in range(REPEATS)]
    return {"median": round(statistics.median(values), 2), "min": round(min(values), 2), "max": round(max(values), 2)}


def _once(work: Callable[[], Any]) -> float:
    began = time.thread_time()
    for _ in range(CALLS):
        work()
    return (time.thread_time() - began) * 1e6 / CALLS


if __name__ == "__main__":
    main()
