"""Which server and tool a request is routed to, on four public sets, beside BM25, plain cosine and their linear mix.

Requests are short tasks of LiveMCPBench and their steps, the same tasks among the ten thousand tools of a public
directory, requests of MetaTool for one plugin and for two, and requests of BFCL that one of the functions they come
with fits, or none. A route is right if its server is one of those that answer the request. `right` and `wrong` are
shares of all requests that are called by the request alone, at the thresholds of the settings.
"""

from __future__ import annotations

import argparse
import json
import statistics
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from agora.config.gateway import GatewaySettings
from bench import machine, routing_sets
from bench.routing_sets import Request, Server, Set
from bench.routing_systems import Agora, Baselines, Ranked, Texts

COSINE = 0.5
SETTINGS = GatewaySettings()
GOALS = {
    "server top-1": 0.74,
    "server top-5": 0.88,
    "right without asking": 0.50,
    "wrong without asking": 0.05,
    "tool any@5 in the pool": 0.50,
    "route over 10,000 tools, ms CPU": 10.0,
}


def main() -> None:
    """Read, build, ask, write."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--vectors", type=Path, help="file that keeps vectors between runs; encoding takes minutes")
    parser.add_argument("--most", type=int, default=3000, help="requests of MetaTool for one plugin")
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    texts = Texts(options.vectors)
    report: dict[str, Any] = {
        "machine": machine.describe(),
        "seed": options.seed,
        "encoder": texts.name,
        "thresholds": {"read": SETTINGS.read_threshold, "write": SETTINGS.write_threshold, "cosine": COSINE},
        "sets": {},
    }
    tasks, steps = routing_sets.livemcpbench(options.data)
    both = Set(tasks.servers, (*tasks.requests, *steps.requests))
    single, several = routing_sets.metatool(options.data, options.seed, options.most)
    fitting, none = routing_sets.bfcl(options.data, options.seed)
    pool = routing_sets.with_pool(options.data, tasks)
    asked: dict[str, tuple[Set, bool]] = {
        "livemcpbench, tasks": (tasks, False),
        "livemcpbench, steps": (steps, False),
        "livemcpbench, both": (both, False),
        "livemcpbench, both, its servers taken away": (both, True),
        "livemcpbench, tasks in the pool": (pool, False),
        "metatool, one plugin": (single, False),
        "metatool, two plugins": (several, False),
        "bfcl, a function fits": (fitting, False),
        "bfcl, no function fits": (none, False),
    }
    for name, (given, away) in asked.items():
        began = time.monotonic()
        found = measure(given, texts, away=away)
        report["sets"][name] = found
        print(f"{name}: {found['requests']} requests, {time.monotonic() - began:.0f} s")
        for system, row in found["systems"].items():
            print(f"  {system:8} {json.dumps(row)}", flush=True)
    report["cost"] = cost(pool, texts)
    report["summary"] = summary(report)
    print(json.dumps({"cost": report["cost"], "summary": report["summary"]}, indent=1))
    options.out.parent.mkdir(parents=True, exist_ok=True)
    options.out.write_text(json.dumps(report, indent=2), encoding="utf-8")


def measure(given: Set, texts: Texts, *, away: bool) -> dict[str, Any]:
    """Every system on every request of a set; `away`: without the servers that would be right."""
    agora, baselines = Agora(given.servers, texts), Baselines(given.servers, texts)
    everyone = frozenset(server.name for server in given.servers)
    found: dict[str, list[Ranked]] = {}
    for place, request in enumerate(given.requests):
        own = None if given.own is None else frozenset(given.own[place])
        among = everyone - request.servers if away else own
        vectors = texts.asked(request.text)
        found.setdefault("agora", []).append(agora.ask(request.text, vectors, among))
        found.setdefault("words", []).append(agora.ask(request.text, None, among))
        for name, ranked in baselines.ask(request.text, vectors, among).items():
            found.setdefault(name, []).append(ranked)
    return {
        "requests": len(given.requests),
        "servers": len(given.servers),
        "tools": sum(len(server.tools) for server in given.servers),
        "systems": {name: _figures(name, given.requests, ranked) for name, ranked in found.items()},
    }


def _figures(system: str, requests: Sequence[Request], ranked: Sequence[Ranked]) -> dict[str, float]:
    pairs = list(zip(requests, ranked, strict=True))
    rows = {
        "server top-1": [found.servers[:1] != [] and found.servers[0] in request.servers for request, found in pairs],
        "server top-5": [not request.servers.isdisjoint(found.servers) for request, found in pairs],
        "tool any@1": [not request.gold.isdisjoint(found.tools[:1]) for request, found in pairs],
        "tool any@5": [not request.gold.isdisjoint(found.tools) for request, found in pairs],
        "tool all@5": [request.gold != frozenset() and request.gold <= {*found.tools} for request, found in pairs],
    }
    if system == "agora":
        for name, least in (("read", SETTINGS.read_threshold), ("write", SETTINGS.write_threshold)):
            called = [found.score + found.margin >= least for found in ranked]
            right = rows["server top-1"]
            rows[f"right, {name}"] = [a and b for a, b in zip(called, right, strict=True)]
            rows[f"wrong, {name}"] = [a and not b for a, b in zip(called, right, strict=True)]
        near = [(found.nearest[1] >= COSINE, found.nearest[0] in request.servers) for request, found in pairs]
        rows["right, semantic"] = [called and right for called, right in near]
        rows["wrong, semantic"] = [called and not right for called, right in near]
    if system == "cosine":
        called = [found.score >= COSINE for found in ranked]
        rows["right"] = [a and b for a, b in zip(called, rows["server top-1"], strict=True)]
        rows["wrong"] = [a and not b for a, b in zip(called, rows["server top-1"], strict=True)]
    return {name: round(statistics.fmean(values), 4) for name, values in rows.items()}


def cost(pool: Set, texts: Texts) -> dict[str, float]:
    """CPU milliseconds of a route and of a change among the tools of the pool, the encoder left out."""
    agora = Agora(pool.servers, texts)
    asked = [(request.text, texts.asked(request.text)) for request in pool.requests]
    spent = []
    for turn in range(4):
        for intent, vectors in asked:
            began = time.process_time()
            agora.ask(intent, vectors)
            if turn:
                spent.append(1000 * (time.process_time() - began))
    by_size = sorted(pool.servers, key=lambda each: -len(each.tools))
    changes = [_change(agora, server) for server in by_size[::20]]
    return {
        "tools": len(agora.catalogue),
        "route, median": round(statistics.median(spent), 2),
        "route, 95 of 100": round(statistics.quantiles(spent, n=20)[-1], 2),
        "route, worst": round(max(spent), 2),
        "change of a backend, median": round(statistics.median(changes), 1),
        f"change of the largest backend, {len(by_size[0].tools)} tools": round(changes[0], 1),
    }


def _change(agora: Agora, server: Server) -> float:
    listed = agora.catalogue.backends[server.name]
    began = time.process_time()
    agora.catalogue.with_backend(server.name, listed.description, server.tools)
    return 1000 * (time.process_time() - began)


def summary(report: dict[str, Any]) -> dict[str, dict[str, float]]:
    """What was wanted beside what was found."""
    sets = {name: found["systems"]["agora"] for name, found in report["sets"].items()}
    both = sets["livemcpbench, both"]
    found = {
        "server top-1": both["server top-1"],
        "server top-5": both["server top-5"],
        "right without asking": both["right, read"],
        "wrong without asking": both["wrong, read"],
        "tool any@5 in the pool": sets["livemcpbench, tasks in the pool"]["tool any@5"],
        "route over 10,000 tools, ms CPU": report["cost"]["route, median"],
    }
    return {name: {"found": found[name], "wanted": wanted} for name, wanted in GOALS.items()}


if __name__ == "__main__":
    main()
