"""A session ends when its client wants that, in whatever state its server is, and answers what it was asked first."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections import Counter
from pathlib import Path
from typing import Any

import psutil
import pytest
from tests.integration.processes import AGORA, PATIENCE, RunAgora, Serve, Served, environment
from tests.integration.shared.conftest import SHARED, eventually, kill_server, server_of

from agora.daemon import control
from agora.shim.locking import locked
from agora.shim.relay import SPARE_SECONDS, WATCH_SECONDS

posix = pytest.mark.skipif(sys.platform == "win32", reason="signals that a process can answer")

SOON = 9.0
"""Seconds: five for what the client sent last, and a machine with other work."""


def ended(one: Served) -> int:
    return one.process.wait(SOON)


def test_a_session_whose_server_a_person_stopped_ends_with_its_input(
    session: Serve, run_shared: RunAgora, home: Path
) -> None:
    one = session()
    assert run_shared("server", "stop").returncode == 0
    one.stdin.close()
    assert ended(one) == 0
    assert control.ask(home, "status") is None, "nobody starts it for that"


def test_a_session_whose_server_a_person_stopped_goes_on_as_soon_as_one_is_started(
    session: Serve, run_shared: RunAgora, home: Path
) -> None:
    one = session()
    assert run_shared("server", "stop").returncode == 0
    assert run_shared("server", "start").returncode == 0
    eventually(lambda: states(home) == ["ready"], "the session is back, though its client has said nothing")
    one.stdin.close()
    assert ended(one) == 0


@posix
def test_a_session_whose_server_a_person_stopped_ends_at_a_signal(session: Serve, run_shared: RunAgora) -> None:
    one = session()
    assert run_shared("server", "stop").returncode == 0
    one.process.send_signal(signal.SIGTERM)
    assert ended(one) == 0


@posix
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_ends_a_session_that_looks_for_a_server(session: Serve, home: Path, number: int) -> None:
    one = session()
    this = psutil.Process(one.process.pid)
    this.suspend()
    kill_server(home)
    # The next one cannot come up as long as somebody has the lock.
    lock = os.open(home / "run" / "server.lock", os.O_RDWR)
    try:
        assert locked(lock)
        this.resume()
        one.process.send_signal(number)
        assert ended(one) == 0
    finally:
        os.close(lock)


@posix
def test_a_signal_ends_a_session_whose_server_hangs(session: Serve, home: Path) -> None:
    one = session()
    process = psutil.Process(server_of(home)["pid"])
    process.suspend()
    try:
        one.process.send_signal(signal.SIGTERM)
        ended(one)
    finally:
        process.resume()


@posix
def test_calls_of_a_client_that_has_ended_its_input_are_answered_though_the_server_dies(
    session: Serve, home: Path
) -> None:
    one = session()
    one.call("agora_save", content="the port is 5432")
    process = psutil.Process(server_of(home)["pid"])
    process.suspend()
    found = one.post_call("agora_query", query="which port?")
    saved = one.post_call("agora_save", content="the host is db1")
    eventually(lambda: unread(one) == 0, "the session has taken both")
    one.stdin.close()
    process.kill()
    answer = one.answer(found)["result"]
    if "error" in answer["structuredContent"]:
        # The next server was not there, or did not answer, within the five seconds of a session whose client is gone.
        assert answer["structuredContent"]["error"]["code"] == "outcome_unknown"
    else:
        assert answer["structuredContent"]["results"][0]["content"] == "the port is 5432"
    assert one.answer(saved)["result"]["structuredContent"]["error"]["code"] == "outcome_unknown"
    assert ended(one) == 0


@posix
def test_calls_under_way_are_answered_when_a_signal_ends_the_session_and_the_server_dies(
    session: Serve, home: Path
) -> None:
    one = session()
    process = psutil.Process(server_of(home)["pid"])
    process.suspend()
    waiting = one.post_call("agora_query", query="which port?")
    eventually(lambda: unread(one) == 0, "the session has taken the question")
    one.process.send_signal(signal.SIGTERM)
    process.kill()
    assert one.answer(waiting)["result"]["isError"] is True
    assert ended(one) == 0


def unread(one: Served) -> int:
    """Bytes that the session has not taken yet."""
    import fcntl  # noqa: PLC0415 - not on every system
    import termios  # noqa: PLC0415 - as above

    return int.from_bytes(fcntl.ioctl(one.stdin.fileno(), termios.FIONREAD, bytes(4)), sys.byteorder)


@posix
@pytest.mark.parametrize("how", ["signal", "end of input"])
def test_a_client_that_reads_nothing_can_end_its_session(home: Path, project: Path, how: str) -> None:
    deaf = Deaf(home, project)
    deaf.fill()
    if how == "signal":
        deaf.process.send_signal(signal.SIGTERM)
    else:
        deaf.stdin.close()
    deaf.process.wait(SOON)
    deaf.close()


@posix
@pytest.mark.parametrize("moment", [0.0, 0.33, 0.67])
def test_a_client_that_reads_nothing_holds_its_session_up_no_longer_than_is_said(
    home: Path, project: Path, run_shared: RunAgora, moment: float
) -> None:
    # So the session finds a server, and its watch begins when its process does.
    assert run_shared("server", "start").returncode == 0
    deaf = Deaf(home, project)
    deaf.fill()
    # Nothing moves any more. One of the moments is soon after a look of the session's watch, which is the worst.
    looked = threading.Event()
    age = time.time() - psutil.Process(deaf.process.pid).create_time()
    looked.wait(WATCH_SECONDS - age % WATCH_SECONDS + moment)
    began = time.monotonic()
    deaf.process.send_signal(signal.SIGTERM)
    deaf.process.wait(SOON)
    taken = time.monotonic() - began
    deaf.close()
    assert taken < 1.0 + SPARE_SECONDS + 0.6, "`server.drain` and a second"


class Deaf:
    """A client that asks until nobody takes its questions any more, and reads when it is told to."""

    def __init__(self, home: Path, project: Path) -> None:
        self.process = subprocess.Popen(
            [*AGORA, "serve"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            env=environment(home, SHARED),
            cwd=project,
            bufsize=0,
        )
        assert self.process.stdin is not None
        self.stdin = self.process.stdin
        self.asked = 0
        self._held = b""

    def fill(self) -> None:
        """Ask until the pipe is full and stays full."""
        info = {"name": "deaf", "version": "1"}
        params = {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": info}
        lines = [json.dumps({"jsonrpc": "2.0", "id": "first", "method": "initialize", "params": params})]
        lines += [json.dumps({"jsonrpc": "2.0", "method": "notifications/initialized"})]
        self._held = "".join(line + "\n" for line in lines).encode()
        os.set_blocking(self.stdin.fileno(), False)
        quiet = threading.Event()
        full = 0
        while full < 20:
            if not self._held:
                self._held = json.dumps({"jsonrpc": "2.0", "id": self.asked, "method": "tools/list"}).encode() + b"\n"
                self.asked += 1
            written = self.stdin.write(self._held)
            full = 0 if written else full + 1
            self._held = self._held[written or 0 :]
            if not written:
                quiet.wait(0.05)

    def read_all(self) -> list[dict[str, Any]]:
        """Everything that was answered, once the input has been ended."""
        os.set_blocking(self.stdin.fileno(), True)
        found: list[dict[str, Any]] = []

        def read() -> None:
            assert self.process.stdout is not None
            with os.fdopen(os.dup(self.process.stdout.fileno()), "rb") as buffered:
                for line in buffered:
                    found.append(json.loads(line))
                    if found[-1].get("id") == self.asked - 1:
                        self.stdin.close()

        reader = threading.Thread(target=read, daemon=True)
        reader.start()
        self.stdin.write(self._held)
        reader.join(PATIENCE)
        assert not reader.is_alive(), f"{len(found)} of {self.asked + 1} answers"
        return found

    def close(self) -> None:
        self.process.kill()
        self.process.wait(PATIENCE)
        assert self.process.stdout is not None
        self.process.stdout.close()
        self.stdin.close()


def test_a_server_that_dies_under_a_client_that_reads_nothing_costs_it_no_answer(home: Path, project: Path) -> None:
    deaf = Deaf(home, project)
    deaf.fill()
    kill_server(home)
    found = deaf.read_all()
    deaf.close()
    ids = Counter(message["id"] for message in found if "id" in message)
    assert [key for key, times in ids.items() if times > 1] == []
    assert set(ids) == {"first", *range(deaf.asked)}


def test_a_handshake_that_was_under_way_when_the_server_died_is_brought_to_its_end(home: Path, session: Serve) -> None:
    one = session(name=None)
    eventually(lambda: bool(states(home)), "the session is there")
    process = psutil.Process(server_of(home)["pid"])
    process.suspend()
    info = {"name": "hasty", "version": "1"}
    request = one.post(
        "initialize", {"protocolVersion": "2025-06-18", "capabilities": {"roots": {}}, "clientInfo": info}
    )
    one.send({"jsonrpc": "2.0", "method": "notifications/initialized"})
    level = one.post("logging/setLevel", {"level": "error"})
    process.kill()
    assert one.answer(request)["result"]["serverInfo"]["name"] == "agora"
    one.answer(level)
    eventually(lambda: states(home) == ["ready"], f"the server knows that the client is ready: {states(home)}")


def states(home: Path) -> list[str]:
    found = control.ask(home, "status") or {"connections": []}
    return [str(each["state"]) for each in found["connections"]]
