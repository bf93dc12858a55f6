"""A real server with backends that do what a test says."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from tests.integration.processes import Served, runs

PUPPET = Path(__file__).with_name("puppet.py")
NAUGHTY = Path(__file__).parents[1] / "integration" / "backends" / "naughty.py"
PATIENCE = 20.0

Tool = dict[str, Any]


def text(words: str) -> dict[str, Any]:
    """A result that is one text."""
    return {"content": [{"type": "text", "text": words}]}


def until(there: Callable[[], Any], words: str, seconds: float = PATIENCE) -> Any:
    """What `there` gives, once it gives something."""
    ends = time.monotonic() + seconds
    while not (found := there()):
        assert time.monotonic() < ends, words
        threading.Event().wait(0.02)
    return found


class Puppet:
    """One backend: what it says, and what it was told."""

    def __init__(self, folder: Path, name: str) -> None:
        self.name = name
        self.file = folder / f"{name}.json"
        self.log = folder / f"{name}.json.log"

    def plays(self, *tools: Tool | str, **script: Any) -> Puppet:
        """Say this from now on; a tool is a row of its list, or a name."""
        rows = [{"name": tool} if isinstance(tool, str) else tool for tool in tools]
        whole = [{"inputSchema": {"type": "object"}, "description": "", **row} for row in rows]
        fresh = self.file.with_suffix(".new")
        fresh.write_text(json.dumps({"tools": whole} | script), "utf-8")
        fresh.replace(self.file)
        return self

    def told(self, method: str | None = None) -> list[dict[str, Any]]:
        """The requests that it had."""
        lines = self.log.read_text("utf-8").splitlines() if self.log.exists() else []
        rows = [json.loads(line) for line in lines]
        return [row for row in rows if method is None or row["method"] == method]

    @property
    def arguments(self) -> list[Any]:
        """What came with each call."""
        return [row["params"].get("arguments") for row in self.told("tools/call")]

    @property
    def pids(self) -> list[int]:
        """Its processes, in the order of their first requests."""
        return list(dict.fromkeys(row["pid"] for row in self.told()))

    def table(self, **given: Any) -> str:
        """Its table in the configuration; with a `url` it is one over HTTP."""
        own = {} if "url" in given else {"command": sys.executable, "args": ["-I", "-S", str(PUPPET), str(self.file)]}
        return table(self.name, **own | given)


def table(name: str, **given: Any) -> str:
    """A table of the configuration; JSON of plain values is TOML too."""
    lines, below = [], []
    for key, value in given.items():
        if isinstance(value, dict):
            below += [f"[backends.{key}]", *(f"{inner} = {json.dumps(what)}" for inner, what in value.items())]
        elif value is not None:
            lines.append(f"{key} = {json.dumps(value)}")
    return "\n".join(["[[backends]]", f"name = {json.dumps(name)}", *lines, *below, ""])


def naughty(name: str, *habits: str, **given: Any) -> str:
    """The table of a backend that is `naughty.py`."""
    return table(name, **{"command": sys.executable, "args": ["-I", "-S", str(NAUGHTY), *habits]} | given)


class Stage:
    """A data folder, its configuration, and a server on it."""

    def __init__(self, home: Path, folder: Path, served: Callable[[], Served]) -> None:
        self.home = home
        self.folder = folder
        self._start = served
        self._served: Served | None = None
        self._number = 0

    @property
    def served(self) -> Served:
        """The server, started at the first need: a test may write the configuration before."""
        if self._served is None:
            self._served = self._start()
        return self._served

    def puppet(self, name: str) -> Puppet:
        """A backend of that name with a script of its own."""
        self._number += 1
        folder = self.folder / f"{self._number}"
        folder.mkdir(parents=True)
        return Puppet(folder, name)

    def configure(self, *tables: str, settings: str = "") -> None:
        """Have these backends from now on."""
        self.home.mkdir(mode=0o700, exist_ok=True)
        fresh = self.home / "agora.toml.new"
        fresh.write_text("\n".join([settings, *tables]), "utf-8")
        fresh.chmod(0o600)
        fresh.replace(self.home / "agora.toml")

    def route(self, target: str, tool: str | None = None, **given: Any) -> dict[str, Any]:
        """The result of `agora_route`, which worked; what is left out goes into `arguments`."""
        own = {name: given.pop(name) for name in ("intent", "dry_run") if name in given}
        named = {} if tool is None else {"tool": tool}
        return self.served.call("agora_route", target=target, arguments=given, **named, **own)

    def refused(self, target: str, tool: str | None = None, **given: Any) -> dict[str, Any]:
        """The error of `agora_route`."""
        named = {} if tool is None else {"tool": tool}
        return self.served.refused("agora_route", target=target, arguments=given, **named)

    def backend(self, name: str) -> dict[str, Any]:
        """Its row of `agora_backends`."""
        rows: list[dict[str, Any]] = self.served.call("agora_backends")["backends"]
        return {str(row["name"]): row for row in rows}[name]


def said(result: Mapping[str, Any]) -> str:
    """The texts of a result."""
    return "\n".join(block.get("text", "") for block in result["content"])


def ended(pids: list[int], seconds: float = 5.0) -> None:
    """Wait until none of the processes runs; one that does is put down first."""
    try:
        until(lambda: not [pid for pid in pids if runs(pid)], f"some of {pids} still run", seconds)
    finally:
        for pid in filter(runs, pids):
            os.kill(pid, 9)


@contextmanager
def over_http(puppet: Puppet, port: int = 0) -> Iterator[tuple[subprocess.Popen[str], int]]:
    """The puppet as a process that serves HTTP, and its port; killed at the end."""
    command = [sys.executable, "-I", "-S", str(PUPPET), str(puppet.file), str(port)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout is not None
            yield process, int(process.stdout.readline())
        finally:
            process.kill()
