"""How a session begins where the client gives it less than it should, or the server answers nothing."""

from __future__ import annotations

import json
import shlex
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.integration.processes import AGORA, PATIENCE, environment
from tests.integration.shared.conftest import HANDSHAKE, SHARED, eventually, greeted, server_of, servers_of

from agora.daemon import control
from agora.shim.places import socket_of

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="Unix sockets and signals")


@pytest.fixture
def stuck(home: Path) -> Iterator[socket.socket]:
    """What connections come to that are never answered."""
    (home / "run").mkdir(parents=True, mode=0o700)
    with socket.socket(socket.AF_UNIX) as listening:
        listening.bind(socket_of(str(home)))
        listening.listen()
        listening.settimeout(PATIENCE)
        yield listening
    Path(socket_of(str(home))).unlink()


def interrupted(stuck: socket.socket, home: Path, project: Path, number: int, *command: str) -> tuple[int, bytes]:
    """The exit status and the words of a command that got a signal while it waited for the server."""
    process = subprocess.Popen(
        [*AGORA, *command],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env=environment(home, SHARED),
        cwd=project,
    )
    try:
        theirs, _ = stuck.accept()
        with theirs:
            theirs.recv(100_000)
            began = time.monotonic()
            process.send_signal(number)
            _, errors = process.communicate(timeout=PATIENCE)
            assert time.monotonic() - began < 3
    finally:
        process.kill()
        process.communicate()
    return process.returncode, errors


def test_ctrl_c_while_a_session_waits_for_its_server_ends_it_without_a_word(
    stuck: socket.socket, home: Path, project: Path
) -> None:
    assert interrupted(stuck, home, project, signal.SIGINT, "serve") == (130, b"")


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_while_http_waits_for_its_server_ends_the_command(
    stuck: socket.socket, home: Path, project: Path, number: int
) -> None:
    found = interrupted(stuck, home, project, number, "serve", "--http", "127.0.0.1:0")
    assert found == (128 + number, b"")


@pytest.mark.parametrize("closed", ["2>&-", "2>&- 5<&0"])
def test_a_session_without_standard_error_is_served_and_its_server_has_all_it_needs(
    home: Path, project: Path, closed: str
) -> None:
    done = subprocess.run(
        ["/bin/sh", "-c", f"exec {shlex.join([*AGORA, 'serve'])} {closed}"],
        input=json.dumps(HANDSHAKE).encode() + b"\n",
        stdout=subprocess.PIPE,
        env=environment(home, SHARED),
        cwd=project,
        timeout=2 * PATIENCE,
        check=True,
    )
    (line,) = done.stdout.splitlines()
    assert json.loads(line)["result"]["serverInfo"]["name"] == "agora"
    pid = server_of(home)["pid"]
    assert "listening" in (home / "run" / "server.log").read_text("utf-8")
    # The next one finds it, and its lock.
    assert json.loads(greeted(home, project).stdout)["id"] == 0
    assert servers_of(home) == [pid]
    lock = (home / "run" / "server.lock").stat().st_ino
    if sys.platform == "linux":
        held = [int(fd.name) for fd in Path(f"/proc/{pid}/fd").iterdir() if fd.stat().st_ino == lock]
        assert held
        assert min(held) > 2
    # Nothing of the session's is in the file of another.
    assert (home / "run" / "server.lock").stat().st_size == 0


@pytest.mark.parametrize("closed", ["<&-", ">&-", "<&- >&- 2>&-"])
def test_a_session_without_pipes_ends_with_a_status_and_leaves_no_server(
    home: Path, project: Path, closed: str
) -> None:
    done = subprocess.run(
        ["/bin/sh", "-c", f"exec {shlex.join([*AGORA, 'serve'])} {closed}"],
        capture_output=True,
        env=environment(home, SHARED),
        cwd=project,
        timeout=2 * PATIENCE,
        check=False,
    )
    assert done.returncode == 2
    assert b"Traceback" not in done.stderr
    assert servers_of(home) == []


def test_a_server_is_started_by_a_command_whose_files_are_all_closed(home: Path, project: Path) -> None:
    done = subprocess.run(
        ["/bin/sh", "-c", f"exec {shlex.join([*AGORA, 'server', 'start'])} <&- 2>&-"],
        stdout=subprocess.PIPE,
        env=environment(home, SHARED),
        cwd=project,
        timeout=2 * PATIENCE,
        check=False,
    )
    assert done.returncode == 0
    assert control.ask(home, "status") is not None


def test_the_log_is_followed_line_by_line(home: Path, project: Path) -> None:
    (home / "run").mkdir(parents=True, mode=0o700)
    log = home / "run" / "server.log"
    log.write_text("same\nsame\n", "utf-8")
    process = subprocess.Popen(
        [*AGORA, "server", "logs", "--follow", "--lines", "1"],
        stdout=subprocess.PIPE,
        env={**environment(home, SHARED), "PYTHONUNBUFFERED": "1"},
        cwd=project,
    )
    try:
        assert process.stdout is not None
        assert process.stdout.readline() == b"same\n"
        with log.open("a", encoding="utf-8") as stream:
            stream.write("same\nlast\n")
        assert [process.stdout.readline() for _ in range(2)] == [b"same\n", b"last\n"]
        log.replace(log.with_name("server.log.1"))
        log.write_text("next\n", "utf-8")
        assert process.stdout.readline() == b"next\n"
        assert process.poll() is None
        process.send_signal(signal.SIGINT)
        assert process.wait(PATIENCE) == 130
    finally:
        process.kill()
        process.communicate()
    eventually(lambda: process.poll() is not None, "it is gone")
