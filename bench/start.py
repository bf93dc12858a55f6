"""How long an agent's session takes to begin, and what it costs, through the shared server and without it.

    python -m bench.start --out bench/results/start.json

Each start is a process of its own: the installed `agora` command, spawned as a client spawns it. In turns with it: a
bare interpreter, the floor of anything written in Python, and `agora serve --in-process`. Wall time, since that
is what a client waits for; nothing else should run beside it. Other memory servers that are installed stand beside it:

    python -m bench.start --out FILE --peer "basic-memory=basic-memory mcp" --peer "server-memory=mcp-server-memory"
"""

from __future__ import annotations

import argparse
import json
import os
import shlex
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import psutil

from agora.daemon import control
from bench.machine import describe

STARTS = 40
ALONE_STARTS = 20
COLD_STARTS = 10
PEER_STARTS = 20
CRASHES = 20
ROUNDS = 7
CALLS = 1_000
AGENTS = 20

INITIALIZE = {
    "jsonrpc": "2.0",
    "id": 0,
    "method": "initialize",
    "params": {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "bench", "version": "1"}},
}
LIST = {"jsonrpc": "2.0", "id": 1, "method": "tools/list", "params": {}}
STATUS = {"name": "agora_status", "arguments": {}}


class Session:
    """A client's end of one server process: a line out, a line back."""

    def __init__(self, command: list[str], home: Path) -> None:
        kept = {name: value for name, value in os.environ.items() if not name.startswith(("AGORA_", "OPENBLAS_"))}
        self.began = time.perf_counter()
        self.process = subprocess.Popen(
            command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            env=kept | {"AGORA_HOME": str(home), "AGORA_LOG_LEVEL": "warning"},
            cwd=home,
        )
        assert self.process.stdin
        assert self.process.stdout
        self._in, self._out = self.process.stdin, self.process.stdout

    def send(self, message: dict[str, Any]) -> None:
        """One line to the server."""
        self._in.write(json.dumps(message).encode() + b"\n")
        self._in.flush()

    def receive(self) -> dict[str, Any]:
        """The next line of the server."""
        answer: dict[str, Any] = json.loads(self._out.readline())
        return answer

    def handshake(self) -> tuple[float, float]:
        """Seconds from the spawn to the answers of `initialize` and of `tools/list`."""
        self.send(INITIALIZE)
        self.receive()
        first = time.perf_counter() - self.began
        self.send({"jsonrpc": "2.0", "method": "notifications/initialized"})
        self.send(LIST)
        assert self.receive()["result"]["tools"]
        return first, time.perf_counter() - self.began

    def call(self, number: int) -> None:
        """One call that changes nothing, out and back."""
        self.send({"jsonrpc": "2.0", "id": number, "method": "tools/call", "params": STATUS})
        assert "result" in self.receive()

    def end(self) -> float:
        """Seconds from the end of input to the end of the process."""
        began = time.perf_counter()
        self._in.close()
        self.process.wait()
        seconds = time.perf_counter() - began
        self._out.close()
        return seconds

    def rss(self) -> int:
        """Resident bytes of the process and of those that it has started."""
        process = psutil.Process(self.process.pid)
        return sum(int(each.memory_info().rss) for each in (process, *process.children(recursive=True)))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--agora", type=Path, default=Path(sys.executable).with_name("agora"), help="the command")
    parser.add_argument("--peer", action="append", default=[], metavar="NAME=COMMAND", help="another memory server")
    options = parser.parse_args()
    peers = {name: shlex.split(command) for name, _, command in (given.partition("=") for given in options.peer)}
    shared = [str(options.agora), "serve"]
    with tempfile.TemporaryDirectory(prefix="agora-bench-") as folder:
        home = Path(folder) / "home"
        home.mkdir()
        try:
            figures = measure(shared, peers, home)
        finally:
            control.stop(home)
    report = {"machine": describe(), **figures, "summary": summary(figures)}
    options.out.write_text(json.dumps(report, indent=1) + "\n", encoding="utf-8")
    print(json.dumps(report["summary"], indent=1))


def measure(shared: list[str], peers: dict[str, list[str]], home: Path) -> dict[str, Any]:
    alone = [*shared, "--in-process"]
    cold = [_cold(shared, home) for _ in range(COLD_STARTS)]
    warm_up = Session(shared, home)
    warm_up.handshake()
    warm_up.call(2)
    floor, warm, exits, single = [], [], [], []
    others: dict[str, list[dict[str, float]]] = {name: [] for name in peers}
    for number in range(STARTS):
        floor.append(_bare())
        session = Session(shared, home)
        warm.append(session.handshake())
        exits.append(session.end())
        if number < ALONE_STARTS:
            other = Session(alone, home)
            single.append(other.handshake())
            other.end()
        if number < PEER_STARTS:
            for name, command in peers.items():
                others[name].append(_peer(command, home))
    calls = _calls(shared, alone, home)
    crashes = [_crash(shared, home) for _ in range(CRASHES)]
    memory = _memory(shared, home)
    warm_up.end()
    return {
        "starts": STARTS,
        "bare_python_seconds": floor,
        "warm_seconds": warm,
        "in_process_seconds": single,
        "peers": others,
        "cold_seconds": cold,
        "exit_seconds": exits,
        "crash_seconds": crashes,
        "call_seconds": calls,
        "memory": memory,
    }


