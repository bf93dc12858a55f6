"""What a call through the gateway costs, beside a direct one and, where one is given, another gateway.

    python -m bench.gateway --out bench/results/gateway.json [--fastmcp PYTHON]

One backend (`bench/gateway_backend.py`) is called over stdio by a client small enough not to count: directly, through
`agora serve --in-process`, and with `--fastmcp` through a proxy of FastMCP, run by that interpreter. In turns, several
rounds each: processor time of the gateway's own process per call (its backend's is not counted), wall time per call,
and the time for 20 calls of 0.2 s that are sent at once. Run it on a machine that does nothing else.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import psutil

from bench.gateway_backend import WAIT_SECONDS
from bench.machine import describe
from bench.wire import Server

ROUNDS = 7
CALLS = 1_000
AT_ONCE = 20
BACKEND = Path(__file__).resolve().with_name("gateway_backend.py")
PROXY = """
import sys
from fastmcp.server import create_proxy
config = {"mcpServers": {"bench": {"command": sys.argv[1], "args": [sys.argv[2]]}}}
create_proxy(config, name="proxy").run(show_banner=False)
"""


class Way:
    """A way to the backend: the command of what is spoken to, and how it is asked for a tool."""

    def __init__(
        self, command: list[str], env: dict[str, str], ask: Callable[[str], tuple[str, dict[str, Any]]]
    ) -> None:
        self.command = command
        self.env = env
        self.ask = ask

    def round(self) -> dict[str, float]:
        """The figures of one process."""
        with Server(self.command, self.env) as server:
            server.handshake()
            name, given = self.ask("nothing")
            for _ in range(100):
                server.tool(name, **given)
            own = psutil.Process(server.pid)
            before, began = sum(own.cpu_times()[:2]), time.perf_counter()
            for _ in range(CALLS):
                server.tool(name, **given)
            wall = (time.perf_counter() - began) / CALLS
            cpu = (sum(own.cpu_times()[:2]) - before) / CALLS
            name, given = self.ask("wait")
            began = time.perf_counter()
            server.together([("tools/call", {"name": name, "arguments": given})] * AT_ONCE)
            return {"cpu_ms": 1000 * cpu, "wall_ms": 1000 * wall, "together_s": time.perf_counter() - began}


def ways(home: Path, fastmcp: str | None) -> dict[str, Way]:
    table = f"[[backends]]\nname = 'bench'\ncommand = '{sys.executable}'\nargs = ['{BACKEND}']\nconcurrency = 64\n"
    (home / "agora.toml").write_text(table, encoding="utf-8")
    agora = [sys.executable, "-m", "agora", "serve", "--in-process"]
    found = {
        "direct": Way([sys.executable, str(BACKEND)], {}, lambda tool: (tool, {})),
        "agora": Way(agora, {"AGORA_HOME": str(home)}, lambda tool: ("agora_route", {"target": "bench", "tool": tool})),
    }
    if fastmcp is not None:
        command = [fastmcp, "-c", PROXY, sys.executable, str(BACKEND)]
        found["fastmcp"] = Way(command, {}, lambda tool: (tool, {}))
    return found


def goals(medians: dict[str, dict[str, float]], ratios: dict[str, float]) -> dict[str, dict[str, float | None]]:
    """What was found, and what was wanted at most."""
    found: dict[str, dict[str, float | None]] = {}
    for name, label in (("agora", "Agora"), ("fastmcp", "FastMCP's proxy")):
        if name in medians:
            more = medians[name]["wall_ms"] - medians["direct"]["wall_ms"]
            wanted = 1.5 if name == "agora" else None
            found[f"{label}: CPU ms of the gateway, a call"] = {
                "found": round(medians[name]["cpu_ms"], 2),
                "wanted": wanted,
            }
            found[f"{label}: ms more than a direct call"] = {"found": round(more, 2), "wanted": None}
            found[f"{label}: {AT_ONCE} calls of {WAIT_SECONDS} s at once, times the direct ones"] = {
                "found": round(ratios[name], 2),
                "wanted": wanted,
            }
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--fastmcp", help="a Python interpreter that has fastmcp")
    parser.add_argument("--rounds", type=int, default=ROUNDS)
    options = parser.parse_args()
    # It slows numpy, and with it nothing that is measured on other machines.
    os.environ.pop("OPENBLAS_CORETYPE", None)
    with tempfile.TemporaryDirectory() as home:
        known = ways(Path(home), options.fastmcp)
        taken: dict[str, list[dict[str, float]]] = {name: [] for name in known}
        for _ in range(options.rounds):
            for name, way in known.items():
                taken[name].append(way.round())
    medians = {
        name: {figure: statistics.median(each[figure] for each in rounds) for figure in rounds[0]}
        for name, rounds in taken.items()
    }
    direct = medians["direct"]
    ratios = {name: each["together_s"] / direct["together_s"] for name, each in medians.items()}
    figures: dict[str, Any] = {
        "machine": describe(),
        "calls": CALLS,
        "at_once": AT_ONCE,
        "wait_seconds": WAIT_SECONDS,
        "rounds": taken,
        "medians": medians,
        "together_ratio": ratios,
    }
    figures["summary"] = goals(medians, ratios)
    options.out.write_text(json.dumps(figures, indent=1) + "\n", encoding="utf-8")
    print(json.dumps({name: figures[name] for name in ("medians", "together_ratio")}, indent=1))


if __name__ == "__main__":
    main()
