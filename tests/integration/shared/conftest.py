"""Sessions of a shared server, which is gone when its test is over."""

from __future__ import annotations

import json
import subprocess
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from subprocess import CompletedProcess
from typing import Any

import psutil
import pytest
from tests.integration.processes import AGORA, PATIENCE, RunAgora, Serve, environment, run_command, serving

from agora.daemon import control

HANDSHAKE = {
    "jsonrpc": "2.0",
    "id": 0,
    "method": "initialize",
    "params": {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "raw", "version": "1"}},
}

_pause = threading.Event()
"""Set by nobody: waiting for it is a bounded wait."""

SHARED = {"AGORA_SERVER_SHARED": "true"}


@pytest.fixture
def home(tmp_path: Path) -> Iterator[Path]:
    """A data folder whose shared server, if there is one, is ended at last."""
    folder = tmp_path / "home"
    yield folder
    found = control.ask(folder, "status") if folder.exists() else None
    if found is not None:
        control.stop(folder)


@pytest.fixture
def session(home: Path, project: Path, tmp_path: Path) -> Iterator[Serve]:
    """Starts sessions, as clients do."""
    with serving(home, project, tmp_path) as start:

        def begin(*options: str, env: dict[str, str] | None = None, **given: Any) -> Any:
            return start(*options, env={**SHARED, **(env or {})}, **given)

        yield begin


@pytest.fixture
def run_shared(home: Path, project: Path) -> RunAgora:
    """Runs one command, with the shared server wanted."""

    def run(*arguments: str, stdin: bytes = b"", env: Any = None, cwd: Path = project) -> Any:
        return run_command(arguments, home, cwd, stdin, {**SHARED, **(env or {})})

    return run


def greeted(home: Path, project: Path, env: Mapping[str, str] = SHARED, **given: Any) -> CompletedProcess[bytes]:
    """A session from its start to its end, whose client has said `HANDSHAKE` and nothing else."""
    return subprocess.run(
        [*AGORA, "serve"],
        input=json.dumps(HANDSHAKE).encode() + b"\n",
        capture_output=True,
        env=environment(home, env),
        cwd=project,
        timeout=2 * PATIENCE,
        check=True,
        **given,
    )


def server_of(home: Path) -> dict[str, Any]:
    """What the shared server says of itself."""
    found = control.ask(home, "status")
    assert found is not None, "no shared server runs"
    return found


def kill_server(home: Path) -> int:
    """Kill the server at once; the number that its process had."""
    pid = int(server_of(home)["pid"])
    process = psutil.Process(pid)
    process.kill()
    process.wait(PATIENCE)
    return pid


def eventually(holds: Callable[[], bool], what: str) -> None:
    """Return once `holds()`; fails after a while."""
    until = time.monotonic() + PATIENCE
    while not holds():
        assert time.monotonic() < until, what
        _pause.wait(0.02)


def servers_of(home: Path) -> list[int]:
    """The processes that serve that data folder, by their command lines."""
    found = []
    for process in psutil.process_iter(["cmdline"]):
        line = process.info["cmdline"] or []
        if "server" in line and "run" in line and str(home) in line:
            found.append(process.pid)
    return found