def _bare() -> float:
    began = time.perf_counter()
    subprocess.run([sys.executable, "-I", "-S", "-E", "-c", "pass"], check=True)
    return time.perf_counter() - began


def _peer(command: list[str], home: Path) -> dict[str, float]:
    """Another server's seconds to `tools/list`, and its bytes then."""
    session = Session(command, home)
    _, listed = session.handshake()
    found = {"listed": listed, "bytes": session.rss()}
    session.process.kill()
    session.end()
    return found


def _cold(shared: list[str], home: Path) -> dict[str, float]:
    """The first session's seconds to `tools/list`, beside those of a server that is started by itself."""
    control.stop(home)
    began = time.perf_counter()
    control.start(home, {})
    server = time.perf_counter() - began
    control.stop(home)
    session = Session(shared, home)
    _, listed = session.handshake()
    session.end()
    return {"server": server, "session": listed}


def _crash(shared: list[str], home: Path) -> float:
    """Seconds from the kill of the server to the client's answer about a call that was under way."""
    session = Session(shared, home)
    session.handshake()
    session.call(2)
    server = control.ask(home, "status")
    assert server
    process = psutil.Process(server["pid"])
    process.suspend()
    arguments = {"content": f"a note of {time.time_ns()}"}
    call = {"name": "agora_save", "arguments": arguments}
    session.send({"jsonrpc": "2.0", "id": 3, "method": "tools/call", "params": call})
    time.sleep(0.05)
    began = time.perf_counter()
    process.kill()
    answer = session.receive()
    seconds = time.perf_counter() - began
    assert answer["result"]["structuredContent"]["error"]["code"] == "outcome_unknown", answer
    session.call(4)
    session.end()
    return seconds


def _calls(shared: list[str], alone: list[str], home: Path) -> dict[str, list[float]]:
    """Seconds of one call, round trip, through the shared server and to a server of one's own, in turns."""
    taken: dict[str, list[float]] = {"shared": [], "in_process": []}
    sessions = {"shared": Session(shared, home), "in_process": Session(alone, home)}
    for session in sessions.values():
        session.handshake()
        for number in range(10, 110):
            session.call(number)
    for _ in range(ROUNDS):
        for name, session in sessions.items():
            began = time.perf_counter()
            for number in range(1_000, 1_000 + CALLS):
                session.call(number)
            taken[name].append((time.perf_counter() - began) / CALLS)
    for session in sessions.values():
        session.end()
    return taken


def _memory(shared: list[str], home: Path) -> dict[str, Any]:
    """Bytes of a session's process, and of the server before and with many sessions, each of which has made a call."""
    first = Session(shared, home)
    first.handshake()
    query = {"name": "agora_query", "arguments": {"query": "anything at all"}}
    first.send({"jsonrpc": "2.0", "id": 2, "method": "tools/call", "params": query})
    first.receive()
    server = control.ask(home, "status")
    assert server
    process = psutil.Process(server["pid"])
    before = process.memory_info().rss
    sessions = [Session(shared, home) for _ in range(AGENTS)]
    for session in sessions:
        session.handshake()
        session.call(2)
    found = {
        "agents": AGENTS,
        "session_bytes": [session.rss() for session in sessions],
        "server_bytes": before,
        "server_bytes_with_all": process.memory_info().rss,
    }
    for session in [first, *sessions]:
        session.end()
    return found


def summary(figures: dict[str, Any]) -> dict[str, Any]:
    """The figures beside what they should be, in milliseconds and megabytes."""
    cold = statistics.median(each["session"] - each["server"] for each in figures["cold_seconds"])
    calls = {name: statistics.median(values) for name, values in figures["call_seconds"].items()}
    memory = figures["memory"]
    listed = [second for _, second in figures["warm_seconds"]]
    rows: dict[str, tuple[float, float | None]] = {
        "bare Python, median ms": (_ms(figures["bare_python_seconds"]), None),
        "session to initialize, median ms": (_ms([first for first, _ in figures["warm_seconds"]]), None),
        "session to tools/list, median ms": (_ms(listed), 20),
        "session to tools/list, p95 ms": (_ms(listed, _p95), 30),
        "server of its own to tools/list, median ms": (
            _ms([second for _, second in figures["in_process_seconds"]]),
            None,
        ),
        "first session beyond the server's start, median ms": (1000 * cold, 100),
        "end of input to exit, median ms": (_ms(figures["exit_seconds"]), 10),
        "answer after a crash, worst ms": (_ms(figures["crash_seconds"], max), 50),
        "a call beyond one to a server of its own, ms": (1000 * (calls["shared"] - calls["in_process"]), 0.1),
        "session, MB": (statistics.median(memory["session_bytes"]) / 1e6, 10),
        f"server's growth by {memory['agents']} sessions, MB": (
            (memory["server_bytes_with_all"] - memory["server_bytes"]) / 1e6,
            20,
        ),
    }
    for name, starts in figures["peers"].items():
        rows[f"{name} to tools/list, median ms"] = (_ms([each["listed"] for each in starts]), None)
        rows[f"{name}, MB"] = (statistics.median(each["bytes"] for each in starts) / 1e6, None)
    return {name: {"found": round(found, 2), "wanted": wanted} for name, (found, wanted) in rows.items()}


def _ms(seconds: list[float], of: Callable[[list[float]], float] = statistics.median) -> float:
    return 1000 * of(seconds)


def _p95(values: list[float]) -> float:
    return statistics.quantiles(values, n=20)[-1]


if __name__ == "__main__":
    main()
