"""What the protocol layer costs: a tool that does nothing, and the start, beside the SDK's bare low-level server.

    python -m bench.protocol --out bench/results/protocol.json

Three servers over stdio, each in a process of its own, in turns: the SDK's low-level server on the SDK's transport with
one tool; Agora's transport and protocol layer with its tools doing nothing (`bench/noop_server.py`); and `agora serve`.
Figures are processor time of the server's process per call, and wall time from its start to the answer to `tools/list`.
"""

from __future__ import annotations

import argparse
import json
import statistics
import sys
import tempfile
from pathlib import Path
from typing import Any

from bench.machine import describe
from bench.wire import Server

ROUNDS = 7
CALLS = 2_000
STARTS = 15
HERE = Path(__file__).resolve().parent


def servers(home: str) -> dict[str, tuple[list[str], dict[str, str]]]:
    return {
        "sdk": ([sys.executable, str(HERE / "sdk_server.py")], {}),
        "protocol": ([sys.executable, "-m", "bench.noop_server"], {}),
        "agora": ([sys.executable, "-m", "agora", "serve", "--in-process"], {"AGORA_HOME": home}),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path, required=True)
    out: Path = parser.parse_args().out
    with tempfile.TemporaryDirectory() as home:
        known = servers(home)
        with Server(*known["agora"]) as first:
            # The store is made once, not measured.
            first.handshake()
        calls: dict[str, list[float]] = {name: [] for name in ("sdk", "protocol")}
        for _ in range(ROUNDS):
            for name, taken in calls.items():
                taken.append(one_round(*known[name]))
        starts: dict[str, list[float]] = {name: [] for name in ("sdk", "agora")}
        for _ in range(STARTS):
            for name, taken in starts.items():
                with Server(*known[name]) as server:
                    server.handshake()
                    taken.append(server.since_start())
    figures: dict[str, Any] = {
        "machine": describe(),
        "calls": CALLS,
        "cpu_ms_per_call": {name: [1000 * value for value in taken] for name, taken in calls.items()},
        "start_to_list_seconds": starts,
    }
    figures["medians"] = {
        "cpu_ms_per_call": {name: statistics.median(v) for name, v in figures["cpu_ms_per_call"].items()},
        "start_to_list_seconds": {name: statistics.median(v) for name, v in starts.items()},
    }
    middle = figures["medians"]["start_to_list_seconds"]
    figures["start_ratio"] = middle["agora"] / middle["sdk"]
    out.write_text(json.dumps(figures, indent=1) + "\n", encoding="utf-8")
    print(json.dumps(figures["medians"], indent=1), f"start: {figures['start_ratio']:.2f} times the SDK's")


def one_round(command: list[str], env: dict[str, str]) -> float:
    with Server(command, env) as server:
        server.handshake()
        for _ in range(100):
            server.tool("agora_status")
        before = server.cpu()
        for _ in range(CALLS):
            server.tool("agora_status")
        return (server.cpu() - before) / CALLS


if __name__ == "__main__":
    main()
