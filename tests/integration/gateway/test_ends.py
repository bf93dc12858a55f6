"""However a server or a session ends, nothing of its backends is left, and what is under way is brought to its end."""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest
from tests.integration.backends.heard import alive, put_down
from tests.integration.gateway.rig import (
    Agent,
    agent,
    configure,
    count,
    end_shared,
    eventually,
    family,
    server_pid,
    table,
    text,
)
from tests.integration.processes import RunAgora, Serve, Served, run_command, serving

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="the backend knows signals alone")

NOTHING_LEFT = 5.0
"""Seconds: what the contract gives. 2.4 of them are for what ignores SIGTERM."""
LOADED = 3.0
"""How much longer it may take where other programs have the processors."""

SHARED = {"AGORA_SERVER_SHARED": "true"}


@pytest.fixture
def serve(home: Path, project: Path, tmp_path: Path) -> Iterator[Serve]:
    """Starts sessions whose server is alone, or shared if `env` says so."""
    with serving(home, project, tmp_path) as start:
        yield start


@pytest.fixture
def run_shared(home: Path, project: Path) -> RunAgora:
    """Runs one command, with the shared server wanted."""
    return lambda *arguments: run_command(arguments, home, project, env=SHARED)


@pytest.fixture
def left() -> Iterator[list[int]]:
    """Processes that must be gone when the test is over; they are ended if it fails."""
    pids: list[int] = []
    yield pids
    put_down(pids)


def nothing_is_left(pids: list[int]) -> None:
    eventually(lambda: not alive(pids), f"some of {pids} are left: {alive(pids)}", LOADED * NOTHING_LEFT)


def started(ann: Served, name: str, **arguments: object) -> int:
    """The id of a call of the backend `one` that is under way."""
    given = {"target": "one", "tool": name, "arguments": arguments}
    return ann.post("tools/call", {"name": "agora_route", "arguments": given})


def pid_of(ann: Served) -> int:
    found: int = ann.result(started(ann, "surroundings"))["structured"]["pid"]
    return found


@pytest.mark.parametrize("way", ["alone", "shared"])
def test_nothing_is_left_of_a_stubborn_backend_whose_server_is_killed(
    serve: Serve, home: Path, left: list[int], way: str
) -> None:
    configure(home, table("one", "stubborn", "grandchildren"))
    ann = serve(env=SHARED if way == "shared" else None)
    backend = pid_of(ann)
    server = ann.call("agora_status")["pid"]
    started(ann, "never")
    left += family(server)[1:]
    assert backend in left
    assert len(left) == 4, "the backend, two grandchildren and the guard"
    os.kill(server, signal.SIGKILL)
    nothing_is_left(left)


def test_an_idle_server_ends_with_its_backends(serve: Serve, home: Path, left: list[int]) -> None:
    configure(home, table("one", "stubborn", "grandchildren"))
    ann = serve(env={**SHARED, "AGORA_SERVER_IDLE_SECONDS": "0.2"})
    pid_of(ann)
    left += family(ann.call("agora_status")["pid"])
    assert len(left) >= 5
    assert ann.end_input()[0] == 0
    nothing_is_left(left)


def called_and_stopped(ann: Served, run_shared: RunAgora, file: Path, left: list[int], **given: object) -> int:
    """The id of a call that was under way when a person stopped the server; `left` are the processes there were."""
    pid_of(ann)
    left += family(ann.call("agora_status")["pid"])
    under_way = started(ann, "append", path=str(file), **given)
    eventually(lambda: count(file) == 1, "it has been called")
    assert run_shared("server", "stop").returncode == 0
    return under_way


def test_a_server_that_is_stopped_lets_calls_be_answered_and_leaves_nothing(
    serve: Serve, run_shared: RunAgora, home: Path, tmp_path: Path, left: list[int]
) -> None:
    configure(home, table("one"))
    ann = serve(env={**SHARED, "AGORA_SERVER_DRAIN": "15"})
    file = tmp_path / "calls"
    under_way = called_and_stopped(ann, run_shared, file, left, then="late", seconds=1.0, text="in time")
    assert text(ann.result(under_way)) == "in time"
    nothing_is_left(left)


def test_a_server_that_is_stopped_waits_no_longer_than_its_drain(
    serve: Serve, run_shared: RunAgora, home: Path, tmp_path: Path, left: list[int]
) -> None:
    configure(home, table("one"))
    ann = serve(env={**SHARED, "AGORA_SERVER_DRAIN": "0.5"})
    file = tmp_path / "calls"
    under_way = called_and_stopped(ann, run_shared, file, left, then="never")
    nothing_is_left(left)
    # It is answered, and no other server makes the call again.
    answer = ann.answer(under_way)
    assert "error" in answer or answer["result"]["isError"], answer
    assert count(file) == 1


