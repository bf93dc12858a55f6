"""Real clients of real servers with real backends: a data folder with tables, and an agent that calls through them."""

from __future__ import annotations

import json
import sys
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import Future
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Literal

import psutil
from mcp_types import CallToolResult
from tests.integration.backends.heard import NAUGHTY
from tests.integration.clients import Era, HttpServer, SdkClient, over_stdio

from agora.daemon import control

PATIENCE = 20.0
"""Seconds that anything may take in a test: far more than it needs."""

AT_ONCE = 3.0
"""Seconds for what has to take one: three times that, because the machines of CI do other work too."""

Way = Literal["alone", "shared", "http"]
WAYS: tuple[Way, ...] = ("alone", "shared", "http")
"""By a server process of its own, by the shared server through a session of it, and over HTTP."""

_pause = threading.Event()
"""Set by nobody: waiting for it is a bounded wait."""


def table(name: str, *habits: str, **keys: object) -> str:
    """A table for `naughty.py` with those habits and `keys`; what its tools say of themselves is believed."""
    given = {"command": sys.executable, "args": [str(NAUGHTY), *habits], "trusted": True, "retry_delay": 0.05, **keys}
    return written(name, **given)


def written(name: str, **keys: object) -> str:
    """A table with those keys; a dictionary becomes a table of texts."""
    lines = ["[[backends]]", f'name = "{name}"']
    lines += [f"{key} = {json.dumps(value)}" for key, value in keys.items() if not isinstance(value, dict)]
    for key, value in keys.items():
        if isinstance(value, dict):
            lines += [f"[backends.{key}]", *(f"{each} = {json.dumps(text)}" for each, text in value.items())]
    return "\n".join([*lines, "", ""])


def configure(home: Path, *tables: str) -> None:
    """Write the file of the data folder anew, as an editor does: whole."""
    home.mkdir(mode=0o700, parents=True, exist_ok=True)
    new = home / "agora.toml.new"
    new.write_text("".join(tables), "utf-8")
    new.replace(home / "agora.toml")


class Agent(SdkClient):
    """A client with the calls of the gateway."""

    def route(self, backend: str, name: str, **arguments: Any) -> dict[str, Any]:
        """What a call of a backend's tool that must work comes to."""
        result = self.result("agora_route", {"target": backend, "tool": name, "arguments": arguments})
        found = result.structured_content
        assert isinstance(found, dict), result
        assert found.get("routed"), found
        return found

    def fails(self, backend: str, name: str, **arguments: Any) -> dict[str, Any]:
        """The error of a call of a backend's tool that must not work."""
        return error_of(self.result("agora_route", {"target": backend, "tool": name, "arguments": arguments}))

    def begin(self, backend: str, name: str, **arguments: Any) -> Future[CallToolResult]:
        """A call under way; cancelling it is what a client does whose user has changed their mind."""
        given = {"target": backend, "tool": name, "arguments": arguments}
        return self.portal.start_task_soon(lambda: self.client.call_tool("agora_route", given))

    def backends(self) -> dict[str, dict[str, Any]]:
        """What is said of each backend, by its name."""
        return {row["name"]: row for row in self.call("agora_backends")["backends"]}

    def pid(self, backend: str) -> int:
        """The process of a backend that is `naughty.py`."""
        found: int = self.route(backend, "surroundings")["structured"]["pid"]
        return found


def text(found: Mapping[str, Any]) -> str:
    """The text of a result, wherever it stands."""
    structured = found.get("structured")
    return str(structured["text"] if structured else found["content"][0]["text"])


def error_of(result: CallToolResult) -> dict[str, Any]:
    """The error of a call that did not work."""
    assert isinstance(result.structured_content, dict)
    assert result.is_error, result.structured_content
    error: dict[str, Any] = result.structured_content["error"]
    assert error["message"], error
    assert error.get("hint"), error
    return error


@contextmanager
def agent(way: Way, home: Path, era: Era = "auto", settings: Mapping[str, object] | None = None) -> Iterator[Agent]:
    """An agent whose server has the data folder `home`; a shared server goes on when it is gone."""
    wanted = {"http.rate": 100_000, **(settings or {})}
    if way == "http":
        with HttpServer(home, settings=wanted) as server, Agent(server.target(), era=era) as connected:
            yield connected
        return
    with Agent(over_stdio(home, wanted | {"server.shared": way == "shared"}), era=era) as connected:
        yield connected


def end_shared(home: Path) -> None:
    """End the shared server of a data folder, if there is one."""
    if home.exists() and control.ask(home, "status") is not None:
        control.stop(home)


def server_pid(connected: SdkClient) -> int:
    """The process that serves an agent."""
    found: int = connected.call("agora_status")["pid"]
    return found


def eventually(holds: Callable[[], object], what: str, seconds: float = PATIENCE) -> None:
    """Return once `holds()`; fails after a while."""
    until = time.monotonic() + seconds
    while not holds():
        assert time.monotonic() < until, what
        _pause.wait(0.02)


def family(pid: int) -> list[int]:
    """A process and all that it has started."""
    return [pid, *(child.pid for child in psutil.Process(pid).children(recursive=True))]


def count(file: Path) -> int:
    """How often a tool was called that adds a line to a file."""
    return len(file.read_text("utf-8").splitlines()) if file.exists() else 0
