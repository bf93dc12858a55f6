"""A client made of pipes: it sends any bytes and keeps every line that comes back."""

from __future__ import annotations

import json
import os
import queue
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

SERVER = Path(__file__).with_name("echo_server.py")
SOURCE = Path(__file__).parents[3] / "src"
PATIENCE = 15.0


def server_environment() -> dict[str, str]:
    """This process's, with the checkout importable, and output buffered as it is for every user."""
    kept = {name: value for name, value in os.environ.items() if name != "PYTHONUNBUFFERED"}
    return kept | {"PYTHONPATH": str(SOURCE)}


class RawClient:
    """The echo server as a child process, and both ends of its pipes."""

    def __init__(self, errors: Path, **given: object) -> None:
        self.errors = errors
        self._answers: queue.Queue[dict[str, Any] | None] = queue.Queue()
        self.lines: list[bytes] = []
        with errors.open("wb") as stderr:
            self.process = subprocess.Popen(
                [sys.executable, str(SERVER), *(f"{name}={value}" for name, value in given.items())],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=stderr,
                env=server_environment(),
                bufsize=0,
            )
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        self.stdin, self.stdout = self.process.stdin, self.process.stdout
        self._reading = threading.Event()
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()
        self._reading.set()

    def _read(self) -> None:
        buffered = os.fdopen(os.dup(self.stdout.fileno()), "rb")
        with buffered:
            while True:
                self._reading.wait()
                line = buffered.readline()
                if not line:
                    break
                self.lines.append(line)
                self._answers.put(frame(line))
        self._answers.put(None)

    def pause_reading(self) -> None:
        """Read nothing after the next line until `resume_reading`."""
        self._reading.clear()

    def resume_reading(self) -> None:
        self._reading.set()

    def send(self, message: dict[str, Any] | bytes) -> None:
        line = message if isinstance(message, bytes) else json.dumps(message).encode()
        self.send_raw(line + b"\n")

    def send_raw(self, data: bytes) -> None:
        rest = memoryview(data)
        while rest:
            rest = rest[self.stdin.write(rest) :]

    def request(self, request_id: object, method: str, **params: Any) -> None:
        self.send({"jsonrpc": "2.0", "id": request_id, "method": method, "params": params})

    def call(self, request_id: object, tool: str, **arguments: Any) -> None:
        self.request(request_id, "tools/call", name=tool, arguments=arguments)

    def initialize(self, version: str = "2025-06-18") -> dict[str, Any]:
        self.request(
            "init",
            "initialize",
            protocolVersion=version,
            capabilities={"roots": {}},
            clientInfo={"name": "raw", "version": "1"},
        )
        answer = self.answer("init")
        self.send({"jsonrpc": "2.0", "method": "notifications/initialized"})
        return answer

    def next(self) -> dict[str, Any] | None:
        """The next frame; None when the server has closed its end."""
        return self._answers.get(timeout=PATIENCE)

    def answer(self, request_id: object) -> dict[str, Any]:
        """The next frame, which must be the answer to `request_id`."""
        found = self.next()
        assert found is not None, f"no answer, but the end of output\n{self.log()}"
        assert found.get("id", "none") == request_id, (found, self.log())
        return found

    def ping(self) -> None:
        name = f"ping-{len(self.lines)}"
        self.send({"jsonrpc": "2.0", "id": name, "method": "ping"})
        assert self.answer(name)["result"] == {}

    def rest(self) -> list[dict[str, Any]]:
        """Every frame until the server closes its end."""
        return [found for found in iter(self.next, None) if found is not None]

    def end_input(self) -> None:
        self.stdin.close()

    def wait(self, seconds: float = PATIENCE) -> int:
        return self.process.wait(seconds)

    def log(self) -> str:
        return self.errors.read_text("utf-8", "replace")

    def wait_for_log(self, words: str) -> None:
        deadline = time.monotonic() + PATIENCE
        while words not in self.log():
            assert time.monotonic() < deadline, self.log()
            with suppress(subprocess.TimeoutExpired):
                self.process.wait(0.02)

    def signal_and_time(self, number: signal.Signals) -> tuple[int, float]:
        """The exit status after a signal, and the seconds it took."""
        started = time.monotonic()
        self.process.send_signal(number)
        return self.wait(), time.monotonic() - started

    def dispose(self) -> None:
        self.process.kill()
        self.process.wait()
        self._reading.set()
        self._reader.join(PATIENCE)
        with suppress(OSError):
            self.stdin.close()
        self.stdout.close()


def frame(line: bytes) -> dict[str, Any]:
    """What is in one line of output, which must be one whole JSON-RPC message."""
    assert line.endswith(b"\n"), line
    message: dict[str, Any] = json.loads(line)
    assert message["jsonrpc"] == "2.0", line
    kinds = [kind for kind in ("method", "result", "error") if kind in message]
    assert len(kinds) == 1, line
    if kinds == ["error"]:
        assert isinstance(message["error"]["code"], int), line
        assert isinstance(message["error"]["message"], str), line
    assert kinds == ["method"] or "id" in message, line
    return message


@pytest.fixture
def environment() -> dict[str, str]:
    """The environment to start an echo server in."""
    return server_environment()


@pytest.fixture
def start(tmp_path: Path) -> Iterator[Callable[..., RawClient]]:
    """Starts echo servers; each is killed at the end of the test."""
    started: list[RawClient] = []

    def make(**given: object) -> RawClient:
        started.append(RawClient(tmp_path / f"stderr-{len(started)}.log", **given))
        return started[-1]

    yield make
    for client in started:
        client.dispose()


@pytest.fixture
def client(start: Callable[..., RawClient]) -> RawClient:
    """One echo server that has not been spoken to."""
    return start()


@pytest.fixture(scope="module")
def shared_client(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RawClient]:
    """One initialized echo server for all tests of a module."""
    client = RawClient(tmp_path_factory.mktemp("server") / "stderr.log", max_line_bytes=100_000)
    client.initialize()
    yield client
    client.dispose()
