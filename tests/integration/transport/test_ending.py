"""Every way a server process ends: at once, quietly, and with nothing lost that was asked before."""

from __future__ import annotations

import json
import os
import select
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from agora.transport.lifetime import EXIT_SECONDS
from agora.transport.options import ConnectionOptions

if TYPE_CHECKING:
    from tests.integration.transport.conftest import RawClient

SERVER = Path(__file__).with_name("echo_server.py")
COMMAND = [sys.executable, str(SERVER)]
INITIALIZE = {
    "jsonrpc": "2.0",
    "id": 0,
    "method": "initialize",
    "params": {
        "protocolVersion": "2025-06-18",
        "capabilities": {},
        "clientInfo": {"name": "x", "version": "1"},
    },
}
INITIALIZED: dict[str, object] = {"jsonrpc": "2.0", "method": "notifications/initialized"}
CALL: dict[str, object] = {
    "jsonrpc": "2.0",
    "id": 1,
    "method": "tools/call",
    "params": {"name": "echo", "arguments": {}},
}

needs_signals = pytest.mark.skipif(sys.platform == "win32", reason="no such signals")


def lines(*messages: dict[str, object]) -> bytes:
    return b"".join(json.dumps(message).encode() + b"\n" for message in messages)


def ids_answered(data: bytes, environment: dict[str, str]) -> list[object]:
    """The ids of the frames that a server writes which gets `data` and then the end of input."""
    done = subprocess.run(COMMAND, input=data, capture_output=True, timeout=20, check=True, env=environment)
    return [json.loads(line)["id"] for line in done.stdout.splitlines()]


def test_the_answers_to_a_piped_script_all_come_before_the_end(environment: dict[str, str]) -> None:
    assert ids_answered(lines(INITIALIZE, INITIALIZED, CALL), environment) == [0, 1]


def test_a_last_line_without_a_newline_is_served(environment: dict[str, str]) -> None:
    assert ids_answered(lines(INITIALIZE, INITIALIZED, CALL)[:-1], environment) == [0, 1]


def test_a_byte_order_mark_and_carriage_returns_are_tolerated(environment: dict[str, str]) -> None:
    data = b"\xef\xbb\xbf" + lines(INITIALIZE, CALL).replace(b"\n", b"\r\n")
    assert ids_answered(data, environment) == [0, 1]


def test_no_input_at_all_is_a_quiet_end(environment: dict[str, str]) -> None:
    done = subprocess.run(
        COMMAND, stdin=subprocess.DEVNULL, capture_output=True, timeout=10, check=False, env=environment
    )
    assert (done.returncode, done.stdout) == (0, b"")


@needs_signals
@pytest.mark.parametrize(("redirection", "name"), [("<&-", "input"), (">&-", "output")])
def test_a_closed_stream_is_refused_in_words(environment: dict[str, str], redirection: str, name: str) -> None:
    done = subprocess.run(
        ["sh", "-c", f'exec "$0" "$@" {redirection}', *COMMAND],
        capture_output=True,
        timeout=20,
        check=False,
        env=environment,
    )
    assert done.returncode == 1
    assert f"standard {name} is closed".encode() in done.stderr


@needs_signals
def test_a_closed_error_stream_is_no_obstacle(environment: dict[str, str]) -> None:
    done = subprocess.run(
        ["sh", "-c", 'exec "$0" "$@" 2>&-', *COMMAND],
        input=lines(INITIALIZE, INITIALIZED, CALL),
        capture_output=True,
        timeout=20,
        check=True,
        env=environment,
    )
    assert [json.loads(line)["id"] for line in done.stdout.splitlines()] == [0, 1]


def test_a_call_that_outlasts_the_drain_is_ended_with_an_error(start: Callable[..., RawClient]) -> None:
    client = start(drain_seconds=0.2)
    client.initialize()
    client.call(1, "slow")
    client.end_input()
    found = client.answer(1)["result"]
    assert found["isError"] is True
    assert found["structuredContent"]["error"]["code"] == "outcome_unknown"
    assert client.next() is None
    assert client.wait(2) == 0


