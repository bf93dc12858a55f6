"""A stdio MCP client small enough that its own time does not count."""

from __future__ import annotations

import json
import os
import subprocess
import time
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import psutil


class Server:
    """A server process and one connection to it, measured from outside."""

    def __init__(self, command: list[str], env: dict[str, str] | None = None, cwd: Path | None = None) -> None:
        self._began = time.perf_counter()
        self._process = subprocess.Popen(
            command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            env={**os.environ, **(env or {})},
            cwd=cwd,
        )
        self._watch = psutil.Process(self._process.pid)
        self._id = 0

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        assert self._process.stdin
        self._process.stdin.close()
        try:
            self._process.wait(10)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()

    def handshake(self) -> list[dict[str, Any]]:
        """Initialise and list the tools."""
        self.request(
            "initialize",
            protocolVersion="2025-06-18",
            capabilities={},
            clientInfo={"name": "bench", "version": "1"},
        )
        self._send({"jsonrpc": "2.0", "method": "notifications/initialized"})
        tools: list[dict[str, Any]] = self.request("tools/list")["tools"]
        return tools

    def tool(self, name: str, **arguments: Any) -> dict[str, Any]:
        """The result of a tool call; a failed one ends the benchmark."""
        result = self.request("tools/call", name=name, arguments=arguments)
        if result.get("isError"):
            raise RuntimeError(f"{name}: {result}")
        return result

    def request(self, method: str, **params: Any) -> dict[str, Any]:
        """One request and its result."""
        self._id += 1
        self._send({"jsonrpc": "2.0", "id": self._id, "method": method, "params": params})
        assert self._process.stdout
        while line := self._process.stdout.readline():
            message = json.loads(line)
            if message.get("id") == self._id:
                if "error" in message:
                    raise RuntimeError(f"{method}: {message['error']}")
                result: dict[str, Any] = message["result"]
                return result
        raise RuntimeError(f"{method}: the server ended with {self._process.wait()}")

    @property
    def pid(self) -> int:
        """The process's number."""
        return self._process.pid

    def together(self, requests: list[tuple[str, dict[str, Any]]]) -> None:
        """Send all of these at once and wait until each is answered; a failed one ends the benchmark."""
        waiting = set()
        for method, params in requests:
            self._id += 1
            waiting.add(self._id)
            self._send({"jsonrpc": "2.0", "id": self._id, "method": method, "params": params})
        assert self._process.stdout
        while waiting:
            message = json.loads(self._process.stdout.readline())
            if message.get("id") in waiting:
                if "error" in message or message["result"].get("isError"):
                    raise RuntimeError(f"{message}")
                waiting.remove(message["id"])

    def since_start(self) -> float:
        """Seconds since the process was started."""
        return time.perf_counter() - self._began

    def cpu(self) -> float:
        """Processor seconds that the server and its children have used."""
        processes = [self._watch, *self._watch.children(recursive=True)]
        return sum(sum(process.cpu_times()[:2]) for process in processes)

    def rss(self) -> int:
        """Resident bytes of the server and its children."""
        return sum(p.memory_info().rss for p in [self._watch, *self._watch.children(recursive=True)])

    def _send(self, message: dict[str, Any]) -> None:
        assert self._process.stdin
        self._process.stdin.write(json.dumps(message).encode() + b"\n")
        self._process.stdin.flush()
