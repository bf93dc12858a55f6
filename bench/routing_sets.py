"""Servers, tools and requests of the routing sets, read from a folder given on the command line."""

from __future__ import annotations

import random
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from agora.model.backend import ToolDefinition
from bench.datasets import lines

_ENUMERATION = re.compile(r"^\s*\d+[.)]\s*")


@dataclass(frozen=True, slots=True)
class Server:
    """One server as a gateway knows it. Tools carry its name."""

    name: str
    description: str
    tools: tuple[ToolDefinition, ...]


@dataclass(frozen=True, slots=True)
class Request:
    """A request and the (server, tool) pairs any of which answers it; none if nothing does."""

    text: str
    gold: frozenset[tuple[str, str]]
    servers: frozenset[str]


@dataclass(frozen=True, slots=True)
class Set:
    """Servers and requests for them; a request with servers of its own is asked of these alone."""

    servers: tuple[Server, ...]
    requests: tuple[Request, ...]
    own: tuple[tuple[str, ...], ...] | None = None


def livemcpbench(folder: Path) -> tuple[Set, Set]:
    """Whole tasks, and the steps of those tasks that have a tool for each step.

    The set does not say which step needs which tool, and counting them off is wrong for some. A step is right if it
    goes to a server, or a tool, of its task.
    """
    servers = _servers(lines(folder / "livemcpbench" / "tools.jsonl"), "server_title")
    tasks, steps = [], []
    for row in lines(folder / "livemcpbench" / "queries.jsonl"):
        gold = frozenset(_pair(key) for key, worth in row["rel"].items() if worth)
        if not gold:
            continue
        tasks.append(_request(row["text"], gold))
        parts = [_ENUMERATION.sub("", line).strip() for line in row["steps"].split("\n") if line.strip()]
        if len(parts) == len(row["tools"]):
            steps += [_request(part, gold) for part in parts]
    return Set(servers, tuple(tasks)), Set(servers, tuple(steps))


def with_pool(folder: Path, among: Set) -> Set:
    """The same requests among the ten thousand tools of the pool."""
    pool = _servers(lines(folder / "mcp_tool_pool" / "tools.jsonl.gz"), None, "pool ")
    return Set((*among.servers, *pool), among.requests)


def metatool(folder: Path, seed: int, most: int) -> tuple[Set, Set]:
    """Requests for one plugin, and for two; every plugin is a server of one tool."""
    servers = _singles(lines(folder / "metatool" / "tools.jsonl"), seed, named=True)
    by_id = {server.tools[0].title: server for server in servers}

    def requests(file: str) -> list[Request]:
        found = []
        for row in lines(folder / "metatool" / file):
            gold = [by_id[key] for key, worth in row["rel"].items() if worth and key in by_id]
            if gold:
                found.append(_request(row["text"], frozenset((each.name, each.tools[0].name) for each in gold)))
        return found

    single = requests("queries_single.jsonl.gz")
    random.Random(seed).shuffle(single)
    plain = tuple(_untitled(server) for server in servers)
    return Set(plain, tuple(single[:most])), Set(plain, tuple(requests("queries_multi.jsonl")))


def bfcl(folder: Path, seed: int) -> tuple[Set, Set]:
    """Requests that one function fits, with the functions they come with, and requests that none fits."""
    servers = _singles(lines(folder / "bfcl_live" / "tools.jsonl"), seed, named=False)
    by_id = {server.tools[0].title: server for server in servers}
    plain = tuple(_untitled(server) for server in servers)
    fitting, own = [], []
    for row in lines(folder / "bfcl_live" / "queries.jsonl"):
        gold = frozenset((by_id[key].name, by_id[key].tools[0].name) for key in row["rel"])
        fitting.append(_request(row["text"], gold))
        own.append(tuple(by_id[key].name for key in row["candidates"]))
    strangers: dict[str, Server] = {}
    others, theirs = [], []
    for row in lines(folder / "bfcl_live" / "irrelevant.jsonl.gz"):
        made = [_one(f"s{len(strangers) + place}", function) for place, function in enumerate(row["functions"])]
        strangers |= {server.name: server for server in made}
        others.append(_request(row["text"], frozenset()))
        theirs.append(tuple(server.name for server in made))
    return Set(plain, tuple(fitting), tuple(own)), Set(tuple(strangers.values()), tuple(others), tuple(theirs))


def _request(text: str, gold: frozenset[tuple[str, str]]) -> Request:
    return Request(text, gold, frozenset(server for server, _ in gold))


def _pair(key: str) -> tuple[str, str]:
    server, _, tool = key.rpartition("/")
    return server, tool


def _servers(rows: Iterable[dict[str, Any]], title: str | None, prefix: str = "") -> tuple[Server, ...]:
    found: dict[str, tuple[str, list[ToolDefinition]]] = {}
    for row in rows:
        name = prefix + row["server"]
        said = row["server_description"] or ""
        described = f"{row[title]}. {said}" if title else said
        tools = found.setdefault(name, (described, []))[1]
        tools.append(
            ToolDefinition(
                name, row["name"], row["description"] or "", input=row.get("inputSchema") or {"type": "object"}
            )
        )
    return tuple(Server(name, described, tuple(tools)) for name, (described, tools) in found.items())


def _singles(rows: Iterable[dict[str, Any]], seed: int, *, named: bool) -> tuple[Server, ...]:
    given = list(rows)
    random.Random(seed).shuffle(given)
    return tuple(_one(row["name"] if named else f"b{place}", row, row["id"]) for place, row in enumerate(given))


def _one(name: str, row: dict[str, Any], key: str | None = None) -> Server:
    """A server of one tool; `key`, its id in the set, stands in the title until the gold is found."""
    properties: dict[str, Any] = {each: {} for each in row.get("parameters", ())}
    said = row["description"] or ""
    tool = ToolDefinition(name, row["name"], said, key, {"type": "object", "properties": properties})
    return Server(name, said, (tool,))


def _untitled(server: Server) -> Server:
    tools: Sequence[ToolDefinition] = [
        ToolDefinition(tool.backend, tool.name, tool.description, None, tool.input) for tool in server.tools
    ]
    return Server(server.name, server.description, tuple(tools))
