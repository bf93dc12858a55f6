"""Four agents at once: how even their calls are, what the processes weigh, and how far one agent can hold up another.

    python -m bench.fleet --out bench/results/fleet.json

Four clients make 2,500 mixed calls each (half of them queries, a quarter saves, then gets and statuses), one after the
other, through one shared server and then with a server each, on data folders of their own. Then one client makes calls
alone and beside others that flood the server, never read its answers, or send lines of a megabyte. Wall time: nothing
else should run beside it.
"""

from __future__ import annotations

import argparse
import itertools
import json
import random
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import psutil

from agora.daemon import control
from bench.machine import describe
from bench.start import Session

AGENTS = 4
CALLS = 2_500
PROBES = 400
_SUBJECTS = ("the billing service", "the staging database", "the login page", "the release script", "the image cache")
_FACTS = ("restarts", "times out", "needs a token", "is slow after deploys", "was moved", "fails on Windows")
_WHENS = ("on Sundays", "under load", "after a migration", "when the disk is full", "without a proxy")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path)
    parser.add_argument("--agora", type=Path, default=Path(sys.executable).with_name("agora"), help="the command")
    parser.add_argument("--calls", type=int, default=CALLS, help="calls of each client")
    parser.add_argument("--behave", help=argparse.SUPPRESS)
    parser.add_argument("--home", type=Path, help=argparse.SUPPRESS)
    options = parser.parse_args()
    command = [str(options.agora), "serve"]
    if options.behave:
        behave(options.behave, command, options.home)
        return
    figures: dict[str, Any] = {"agents": AGENTS, "calls": options.calls}
    with tempfile.TemporaryDirectory(prefix="agora-bench-") as folder:
        for name, arguments in (("shared", []), ("in_process", ["--in-process"])):
            home = Path(folder) / name
            home.mkdir()
            try:
                figures[name] = fleet([*command, *arguments], home, options.calls)
                if name == "shared":
                    figures["beside"] = interference(command, home)
            finally:
                control.stop(home)
    report = {"machine": describe(), **figures, "summary": summary(figures)}
    options.out.write_text(json.dumps(report, indent=1) + "\n", encoding="utf-8")
    print(json.dumps(report["summary"], indent=1))