def test_a_server_of_its_own_that_gets_a_signal_in_a_call_leaves_nothing(
    serve: Serve, home: Path, tmp_path: Path, left: list[int]
) -> None:
    configure(home, table("one", "grandchildren"))
    file = tmp_path / "calls"
    ann = serve()
    pid_of(ann)
    left += family(ann.process.pid)
    started(ann, "append", path=str(file), then="never")
    eventually(lambda: count(file) == 1, "it has been called")
    ann.signal(signal.SIGTERM)
    nothing_is_left(left)


def test_a_client_that_closes_its_input_in_a_call_leaves_nothing(
    serve: Serve, home: Path, tmp_path: Path, left: list[int]
) -> None:
    configure(home, table("one"))
    file = tmp_path / "calls"
    ann = serve()
    pid_of(ann)
    left += family(ann.process.pid)
    started(ann, "append", path=str(file), then="never")
    eventually(lambda: count(file) == 1, "it has been called")
    ann.end_input()
    nothing_is_left(left)


def test_a_client_that_closes_its_input_in_a_call_of_a_shared_server_has_it_taken_back(
    serve: Serve, home: Path, tmp_path: Path
) -> None:
    configure(home, table("one"))
    file = tmp_path / "calls"
    ann, bob = serve(env=SHARED), serve(env=SHARED)
    backend = pid_of(bob)
    started(ann, "append", path=str(file), then="never")
    eventually(lambda: count(file) == 1, "it has been called")
    ann.end_input()
    eventually(lambda: bob.result(started(bob, "cancelled"))["structured"]["ids"], "the backend is told")
    assert pid_of(bob) == backend, "it is another agent's too"


def streams_of(server: psutil.Process) -> int:
    """Descriptors of a process beside those of files: the store has a few connections that come as they are needed."""
    return int(server.num_fds()) - len(server.open_files())


def test_a_hundred_sessions_start_one_backend_and_leave_nothing(serve: Serve, home: Path) -> None:
    """Ten at a time; the first ten calls come together while the backend takes a second to start."""
    configure(home, table("one", "slow"))
    ann = serve(env=SHARED)
    server = psutil.Process(ann.call("agora_status")["pid"])
    pids = set()
    before: tuple[int, int] | None = None
    for _ in range(10):
        sessions = [serve(env=SHARED, name=None) for _ in range(10)]
        for session in sessions:
            session.initialize()
        calls = [started(session, "surroundings") for session in sessions]
        pids |= {s.result(call)["structured"]["pid"] for s, call in zip(sessions, calls, strict=True)}
        for session in sessions:
            session.stdin.close()
        for session in sessions:
            session.process.wait(20)
        if before is None:
            eventually(lambda: ann.call("agora_status")["server"]["clients"] == 1, "all others are gone")
            before = len(family(server.pid)), streams_of(server)
    assert len(pids) == 1
    eventually(lambda: ann.call("agora_status")["server"]["clients"] == 1, "all others are gone")
    assert ann.call("agora_status")["server"]["sessions"] == 101
    eventually(lambda: (len(family(server.pid)), streams_of(server)) == before, f"as many as there were: {before}")
    assert before is not None
    assert before[0] == 3, "the server, the backend and the guard that ends it when the server is gone"


def test_a_session_whose_shared_server_is_killed_in_a_call_goes_on_with_the_next_one(
    home: Path, tmp_path: Path
) -> None:
    configure(home, table("one"))
    file = tmp_path / "calls"
    with agent("shared", home) as ann:
        before = goes_on(ann, file)
        assert server_pid(ann) != before
    end_shared(home)


def goes_on(ann: Agent, file: Path) -> int:
    """A write is told as unknown and was made once; the next call works. The server that was killed."""
    first, server = ann.pid("one"), server_pid(ann)
    pending = ann.begin("one", "append", path=str(file), then="never")
    eventually(lambda: count(file) == 1, "it has been called")
    os.kill(server, signal.SIGKILL)
    result = pending.result(20)
    assert result.is_error
    assert isinstance(result.structured_content, dict)
    assert result.structured_content["error"]["code"] == "outcome_unknown"
    assert ann.pid("one") != first
    eventually(lambda: not alive([first]), "the backend of the server that was killed", LOADED * NOTHING_LEFT)
    assert count(file) == 1
    return server
