"""Start, save and query over stdio, at 1,000 and 10,000 notes, beside a peer in the same run."""

from __future__ import annotations

import argparse
import json
import random
import shutil
import statistics
import sys
import tempfile
import time
from collections.abc import Callable
from itertools import count
from pathlib import Path
from typing import Any

from bench import machine
from bench.wire import Server

_SUBJECTS = "the payments worker|our login page|the nightly export|the search index|a cron job|the mobile app"
_VERBS = "retries|fails|hangs|was moved|must be restarted|needs a lock|ignores the cache|runs twice|leaks memory"
_CAUSES = (
    "after a 502 from the gateway|when the queue is full|because the clock drifts|since the last upgrade|on Windows"
)
_FIXES = (
    "we set a timeout of {n} seconds|the pool is capped at {n}|see ticket OPS-{n}|pin version {n}.2|port {n} is open"
)
_MORE = "Ask the platform team before changing it, and run the smoke tests of service {m} in region {r} afterwards."
REPEATS = 5
QUESTIONS = (
    "why does the payments worker fail again",
    "which port is open for the nightly export",
    "how large is the connection pool",
    "what happens when the queue is full",
    "who must be asked before a change in region 7",
)


def note(rng: random.Random) -> str:
    """A made-up note of about 40 tokens, different each time."""
    parts = [rng.choice(each.split("|")) for each in (_SUBJECTS, _VERBS, _CAUSES, _FIXES)]
    text = f"{parts[0]} {parts[1]} {parts[2]}; {parts[3]}. {_MORE}"
    return text.format(n=rng.randrange(1, 100_000), m=rng.randrange(1000), r=rng.randrange(50))


def question(turn: int) -> str:
    """A question that was not asked before: no cache may answer it."""
    return f"{QUESTIONS[turn % len(QUESTIONS)]}, case {turn}"


