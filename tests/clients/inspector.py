"""The MCP Inspector's command line against Agora, over stdio and HTTP: `python -m tests.clients.inspector`.

It comes from npm, pinned, into a temporary folder. With `--strict` it fails on a tool whose schema some client cannot
read. Prints a line for each request and transport; the exit status is 1 if any of them failed. Outside CI: it is large.

Needs the dependency group `conformance`, which brings Node.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import tempfile
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.conformance.run import ROOT, node

PACKAGE = "@modelcontextprotocol/inspector"
VERSION = "2.12.0"
PATIENCE = 120

Found = dict[str, Any]


@dataclass(frozen=True)
class Request:
    """One request: the Inspector's arguments for it, and whether its answer is what it should be."""

    name: str
    arguments: Sequence[str]
    fine: Callable[[Found], bool]


def _saved(found: Found) -> bool:
    return not found.get("isError") and found["structuredContent"]["id"].startswith("n_")


def _hit(found: Found) -> bool:
    return any("teapot" in row["content"] for row in found["structuredContent"]["results"])


def _tool(name: str, **given: object) -> tuple[str, ...]:
    pairs = (part for key, value in given.items() for part in ("--tool-arg", f"{key}={value}"))
    return ("--method", "tools/call", "--tool-name", name, *pairs)


REQUESTS = (
    Request(
        "tools/list --strict",
        ("--method", "tools/list", "--strict"),
        lambda found: "agora_query" in _names(found["tools"]),
    ),
    Request("tools/call agora_save", _tool("agora_save", content="The teapot is in the attic."), _saved),
    Request("tools/call agora_query", _tool("agora_query", query="where is the teapot?", top_k=3), _hit),
    Request("tools/call agora_status", _tool("agora_status"), lambda found: _status(found)["health"] == "ok"),
    Request("resources/list", ("--method", "resources/list"), lambda found: bool(found["resources"])),
    Request(
        "resources/templates/list",
        ("--method", "resources/templates/list"),
        lambda found: bool(found["resourceTemplates"]),
    ),
    Request(
        "resources/read agora://status",
        ("--method", "resources/read", "--uri", "agora://status"),
        lambda found: found["contents"][0]["uri"] == "agora://status",
    ),
    Request("prompts/list", ("--method", "prompts/list"), lambda found: "code_review" in _names(found["prompts"])),
    Request(
        "prompts/get recall_context",
        ("--method", "prompts/get", "--prompt-name", "recall_context", "--prompt-args", "topic=teapot"),
        lambda found: bool(found["messages"]),
    ),
)


def _names(rows: Sequence[Found]) -> set[str]:
    return {row["name"] for row in rows}


def _status(found: Found) -> Found:
    status: Found = found["structuredContent"]
    return status


def main() -> int:
    """0 if every request was answered as it should be over both transports."""
    with tempfile.TemporaryDirectory(prefix="agora-inspector-") as name:
        place = Path(name)
        install(place)
        failures = 0
        print(f"{PACKAGE}@{VERSION}", flush=True)
        with over_stdio(place / "stdio") as local, over_http(place / "http") as remote:
            for transport, target in (("stdio", local), ("http", remote)):
                for request in REQUESTS:
                    problem = ask(place, target, request)
                    failures += problem is not None
                    print(f"{transport:<6}{request.name:<32}{'ok' if problem is None else 'FAILED'}", flush=True)
                    if problem is not None:
                        print(problem, flush=True)
        print(f"{len(REQUESTS) * 2 - failures} passed, {failures} failed", flush=True)
    return int(failures > 0)


def install(place: Path) -> None:
    """Put the Inspector into a folder."""
    (place / "package.json").write_text('{"private": true}\n', encoding="utf-8")
    options = ["--ignore-scripts", "--no-audit", "--no-fund", "--loglevel=error"]
    node("npm", "install", *options, f"{PACKAGE}@{VERSION}", cwd=place, check=True)


def ask(place: Path, target: Sequence[str], request: Request) -> str | None:
    """What is wrong with the answer to a request, in all the Inspector's words; None if nothing is."""
    manifest = place / "node_modules" / PACKAGE / "package.json"
    binary = json.loads(manifest.read_text("utf-8"))["bin"]
    script = manifest.parent / (binary if isinstance(binary, str) else next(iter(binary.values())))
    done = node(
        "node",
        *(str(script), "--cli", *target, *request.arguments),
        cwd=place,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
    if done.returncode != 0:
        return f"exit {done.returncode}\n{done.stdout}{done.stderr}"
    try:
        fine = request.fine(json.loads(done.stdout))
    except (ValueError, KeyError, TypeError, IndexError) as error:
        return f"{type(error).__name__}: {error}\n{done.stdout}{done.stderr}"
    return None if fine else f"another answer than expected:\n{done.stdout}"


@contextmanager
def over_stdio(home: Path) -> Iterator[Sequence[str]]:
    """The Inspector's arguments for a process of its own at each request, all on one data folder."""
    variables = {"AGORA_HOME": str(home), "PYTHONPATH": str(ROOT / "src"), "AGORA_NAMESPACE_DEFAULT": "default"}
    given = (part for name, value in variables.items() for part in ("-e", f"{name}={value}"))
    yield (sys.executable, "-m", "agora", "serve", *given)


@contextmanager
def over_http(home: Path) -> Iterator[Sequence[str]]:
    """The Inspector's arguments for a server that runs for the length of the block."""
    home.mkdir()
    kept = {name: value for name, value in os.environ.items() if not name.startswith("AGORA_")}
    errors = home / "stderr.txt"
    with errors.open("wb") as stderr:
        process = subprocess.Popen(
            [sys.executable, "-m", "agora", "serve", "--http", "127.0.0.1:0"],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=stderr,
            env=kept | {"AGORA_HOME": str(home), "PYTHONPATH": str(ROOT / "src")},
        )
    try:
        pause = threading.Event()
        for _ in range(int(PATIENCE / 0.05)):
            found = re.search(r"^listening on (\S+)$", errors.read_text("utf-8"), re.MULTILINE)
            if found is not None or process.poll() is not None:
                break
            pause.wait(0.05)
        if found is None:
            sys.exit(f"the server did not start:\n{errors.read_text('utf-8')}")
        token = (home / "token").read_text("utf-8").split()[0]
        yield (found[1], "--transport", "http", "--header", f"Authorization: Bearer {token}")
    finally:
        process.terminate()
        process.communicate(timeout=30)


if __name__ == "__main__":
    sys.exit(main())
