"""The other end of `chroma_worker.py`."""

from __future__ import annotations

import contextlib
import json
import os
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from tests.crash.failpoints import Point
from tests.integration.processes import SOURCE, environment

ROOT = SOURCE.parent
WORKER = Path(__file__).with_name("chroma_worker.py")
PATIENCE = 60.0


@contextlib.contextmanager
def starting(folder: Path) -> Iterator[Callable[[str], Process]]:
    """Starts processes on one folder, by the names of their agents; all are gone at the end."""
    started: list[Process] = []

    def one(agent: str) -> Process:
        started.append(Process(folder, agent))
        return started[-1]

    yield one
    for process in started:
        process.dispose()


class Process:
    """A store with Chroma in a process of its own."""

    def __init__(self, folder: Path, agent: str) -> None:
        self.folder = folder
        self.process = subprocess.Popen(
            [sys.executable, str(WORKER), str(folder), agent],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            env=environment(None, {"PYTHONPATH": os.pathsep.join([str(SOURCE), str(ROOT)])}),
        )
        self._watchdog = threading.Timer(PATIENCE, self.process.kill)
        self._watchdog.start()
        assert self.line() == '"ready"'
        self.ask("open")

    def line(self) -> str:
        assert self.process.stdout is not None
        return self.process.stdout.readline().decode().strip()

    def tell(self, *command: object) -> None:
        assert self.process.stdin is not None
        self.process.stdin.write(json.dumps(command).encode() + b"\n")
        self.process.stdin.flush()

    def answer(self) -> Any:
        line = self.line()
        assert line, f"the worker ended with {self.process.wait(10)}"
        found = json.loads(line)
        assert "ok" in found, found
        return found["ok"]

    def ask(self, *command: object) -> Any:
        self.tell(*command)
        return self.answer()

    def kill_when(self, due: Callable[[dict[str, Any]], bool]) -> dict[str, Any]:
        """Kill it as soon as its mark is `due`; the mark."""
        ends = time.monotonic() + PATIENCE
        while True:
            with contextlib.suppress(FileNotFoundError):
                mark: dict[str, Any] = json.loads((self.folder / "chroma" / "agora-index.json").read_text())
                if due(mark):
                    self.kill()
                    return mark
            assert time.monotonic() < ends
            assert self.process.poll() is None

    def dies(self, point: Point, *command: object) -> None:
        """Arm the point, give the command, and see the process die there."""
        self.ask("arm", point.plain())
        self.tell(*command)
        assert self.line() == json.dumps({"reached": point.plain()}), f"{point} was not reached"
        assert self.line() == ""
        self.process.wait(10)

    def kill(self) -> None:
        self.process.kill()
        self.process.wait(10)

    def dispose(self) -> None:
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        self.kill()
        self._watchdog.cancel()
        with contextlib.suppress(OSError):
            self.process.stdin.close()
        self.process.stdout.close()
