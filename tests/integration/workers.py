"""Processes with a store of their own, which tests give commands."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

WORKER = Path(__file__).with_name("store_worker.py")
SOURCE = Path(__file__).parents[2] / "src"
PATIENCE = 120.0


class Process:
    """A store worker and its pipes."""

    def __init__(self, folder: Path, agent: str) -> None:
        self.process = subprocess.Popen(
            [sys.executable, str(WORKER), str(folder), agent],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            encoding="utf-8",
            env=os.environ | {"PYTHONPATH": str(SOURCE), "PYTHONUTF8": "1"},
        )
        self._watchdog = threading.Timer(PATIENCE, self.process.kill)
        self._watchdog.start()

    def read(self) -> Any:
        """The next answer."""
        assert self.process.stdout is not None
        line = self.process.stdout.readline()
        assert line, "the worker ended"
        return json.loads(line)

    def tell(self, *command: object) -> None:
        """Give a command and do not wait."""
        assert self.process.stdin is not None
        self.process.stdin.write(json.dumps(command) + "\n")
        self.process.stdin.flush()

    def answer(self) -> Any:
        """What the oldest unanswered command returned."""
        found = self.read()
        assert "ok" in found, found
        return found["ok"]

    def ask(self, *command: object) -> Any:
        """Give a command and wait for what it returns."""
        self.tell(*command)
        return self.answer()

    def end(self) -> None:
        """End it by the end of its input."""
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        with suppress(OSError):
            # One that was killed reads no more.
            self.process.stdin.close()
        try:
            self.process.wait(20)
        finally:
            self.process.kill()
            self.process.wait(20)
            self._watchdog.cancel()
            self.process.stdout.close()

    def kill(self) -> None:
        """End it as `kill -9` does."""
        self.process.kill()
        self.process.wait(20)


Start = Callable[..., list[Process]]


@contextmanager
def working(tmp_path: Path) -> Iterator[Start]:
    """Starts workers on one folder and, unless told otherwise, opens their stores one after the other."""
    running: list[Process] = []

    def begin(number: int, folder: Path | None = None, *, opened: bool = True) -> list[Process]:
        found = [Process(folder or tmp_path, f"agent{place}") for place in range(number)]
        running.extend(found)
        for each in found:
            assert each.read() == "ready"
        if opened:
            for each in found:
                each.ask("open")
        return found

    yield begin
    for each in running:
        each.end()