def main() -> None:
    """Run everything and write the raw figures."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--sizes", type=int, nargs="+", default=[1_000, 10_000])
    parser.add_argument("--no-peer", action="store_true")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="agora-bench-") as folder:
        home = Path(folder) / "home"
        figures: dict[str, Any] = {
            "machine": machine.describe(),
            "installed_mb": round(machine.installed_bytes() / 1e6, 1),
            "start": _starts(lambda: _agora(home)),
            "sizes": [_at(home, size) for size in options.sizes],
            "encoder": _encoder(),
        }
        if not options.no_peer:
            figures["peer"] = _peer(Path(folder))
    options.out.parent.mkdir(parents=True, exist_ok=True)
    options.out.write_text(json.dumps(figures, indent=2), encoding="utf-8")
    _tell(figures)


def _agora(home: Path) -> Server:
    environment = {"AGORA_HOME": str(home), "AGORA_LOG_LEVEL": "warning"}
    return Server([sys.executable, "-m", "agora", "serve", "--in-process", "-n", "bench"], environment)


def _starts(open_server: Callable[[], Server]) -> dict[str, Any]:
    walls, cpus = [], []
    for _ in range(REPEATS):
        with open_server() as server:
            server.handshake()
            walls.append(server.since_start() * 1000)
            cpus.append(server.cpu() * 1000)
    return {"wall_ms": _summary(walls), "cpu_ms": _summary(cpus)}


def _at(home: Path, size: int) -> dict[str, Any]:
    """Fill the store to `size` notes through the server, then measure saves and queries."""
    rng = random.Random(size)
    with _agora(home) as server:
        server.handshake()
        began, first = time.perf_counter(), note(rng)
        server.tool("agora_save", content=first)
        first_save = (time.perf_counter() - began) * 1000
        status = server.tool("agora_status")["structuredContent"]
        while status["notes"]["live"] < size:
            for _ in range(size - status["notes"]["live"]):
                server.tool("agora_save", content=note(rng))
            status = server.tool("agora_status")["structuredContent"]
    with _agora(home) as server:
        server.handshake()
        began = time.perf_counter()
        server.tool("agora_query", query=QUESTIONS[0])
        first_query = (time.perf_counter() - began) * 1000
        asked = count(1)
        queries = _calls(server, lambda _: ("agora_query", {"query": question(next(asked))}), 100)
        saves = _calls(server, lambda _: ("agora_save", {"content": note(rng)}), 40)
        rss = server.rss()
    disk = sum(file.stat().st_size for file in home.rglob("agora.db*"))
    return {
        "notes": size,
        "first_save_wall_ms": round(first_save, 1),
        "first_query_wall_ms": round(first_query, 1),
        "query": queries,
        "save": saves,
        "rss_mb": round(rss / 1e6, 1),
        "disk_mb": round(disk / 1e6, 1),
    }


def _calls(server: Server, make: Callable[[int], tuple[str, dict[str, Any]]], calls: int) -> dict[str, Any]:
    """CPU and wall milliseconds a call, as medians over repeated batches (CPU clocks tick in 10 ms)."""
    cpus, walls = [], []
    for _ in range(REPEATS):
        cpu, began = server.cpu(), time.perf_counter()
        for turn in range(calls):
            name, arguments = make(turn)
            server.tool(name, **arguments)
        walls.append((time.perf_counter() - began) * 1000 / calls)
        cpus.append((server.cpu() - cpu) * 1000 / calls)
    return {"cpu_ms": _summary(cpus), "wall_ms": _summary(walls), "calls": calls}


def _encoder() -> dict[str, Any]:
    """What the encoder alone costs for the same texts, in this process."""
    from agora.embedding.onnx import OnnxEncoder, packaged_model  # noqa: PLC0415 - measured apart
    from agora.model.deadline import Deadline  # noqa: PLC0415 - as above

    encoder, rng = OnnxEncoder(packaged_model("all-MiniLM-L6-v2-int8")), random.Random(7)
    notes = [note(rng) for _ in range(40)]
    encoder.encode("warm", Deadline(60))
    found = {}
    for name, texts in (("query", [question(turn) for turn in range(100)]), ("save", notes)):
        runs = []
        for _ in range(REPEATS):
            began = time.process_time()
            for text in texts:
                encoder.encode(text, Deadline(60))
            runs.append((time.process_time() - began) * 1000 / len(texts))
        found[name] = _summary(runs)
    return found


def _peer(folder: Path) -> dict[str, Any]:
    """The reference memory server (npm), which searches by substring: the floor, not a rival in quality."""
    npx = shutil.which("npx")
    if npx is None:
        return {"error": "Node is not installed"}
    environment = {"MEMORY_FILE_PATH": str(folder / "peer.jsonl")}
    command = [npx, "--yes", "@modelcontextprotocol/server-memory"]
    try:
        with Server(command, environment) as warm:
            warm.handshake()
        found: dict[str, Any] = {
            "command": " ".join(command[1:]),
            "start": _starts(lambda: Server(command, environment)),
        }
        rng = random.Random(1)
        with Server(command, environment) as server:
            server.handshake()
            for start in range(0, 10_000, 500):
                entities = [
                    {"name": f"note-{start + place}", "entityType": "note", "observations": [note(rng)]}
                    for place in range(500)
                ]
                server.tool("create_entities", entities=entities)
            found["query"] = _calls(server, lambda _: ("search_nodes", {"query": "OPS-4242"}), 10)
            found["save"] = _calls(
                server,
                lambda _: (
                    "create_entities",
                    {"entities": [{"name": str(rng.random()), "entityType": "note", "observations": [note(rng)]}]},
                ),
                10,
            )
            found["rss_mb"] = round(server.rss() / 1e6, 1)
    except (OSError, RuntimeError) as error:
        return {"error": str(error)}
    return found | {"notes": 10_000}


def _summary(values: list[float]) -> dict[str, float]:
    return {
        "median": round(statistics.median(values), 2),
        "min": round(min(values), 2),
        "max": round(max(values), 2),
    }


def _tell(figures: dict[str, Any]) -> None:
    start, encoder = figures["start"], figures["encoder"]
    print(f"installed {figures['installed_mb']} MB")
    print(f"start to tools/list: {start['wall_ms']['median']} ms wall, {start['cpu_ms']['median']} ms CPU")
    for at in figures["sizes"]:
        query, save = at["query"]["cpu_ms"]["median"], at["save"]["cpu_ms"]["median"]
        print(
            f"{at['notes']} notes: query {query} ms CPU, {query - encoder['query']['median']:.2f} outside the encoder;"
            f" save {save} ms; first save {at['first_save_wall_ms']} ms wall, RSS {at['rss_mb']} MB,"
            f" disk {at['disk_mb']} MB"
        )
    if peer := figures.get("peer"):
        print(f"peer: {json.dumps(peer)}")


if __name__ == "__main__":
    main()
