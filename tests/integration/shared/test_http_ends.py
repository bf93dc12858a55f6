"""How `agora serve --http` beside the shared server ends, and when it starts that server again."""

from __future__ import annotations

import signal
import sys
import time
from collections.abc import Iterator
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import Any

import psutil
import pytest
from tests.integration.clients import HttpServer, SdkClient, environment
from tests.integration.processes import PATIENCE, RunAgora, Serve
from tests.integration.shared.conftest import eventually, server_of, servers_of

from agora.cli.attached import Starts
from agora.daemon import control
from agora.errors import StoreUnavailable
from agora.shim.relay import RESTART_SECONDS, RESTARTS

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="signals")

SHARED = {"server.shared": True}


@pytest.fixture
def over_http(home: Path) -> Iterator[Any]:
    """Starts `agora serve --http` commands."""
    with ExitStack() as stack:

        def start(*arguments: str, settings: Any = None) -> HttpServer:
            return stack.enter_context(HttpServer(home, *arguments, settings={**SHARED, **(settings or {})}))

        yield start


def listens(server: HttpServer) -> bool:
    try:
        with SdkClient(server.target()) as client:
            return bool(client.call("agora_status")["health"] == "ok")
    except Exception:  # noqa: BLE001 - whatever a client raises while nobody listens
        return False


def test_a_server_that_a_person_stopped_is_not_started_for_http_and_http_goes_on_with_the_next(
    home: Path, over_http: Any, run_shared: RunAgora
) -> None:
    server = over_http()
    assert run_shared("server", "stop").returncode == 0
    server.wait_for_log("the shared server was stopped, and HTTP with it")
    # Longer than it takes to start one.
    began = time.monotonic()
    eventually(lambda: time.monotonic() - began > 1.0, "a second goes by")
    assert servers_of(home) == []
    assert server.process.poll() is None
    assert run_shared("server", "start").returncode == 0
    eventually(lambda: listens(server), "it listens at the same address")
    assert server.stop(signal.SIGTERM)[0] == 0


def test_a_signal_ends_http_that_waits_for_a_server_that_a_person_stopped(over_http: Any, run_shared: RunAgora) -> None:
    server = over_http()
    assert run_shared("server", "stop").returncode == 0
    server.wait_for_log("the shared server was stopped, and HTTP with it")
    status, seconds = server.stop(signal.SIGINT)
    assert (status, seconds < 3) == (0, True)
    assert "Traceback" not in server.log


def test_the_next_message_of_an_agent_brings_http_back(
    session: Serve, home: Path, over_http: Any, run_shared: RunAgora
) -> None:
    one, server = session(), over_http()
    assert run_shared("server", "stop").returncode == 0
    server.wait_for_log("the shared server was stopped, and HTTP with it")
    assert one.call("agora_status")["pid"] == server_of(home)["pid"]
    eventually(lambda: listens(server), "it listens at the same address")


def test_servers_that_keep_ending_end_http_with_words(home: Path, over_http: Any) -> None:
    server = over_http()
    killed: set[int] = set()

    def kill_and_look() -> bool:
        for pid in {*servers_of(home)} - killed:
            killed.add(pid)
            with suppress(psutil.NoSuchProcess):
                psutil.Process(pid).kill()
        return server.process.poll() is not None

    eventually(kill_and_look, "it gives up")
    assert server.process.wait(PATIENCE) == 1
    assert "does not start" in server.log or f"the shared server has ended {RESTARTS} times" in server.log
    assert "Traceback" not in server.log


def test_starts_are_bounded_within_some_seconds_and_not_in_all() -> None:
    starts = Starts()
    for number in range(3 * RESTARTS):
        starts.count(number * RESTART_SECONDS / RESTARTS)
    # The last ones were the most that may be.
    with pytest.raises(StoreUnavailable, match="has ended 5 times within 15 s"):
        starts.count((3 * RESTARTS - 1) * RESTART_SECONDS / RESTARTS)


def test_a_signal_ends_http_of_a_server_that_hangs_and_says_so(home: Path, over_http: Any) -> None:
    server = over_http()
    hung = psutil.Process(server_of(home)["pid"])
    hung.suspend()
    try:
        status, seconds = server.stop(signal.SIGTERM)
        assert (status, seconds < 10) == (1, True)
        assert "has not ended HTTP" in server.log
        assert "Traceback" not in server.log
    finally:
        hung.resume()


def test_http_leaves_the_start_of_the_next_server_to_whoever_the_last_one_made_room_for(
    home: Path, over_http: Any
) -> None:
    server = over_http()
    control.stop(home, "restart")
    # Sooner than it would start one itself, and later than it looks.
    began = time.monotonic()
    eventually(lambda: time.monotonic() - began > 1.0, "a second goes by")
    assert servers_of(home) == []
    pid = control.start(home, {}, environment(home, SHARED))["pid"]
    eventually(lambda: listens(server), "it listens at the same address")
    assert servers_of(home) == [pid]


def test_signals_are_those_of_a_server_of_its_own_once_there_is_no_other(
    session: Serve, home: Path, over_http: Any
) -> None:
    session()
    server = over_http(settings={"http.rate": 7})
    status, seconds = server.stop(signal.SIGTERM)
    assert (status, seconds < 5) == (0, True)
    assert server_of(home)["clients"] == 1


def test_http_goes_on_with_a_server_that_has_other_settings_and_says_so(over_http: Any, run_shared: RunAgora) -> None:
    server = over_http()
    assert run_shared("server", "stop").returncode == 0
    assert run_shared("server", "start", env={"AGORA_CACHE_ENABLED": "false"}).returncode == 0
    eventually(lambda: listens(server), "it listens at the same address")
    server.wait_for_log("other settings than this session now: cache.enabled")
