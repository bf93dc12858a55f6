"""Real server processes and real MCP clients for tests: the same calls over every transport and protocol era."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import AbstractContextManager, asynccontextmanager, suppress
from pathlib import Path
from types import TracebackType
from typing import Any, Literal, Protocol, Self

import httpx2
from anyio.from_thread import BlockingPortal, start_blocking_portal
from mcp import Client, StdioServerParameters
from mcp.client.streamable_http import streamable_http_client
from mcp_types import CallToolResult, Implementation

SOURCE = Path(__file__).parents[2] / "src"
PATIENCE = 30.0
"""Seconds that anything may take in a test: far more than it needs."""

Era = Literal["auto", "legacy"]
"""`auto` speaks the stateless protocol with a server that has it, `legacy` shakes hands."""


class ToolClient(Protocol):
    """An agent that calls tools."""

    def call(self, tool: str, **arguments: Any) -> dict[str, Any]:
        """The structured result of a call that must work."""
        ...

    def refused(self, tool: str, **arguments: Any) -> dict[str, Any]:
        """The structured error of a call that must not work."""
        ...


class SdkClient:
    """The official SDK's client, connected from `__enter__` to `__exit__`; implements `ToolClient`."""

    def __init__(
        self, target: object, *, era: Era = "auto", name: str = "tester", version: str = "1.2", **given: Any
    ) -> None:
        """`target` is what `mcp.Client` takes; so are the other arguments."""
        self._target = target
        self._given = {"mode": era, "client_info": Implementation(name=name, version=version), **given}
        self._portal_context: AbstractContextManager[BlockingPortal] = start_blocking_portal()

    def __enter__(self) -> Self:
        self.portal = self._portal_context.__enter__()
        try:
            # Not made before: it would have a transport that nobody closes.
            client = Client(self._target, **self._given)  # type: ignore[arg-type]
            self._context = self.portal.wrap_async_context_manager(client)
            self.client = self._context.__enter__()
        except BaseException:
            self._portal_context.__exit__(*sys.exc_info())
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, problem: BaseException | None, trace: TracebackType | None
    ) -> None:
        try:
            self._context.__exit__(kind, problem, trace)
        finally:
            self._portal_context.__exit__(kind, problem, trace)

    def call(self, tool: str, **arguments: Any) -> dict[str, Any]:
        result = self.result(tool, arguments)
        assert not result.is_error, result.structured_content
        return _structured(result)

    def refused(self, tool: str, **arguments: Any) -> dict[str, Any]:
        result = self.result(tool, arguments)
        assert result.is_error, result.structured_content
        error: dict[str, Any] = _structured(result)["error"]
        return error

    def result(self, tool: str, arguments: dict[str, Any]) -> CallToolResult:
        """What the server answers, whatever it is.

        Raises: MCPError for a protocol error.
        """
        return self.portal.call(lambda: self.client.call_tool(tool, arguments, read_timeout_seconds=PATIENCE))


def _structured(result: CallToolResult) -> dict[str, Any]:
    assert isinstance(result.structured_content, dict), result
    return result.structured_content


def environment(home: Path, settings: Mapping[str, object] | None = None) -> dict[str, str]:
    """The environment of a server process: the checkout importable, `settings` by dotted name, no others.

    A server over stdio is a process of its own unless `server.shared` says otherwise.
    """
    kept = {name: value for name, value in os.environ.items() if not name.startswith("AGORA_")}
    given = {f"AGORA_{key.replace('.', '_').upper()}": str(value) for key, value in (settings or {}).items()}
    return kept | {"PYTHONPATH": str(SOURCE), "AGORA_HOME": str(home), "AGORA_SERVER_SHARED": "false"} | given


def over_stdio(home: Path, settings: Mapping[str, object] | None = None, folder: Path | None = None) -> object:
    """A target for `SdkClient`: a server process of its own, which works in `folder`."""
    return StdioServerParameters(
        command=sys.executable, args=["-m", "agora", "serve"], env=environment(home, settings), cwd=folder
    )