def test_an_open_subscription_does_not_delay_the_end(client: RawClient) -> None:
    meta = {
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientCapabilities": {},
    }
    client.request(1, "subscriptions/listen", notifications={"toolsListChanged": True}, _meta=meta)
    client.next()
    started = time.monotonic()
    client.end_input()
    assert client.wait() == 0
    assert time.monotonic() - started < 1.0


def test_the_end_of_input_during_the_start_still_answers(start: Callable[..., RawClient], tmp_path: Path) -> None:
    client = start(start_seconds=0.5, stop_file=tmp_path / "stopped")
    client.send_raw(lines(INITIALIZE, INITIALIZED, CALL))
    client.end_input()
    assert [answer["id"] for answer in client.rest()] == [0, 1]
    assert client.wait() == 0
    assert (tmp_path / "stopped").exists()


def test_a_start_that_fails_reaches_the_caller(start: Callable[..., RawClient], tmp_path: Path) -> None:
    client = start(fail="no such folder", stop_file=tmp_path / "stopped")
    assert client.wait() == 1
    assert "ValueError: no such folder" in client.log()
    assert client.rest() == []
    assert (tmp_path / "stopped").exists()


@needs_signals
@pytest.mark.parametrize("name", ["SIGTERM", "SIGINT", "SIGHUP"])
def test_a_signal_ends_an_idle_server_cleanly(start: Callable[..., RawClient], tmp_path: Path, name: str) -> None:
    client = start(stop_file=tmp_path / "stopped")
    client.initialize()
    status, seconds = client.signal_and_time(signal.Signals[name])
    assert status == 0
    assert seconds < 1.0
    assert (tmp_path / "stopped").exists()
    assert "Traceback" not in client.log()


@needs_signals
def test_a_signal_lets_a_short_call_finish(client: RawClient) -> None:
    client.initialize()
    client.call(1, "slow", seconds=0.3)
    client.ping()
    status, seconds = client.signal_and_time(signal.SIGTERM)
    assert "result" in client.answer(1)
    assert (status, seconds < 2.0) == (0, True)


# The tests that measure two seconds shorten the drain: a busy machine must not fail them.
SHORTER = 1.0


def test_by_default_the_process_has_less_than_two_seconds_to_end() -> None:
    assert ConnectionOptions().drain_seconds + EXIT_SECONDS < 1.9


@needs_signals
@pytest.mark.parametrize("tool", ["slow", "stuck"])
def test_a_signal_ends_the_process_within_two_seconds_of_a_call_that_does_not_end(
    start: Callable[..., RawClient], tmp_path: Path, tool: str
) -> None:
    client = start(stop_file=tmp_path / "stopped", drain_seconds=SHORTER)
    client.initialize()
    client.call(1, tool)
    client.ping()
    status, seconds = client.signal_and_time(signal.SIGTERM)
    assert status == 0
    assert seconds < 2.0
    assert (tmp_path / "stopped").exists()


@needs_signals
def test_impatient_signals_do_not_interrupt_the_flush(start: Callable[..., RawClient]) -> None:
    client = start(stop_seconds=0.5)
    client.initialize()
    client.process.send_signal(signal.SIGTERM)
    for _ in range(5):
        client.process.send_signal(signal.SIGTERM)
        client.process.send_signal(signal.SIGINT)
    assert client.wait() == 0


@needs_signals
def test_a_signal_during_the_start_ends_it(start: Callable[..., RawClient]) -> None:
    client = start(start_seconds=60)
    client.wait_for_log("starting")
    status, seconds = client.signal_and_time(signal.SIGTERM)
    assert (status, seconds < 1.0) == (0, True)


def test_the_end_of_input_ends_a_process_whose_threads_never_do(start: Callable[..., RawClient]) -> None:
    client = start(thread="yes", drain_seconds=SHORTER)
    client.initialize()
    started = time.monotonic()
    client.end_input()
    assert client.wait() == 0
    assert time.monotonic() - started < 2.0


