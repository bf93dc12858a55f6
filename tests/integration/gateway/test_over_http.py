"""Backends that are reached by Streamable HTTP: the SDK's server as a process, and one that refuses whatever comes."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from concurrent.futures import Future
from contextlib import ExitStack
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest
from mcp_types import CallToolResult
from tests.integration.backends.http_rig import Process
from tests.integration.gateway.rig import (
    AT_ONCE,
    PATIENCE,
    Agent,
    agent,
    configure,
    end_shared,
    error_of,
    eventually,
    text,
    written,
)


class Refusing(BaseHTTPRequestHandler):
    """Wants a token that nobody has."""

    def do_POST(self) -> None:
        self.rfile.read(int(self.headers.get("content-length", 0)))
        self.send_response(401)
        self.send_header("www-authenticate", "Bearer")
        self.send_header("content-length", "0")
        self.end_headers()

    def log_message(self, *_: object) -> None:
        """Nothing is written."""


class Far:
    """A server that is started, killed and started again at one address."""

    def __init__(self) -> None:
        self._process = Process()
        self.port, self.url = self._process.port, self._process.url

    def kill(self) -> None:
        self._process.kill()

    def start(self) -> None:
        self._process = Process(port=self.port)


@pytest.fixture(scope="module")
def far() -> Iterator[Far]:
    server = Far()
    yield server
    server.kill()


@pytest.fixture(scope="module")
def refusing() -> Iterator[str]:
    """The address of a server that lets nobody in."""
    with ThreadingHTTPServer(("127.0.0.1", 0), Refusing) as server:
        thread = threading.Thread(target=server.serve_forever, args=(0.05,))
        thread.start()
        yield f"http://127.0.0.1:{server.server_port}/mcp"
        server.shutdown()
        thread.join(PATIENCE)


@pytest.fixture(scope="module")
def ann(tmp_path_factory: pytest.TempPathFactory, far: Far, refusing: str) -> Iterator[Agent]:
    """An agent of a shared server with the same server twice, once with little patience, and the one that refuses."""
    home = tmp_path_factory.mktemp("home")
    configure(
        home,
        written("far", url=far.url, retry_delay=0.05),
        written("short", url=far.url, timeout=0.5, retry_delay=0.05),
        written("refusing", url=refusing, retry_delay=0.05),
    )
    with ExitStack() as stack:
        stack.callback(end_shared, home)
        yield stack.enter_context(agent("shared", home))


def test_a_server_that_was_started_anew_knows_no_session_and_nobody_sees_it(ann: Agent, far: Far) -> None:
    assert text(ann.route("far", "echo", text="before")) == "before"
    far.kill()
    far.start()
    # It answers 404 to the session of before, or the connection is gone: `echo` counts as writing, and was not made.
    assert text(ann.route("far", "echo", text="after")) == "after"
    assert text(ann.route("far", "calls")) == "echo,calls"


def test_an_outage_is_told_at_once_and_is_over_when_the_server_is_back(ann: Agent, far: Far) -> None:
    assert text(ann.route("far", "echo", text="before")) == "before"
    far.kill()
    try:
        for _ in range(2):
            began = time.monotonic()
            error = ann.fails("far", "echo")
            assert time.monotonic() - began < AT_ONCE
            assert (error["code"], error["backend"], error["retryable"]) == ("backend_unavailable", "far", True)
        assert ann.backends()["far"]["health"] in {"degraded", "dead"}
    finally:
        far.start()
    # It may have been left alone for a moment.
    eventually(lambda: not ann.result("agora_route", ECHO).is_error, "it is back")
    assert ann.backends()["far"]["health"] == "healthy"


ECHO = {"target": "far", "tool": "echo", "arguments": {"text": "back"}}


def test_a_server_that_dies_in_a_call_leaves_its_outcome_unknown(ann: Agent, far: Far) -> None:
    ann.route("far", "echo")
    pending: Future[CallToolResult] = ann.begin("far", "hang")
    eventually(lambda: "hang" in text(ann.route("far", "calls")), "it has been called")
    began = time.monotonic()
    far.kill()
    error = error_of(pending.result(PATIENCE))
    assert time.monotonic() - began < AT_ONCE
    far.start()
    assert error["code"] == "outcome_unknown"
    eventually(lambda: not ann.result("agora_route", ECHO).is_error, "it is back")
    assert "hang" not in text(ann.route("far", "calls")), "it is not made again"


def test_a_server_that_wants_another_token_says_so(ann: Agent) -> None:
    error = ann.fails("refusing", "echo")
    assert error["backend"] == "refusing"
    assert "401" in error["message"]
    assert "token" in error["hint"]


def test_a_slow_call_is_a_timeout_and_the_next_one_works(ann: Agent) -> None:
    error = ann.fails("short", "hang")
    # Its name says nothing of reading.
    assert error["code"] == "outcome_unknown"
    assert "0.5 s" in error["message"]
    assert text(ann.route("short", "echo", text="next")) == "next"


def test_progress_and_long_results_come_over_http_too(ann: Agent) -> None:
    assert text(ann.route("far", "echo", text="é \U0001f600")) == "é \U0001f600"
    found = ann.route("far", "large", bytes=200_000)
    assert found["cut"]["bytes"] == 200_000
    [row] = ann.call("agora_get", ids=[found["cut"]["next"]])["results"]
    assert row["text"] == "é" * 25_000
    told: list[float] = []

    async def on_progress(progress: float, total: float | None = None, message: str | None = None) -> None:
        del total
        if message and message.startswith("step"):
            told.append(progress)

    given = {"target": "far", "tool": "progress"}
    ann.portal.call(ann.client.call_tool, "agora_route", given, PATIENCE, on_progress)
    assert told == [1, 2, 3]


def test_a_call_that_is_taken_back_is_taken_back_over_http(ann: Agent) -> None:
    pending = ann.begin("far", "hang")
    eventually(lambda: ann.backends()["far"]["running_calls"] == 1, "it is under way")
    assert pending.cancel()
    eventually(lambda: ann.backends()["far"]["running_calls"] == 0, "it is not")
    assert text(ann.route("far", "echo", text="next")) == "next"
