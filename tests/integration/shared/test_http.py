"""`agora serve --http` where the sessions of a data folder share a server."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest
from tests.integration.clients import HttpServer, SdkClient, run
from tests.integration.processes import RunAgora, Serve, runs
from tests.integration.shared.conftest import eventually, kill_server, server_of, servers_of

SHARED = {"server.shared": True}


@pytest.fixture
def over_http(home: Path) -> Iterator[Any]:
    """Starts `agora serve --http` commands."""
    with ExitStack() as stack:

        def start(*arguments: str, settings: Any = None) -> HttpServer:
            server = HttpServer(home, *arguments, settings={**SHARED, **(settings or {})})
            return stack.enter_context(server)

        yield start


def test_http_is_served_by_the_process_that_serves_the_sessions(session: Serve, home: Path, over_http: Any) -> None:
    one = session()
    one.call("agora_save", content="The printer on the second floor eats envelopes.", namespace="shared")
    server = over_http()
    with SdkClient(server.target()) as client:
        status = client.call("agora_status")
        assert status["pid"] == server_of(home)["pid"] == one.call("agora_status")["pid"]
        assert status["connection"]["transport"] == "http"
        (hit,) = client.call("agora_query", query="what does the printer eat?", namespace="shared")["results"]
        assert "envelopes" in hit["content"]
    assert servers_of(home) == [server_of(home)["pid"]]


def test_http_alone_starts_the_server_and_keeps_it(home: Path, over_http: Any) -> None:
    server = over_http(settings={"server.idle_seconds": 0.1})
    pid = server_of(home)["pid"]
    with SdkClient(server.target()) as client:
        client.call("agora_save", content="x")
    eventually(lambda: server_of(home)["pid"] == pid, "it stays while HTTP is wanted")
    assert server.stop()[0] == 0


def test_the_end_of_the_command_ends_http_and_not_the_sessions(session: Serve, home: Path, over_http: Any) -> None:
    one = session()
    server = over_http()
    status, seconds = server.stop(signal.SIGTERM)
    assert (status, seconds < 3) == (0, True)
    assert one.call("agora_status")["health"] == "ok"
    assert server_of(home)["pid"] == one.call("agora_status")["pid"]


def test_a_killed_server_is_followed_by_the_next_one_at_the_same_address(home: Path, over_http: Any) -> None:
    server = over_http()
    with SdkClient(server.target()) as client:
        saved = client.call("agora_save", content="Kept through the crash.")["id"]
    first = kill_server(home)
    eventually(lambda: any(pid != first for pid in servers_of(home)), "another server is started")
    eventually(lambda: reachable(server, saved), "it listens at the same address")


def reachable(server: HttpServer, note: str) -> bool:
    try:
        with SdkClient(server.target()) as client:
            return not client.call("agora_get", ids=[note])["unknown"]
    except Exception:  # noqa: BLE001 - whatever a client raises while nobody listens
        return False


def test_a_restart_keeps_the_address(home: Path, over_http: Any, run_shared: RunAgora) -> None:
    server = over_http()
    with SdkClient(server.target()) as client:
        saved = client.call("agora_save", content="Kept through the restart.")["id"]
    first = server_of(home)["pid"]
    assert run_shared("server", "restart").returncode == 0
    assert not runs(first)
    eventually(lambda: reachable(server, saved), "it listens at the same address")


def test_an_address_that_is_taken_is_told_as_without_a_shared_server(home: Path, over_http: Any) -> None:
    server = over_http()
    status, printed, errors = run(home, ["serve", "--http", f"127.0.0.1:{server.port}"], SHARED)
    assert (status, printed) == (1, "")
    assert "cannot listen" in errors
    assert "port 0" in errors


def test_other_settings_get_a_process_of_their_own_and_say_so(session: Serve, home: Path, over_http: Any) -> None:
    session()
    server = over_http(settings={"http.rate": 7})
    assert "http.rate" in server.log
    with SdkClient(server.target()) as client:
        status = client.call("agora_status")
    assert status["pid"] != server_of(home)["pid"]