def test_a_flush_that_hangs_is_cut_off_and_told_by_the_status(start: Callable[..., RawClient]) -> None:
    client = start(stop_seconds=60, drain_seconds=SHORTER)
    client.initialize()
    started = time.monotonic()
    client.end_input()
    assert client.wait() == 1
    assert time.monotonic() - started < 2.0


def test_a_flush_that_fails_is_told_by_the_status_and_in_words(start: Callable[..., RawClient]) -> None:
    client = start(stop_fails="the disk is full")
    client.initialize()
    client.end_input()
    assert client.wait() == 1
    assert "the disk is full" in client.log()


@needs_signals
def test_a_client_that_does_not_read_its_answers_cannot_keep_the_server(
    start: Callable[..., RawClient],
) -> None:
    client = start(drain_seconds=SHORTER)
    client.initialize()
    client.pause_reading()
    for number in range(100):
        client.call(number, "echo", text="y" * 8000)
    status, seconds = client.signal_and_time(signal.SIGTERM)
    assert (status, seconds < 2.0) == (0, True)


@needs_signals
def test_a_client_that_does_not_read_stderr_cannot_keep_the_server(environment: dict[str, str]) -> None:
    command = [*COMMAND, f"drain_seconds={SHORTER}", "log=DEBUG"]
    pipe = subprocess.PIPE
    with subprocess.Popen(command, stdin=pipe, stdout=pipe, stderr=pipe, env=environment) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        process.stdin.write(lines(INITIALIZE, INITIALIZED))
        process.stdin.flush()
        assert process.stdout.readline()
        process.stdin.write(lines(CALL | {"params": {"name": "complain"}}))
        process.stdin.flush()
        assert process.stderr is not None
        # When a part of the complaint is here the rest of it blocks the server.
        while b"xxx" not in os.read(process.stderr.fileno(), 1000):
            pass
        started = time.monotonic()
        process.send_signal(signal.SIGTERM)
        assert process.wait(10) == 0
        assert time.monotonic() - started < 2.0


@needs_signals
def test_a_client_that_closes_its_output_ends_the_server_quietly(environment: dict[str, str]) -> None:
    pipe = subprocess.PIPE
    with subprocess.Popen(COMMAND, stdin=pipe, stdout=pipe, stderr=pipe, env=environment) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        assert process.stderr is not None
        process.stdin.write(lines(INITIALIZE, INITIALIZED))
        process.stdin.flush()
        assert process.stdout.readline()
        process.stdout.close()
        process.stdin.write(lines(CALL))
        process.stdin.flush()
        # The input stays open: only the output tells.
        assert process.wait(5) == 0
        assert b"Traceback" not in process.stderr.read()
        process.stdin.close()


PARENT = """
import subprocess, sys, time
server = subprocess.Popen(sys.argv[1:], stdin=subprocess.PIPE, stdout=subprocess.DEVNULL)
sibling = subprocess.Popen(
    [sys.executable, "-c", "import sys; sys.stdin.read()"],
    pass_fds=[server.stdin.fileno()], stderr=subprocess.DEVNULL,
)
time.sleep(60)
"""


@needs_signals
def test_a_parent_killed_while_a_sibling_holds_the_pipe_takes_the_server_along(
    environment: dict[str, str],
) -> None:
    alive_read, alive_write = os.pipe()
    keep_read, keep_write = os.pipe()
    parent = subprocess.Popen(
        [sys.executable, "-c", PARENT, *COMMAND], stdin=keep_read, stderr=alive_write, env=environment
    )
    os.close(keep_read)
    os.close(alive_write)
    try:
        # Only the server and its parent hold the other end: its words, and then the end of both.
        assert os.read(alive_read, 100)
        parent.kill()
        parent.wait()
        started = time.monotonic()
        remaining = b"more"
        while remaining:
            left = started + 5 - time.monotonic()
            assert select.select([alive_read], [], [], max(0.0, left))[0], "the server outlived its parent"
            remaining = os.read(alive_read, 1000)
        assert time.monotonic() - started < 5
    finally:
        parent.kill()
        os.close(alive_read)
        os.close(keep_write)