def fleet(command: list[str], home: Path, calls: int) -> dict[str, Any]:
    """Milliseconds of every call by kind, and resident bytes of every process at the end."""
    sessions = [Session(command, home) for _ in range(AGENTS)]
    for session in sessions:
        session.handshake()
        tool(session, "agora_query", query="is the model there?")
    taken: list[tuple[str, float]] = []
    began = time.perf_counter()
    threads = [
        threading.Thread(target=_work, args=(session, random.Random(number), calls, taken))
        for number, session in enumerate(sessions)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    seconds = time.perf_counter() - began
    server = control.ask(home, "status")
    processes = [session.process.pid for session in sessions] + ([] if server is None else [int(server["pid"])])
    memory = [psutil.Process(pid).memory_info().rss for pid in processes]
    proportional = [psutil.Process(pid).memory_full_info().pss for pid in processes] if sys.platform == "linux" else []
    for session in sessions:
        session.end()
    kinds = sorted({kind for kind, _ in taken})
    return {
        "seconds": seconds,
        "ms": {kind: spread([ms for each, ms in taken if each == kind]) for kind in kinds},
        "all_ms": spread([ms for _, ms in taken]),
        "rss_bytes": memory,
        "pss_bytes": proportional,
    }


def spread(values: list[float]) -> dict[str, float]:
    """Count, median, 99th percentile and worst."""
    cuts = statistics.quantiles(values, n=100)
    return {
        "count": len(values),
        "p50": round(cuts[49], 3),
        "p99": round(cuts[98], 3),
        "worst": round(max(values), 3),
    }


def tool(session: Session, name: str, **arguments: Any) -> dict[str, Any]:
    """The structured result of one call."""
    session.send({"jsonrpc": "2.0", "id": 9, "method": "tools/call", "params": {"name": name, "arguments": arguments}})
    result: dict[str, Any] = session.receive()["result"]
    assert not result.get("isError"), result
    found: dict[str, Any] = result["structuredContent"]
    return found


def _work(session: Session, chance: random.Random, calls: int, taken: list[tuple[str, float]]) -> None:
    ids: list[str] = []
    for number in range(calls):
        text = f"{chance.choice(_SUBJECTS)} {chance.choice(_FACTS)} {chance.choice(_WHENS)}"
        draw = chance.random()
        began = time.perf_counter()
        if draw < 0.5 or not ids:
            kind = "query"
            tool(session, "agora_query", query=f"why {text}? {number % 50}", top_k=5)
            if not ids:
                ids.append(str(tool(session, "agora_save", content=f"{text}, seen {chance.random()}")["id"]))
                continue
        elif draw < 0.75:
            kind = "save"
            ids.append(str(tool(session, "agora_save", content=f"{text}, seen {chance.random()}")["id"]))
        elif draw < 0.9:
            kind = "get"
            tool(session, "agora_get", ids=[chance.choice(ids)])
        else:
            kind = "status"
            tool(session, "agora_status")
        taken.append((kind, 1000 * (time.perf_counter() - began)))


def interference(command: list[str], home: Path) -> dict[str, dict[str, float]]:
    """Milliseconds of one client's calls, alone and beside clients that behave badly, in processes of their own."""
    victim = Session(command, home)
    victim.handshake()
    _probe(victim)
    found = {"nobody": _probe(victim)}
    for name in BEHAVIOURS:
        with subprocess.Popen(
            [sys.executable, "-m", "bench.fleet", "--behave", name, "--agora", command[0], "--home", str(home)],
            stdout=subprocess.PIPE,
        ) as other:
            assert other.stdout
            other.stdout.readline()
            found[name] = _probe(victim)
            for child in psutil.Process(other.pid).children():
                child.kill()
            other.kill()
    victim.end()
    return found


def _probe(session: Session) -> dict[str, float]:
    taken = []
    for number in range(PROBES):
        began = time.perf_counter()
        session.call(number)
        taken.append(1000 * (time.perf_counter() - began))
    return spread(taken)


def behave(name: str, command: list[str], home: Path) -> None:
    """Be a client that behaves badly, until killed; a line says that it has begun."""
    session = Session(command, home)
    session.handshake()
    print("begun", flush=True)
    # The session's process is killed first.
    with suppress(OSError, ValueError):
        BEHAVIOURS[name](session)


def _lists(session: Session) -> None:
    _flood(session, "tools/list", {})


def _calls(session: Session) -> None:
    _flood(session, "tools/call", {"name": "agora_status", "arguments": {}})


def _flood(session: Session, method: str, params: dict[str, Any]) -> None:
    threading.Thread(target=_read_all, args=(session,), daemon=True).start()
    for number in itertools.count(100):
        session.send({"jsonrpc": "2.0", "id": number, "method": method, "params": params})


def _read_all(session: Session) -> None:
    with suppress(OSError, ValueError):
        while True:
            session.receive()


def _deaf(session: Session) -> None:
    for number in itertools.count(100):
        session.send({"jsonrpc": "2.0", "id": number, "method": "tools/list", "params": {}})


def _large(session: Session) -> None:
    call = {"name": "agora_save", "arguments": {"content": "x" * 1_000_000}}
    while True:
        session.send({"jsonrpc": "2.0", "id": 5, "method": "tools/call", "params": call})
        session.receive()


BEHAVIOURS: dict[str, Callable[[Session], None]] = {
    "a flood of lists": _lists,
    "a flood of calls": _calls,
    "one that never reads": _deaf,
    "lines of 1 MB": _large,
}


def summary(figures: dict[str, Any]) -> dict[str, Any]:
    """The figures beside what they should be."""
    shared, alone = figures["shared"], figures["in_process"]
    still = figures["beside"]["nobody"]
    rows: dict[str, tuple[float, float | None]] = {
        "p99 of all calls against their p50": (shared["all_ms"]["p99"] / shared["all_ms"]["p50"], 3),
        "the same with a server each": (alone["all_ms"]["p99"] / alone["all_ms"]["p50"], None),
        "all processes, MB resident": (sum(shared["rss_bytes"]) / 1e6, 300),
        "the same with a server each, MB": (sum(alone["rss_bytes"]) / 1e6, None),
        "calls a second": (figures["agents"] * figures["calls"] / shared["seconds"], None),
        "calls a second with a server each": (figures["agents"] * figures["calls"] / alone["seconds"], None),
    }
    for name, taken in figures["beside"].items():
        if name != "nobody":
            rows[f"p99 of a call beside {name}, ms more than alone"] = (taken["p99"] - still["p99"], 50)
    return {name: {"found": round(found, 2), "wanted": wanted} for name, (found, wanted) in rows.items()}


if __name__ == "__main__":
    main()