@asynccontextmanager
async def over_http(url: str, token: str | None, **headers: str) -> AsyncIterator[Any]:
    """A target for `SdkClient`: a server that runs already."""
    shown = {"Authorization": f"Bearer {token}"} if token else {}
    async with (
        httpx2.AsyncClient(headers=shown | headers, timeout=PATIENCE) as http,
        streamable_http_client(url, http_client=http) as streams,
    ):
        yield streams


class HttpServer:
    """`agora serve --http` as a process, from `__enter__`, when it listens, to `__exit__`, when it is gone."""

    def __init__(
        self,
        home: Path,
        *arguments: str,
        settings: Mapping[str, object] | None = None,
        address: str = "127.0.0.1:0",
        folder: Path | None = None,
    ) -> None:
        home.mkdir(parents=True, exist_ok=True)
        self.home = home
        self._arguments = ["serve", "--http", address, *arguments]
        self._environment = environment(home, settings)
        self._folder = folder
        self._errors = home / f"stderr-{time.monotonic_ns()}.txt"
        self.url = ""

    def __enter__(self) -> Self:
        with self._errors.open("wb") as errors:
            self.process = subprocess.Popen(
                [sys.executable, "-m", "agora", *self._arguments],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=errors,
                env=self._environment,
                cwd=self._folder,
            )
        try:
            self.url = self.wait_for_log(r"^listening on (http://\S+/mcp)$")[1]
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        self.process.kill()
        self.process.communicate(timeout=PATIENCE)

    @property
    def port(self) -> int:
        return int(self.url.removesuffix("/mcp").rpartition(":")[2])

    @property
    def origin(self) -> str:
        """The URL without its path."""
        return self.url.removesuffix("/mcp")

    @property
    def token(self) -> str:
        """The first secret in the token file."""
        return (self.home / "token").read_text("utf-8").split()[0]

    @property
    def log(self) -> str:
        """What the server has written to stderr."""
        return self._errors.read_text("utf-8", "replace")

    def wait_for_log(self, pattern: str) -> re.Match[str]:
        """The first match in the log, as soon as it is there."""
        deadline = time.monotonic() + PATIENCE
        while (found := re.search(pattern, self.log, re.MULTILINE)) is None:
            assert time.monotonic() < deadline, self.log
            with suppress(subprocess.TimeoutExpired):
                self.process.wait(0.02)
                assert re.search(pattern, self.log, re.MULTILINE), f"it has ended:\n{self.log}"
        return found

    def target(self, token: str | None = None, **headers: str) -> object:
        """A target for `SdkClient` that shows the token, or the given one."""
        shown = token or (self.token if (self.home / "token").exists() else None)
        return over_http(self.url, shown, **headers)

    def http(self, **headers: str) -> httpx2.Client:
        """A plain HTTP client that shows the token."""
        shown = {"Authorization": f"Bearer {self.token}"} if (self.home / "token").exists() else {}
        return httpx2.Client(base_url=self.origin, headers=shown | headers, timeout=PATIENCE)

    def stop(self, number: signal.Signals = signal.SIGTERM) -> tuple[int, float]:
        """The exit status after a signal, and the seconds that it took."""
        started = time.monotonic()
        self.process.send_signal(number)
        return self.process.wait(PATIENCE), time.monotonic() - started


def run(home: Path, arguments: Sequence[str], settings: Mapping[str, object] | None = None) -> tuple[int, str, str]:
    """Exit status, stdout and stderr of an `agora` command that ends by itself."""
    done = subprocess.run(
        [sys.executable, "-m", "agora", *arguments],
        capture_output=True,
        stdin=subprocess.DEVNULL,
        text=True,
        encoding="utf-8",
        check=False,
        timeout=PATIENCE,
        env=environment(home, settings),
    )
    return done.returncode, done.stdout, done.stderr
