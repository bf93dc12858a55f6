"""Sessions and their server where the machine, the client or the data folder is not as usual."""

from __future__ import annotations

import json
import os
import select
import socket
import subprocess
import sys
import textwrap
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import psutil
import pytest
from tests.integration.processes import AGORA, PATIENCE, RunAgora, Serve, environment
from tests.integration.shared.conftest import HANDSHAKE, SHARED, eventually, server_of, servers_of

from agora.shim.places import by_short_path, socket_of

posix = pytest.mark.skipif(sys.platform == "win32", reason="what Unix alone has")
linux = pytest.mark.skipif(sys.platform != "linux", reason="what Linux alone has")

MANY = 200
"""Connections at once, more than an event loop lets wait if nobody says how many."""


@posix
@pytest.mark.parametrize("end", [0, 1])
def test_a_client_whose_pipes_do_not_block_is_served(home: Path, project: Path, end: int) -> None:
    theirs, ours = os.pipe()
    answers, their_answers = os.pipe()
    os.set_blocking((theirs, their_answers)[end], False)
    process = subprocess.Popen(
        [*AGORA, "serve"], stdin=theirs, stdout=their_answers, env=environment(home, SHARED), cwd=project
    )
    os.close(theirs)
    # The answers are longer than a pipe takes, and nobody reads before the last question is asked.
    asked = [HANDSHAKE, *({"jsonrpc": "2.0", "id": n, "method": "tools/list", "params": {}} for n in range(1, 41))]
    with os.fdopen(ours, "wb") as stream:
        for each in asked:
            stream.write(json.dumps(each).encode() + b"\n")
            stream.flush()
            if each is HANDSHAKE:
                # Its input is empty for as long as the server takes to start.
                first = os.read(answers, 1 << 20)
        eventually(lambda: not select.select([], [their_answers], [], 0)[1], "the pipe is full")
        os.close(their_answers)
    with os.fdopen(answers, "rb") as stream:
        lines = (first + stream.read()).splitlines()
    assert sorted(json.loads(line)["id"] for line in lines) == list(range(41))
    assert process.wait(PATIENCE) == 0


@posix
def test_a_server_that_was_started_where_few_files_may_be_open_has_enough(
    session: Serve, home: Path, project: Path
) -> None:
    subprocess.run(
        ["sh", "-c", 'ulimit -S -n 20; exec "$@"', "sh", *AGORA, "server", "start"],
        env=environment(home, SHARED),
        cwd=project,
        timeout=PATIENCE,
        check=True,
    )
    sessions = [session() for _ in range(3)]
    # The model alone takes more files than that.
    assert [each.call("agora_save", content="Kept.")["id"] for each in sessions] != []
    assert {each.call("agora_status")["pid"] for each in sessions} == {server_of(home)["pid"]}


def connection(home: Path) -> socket.socket:
    """A connection to the server that has said nothing, made at once or not at all."""
    sock = socket.socket(socket.AF_UNIX)
    sock.settimeout(0)
    by_short_path(socket_of(str(home)), sock.connect)
    sock.settimeout(PATIENCE)
    return sock


@linux
def test_as_many_connections_may_wait_at_once_as_there_may_be_sessions(session: Serve, home: Path) -> None:
    session()
    server = psutil.Process(server_of(home)["pid"])
    server.suspend()
    try:
        with ExitStack() as held:
            for _ in range(MANY):
                held.enter_context(connection(home))
    finally:
        server.resume()


@posix
def test_who_connects_and_says_nothing_leaves_no_failure_in_the_log_when_the_server_ends(
    session: Serve, run_shared: RunAgora, home: Path
) -> None:
    session()
    with ExitStack() as held:
        for _ in range(20):
            held.enter_context(connection(home)).sendall(b'{"agora":1,')
        assert run_shared("server", "stop").returncode == 0
    assert "Traceback" not in (home / "run" / "server.log").read_text("utf-8")


@posix
def test_a_run_folder_that_others_may_enter_is_told_at_once_and_nothing_is_started(session: Serve, home: Path) -> None:
    home.mkdir()
    (home / "run").mkdir()
    (home / "run").chmod(0o755)
    one = session()
    assert "is not a folder for this user alone" in one.call("agora_status")["server"]["reason"]
    assert "is not a folder for this user alone" in one.log()
    assert list((home / "run").iterdir()) == []


@linux
def test_a_server_that_has_ended_and_whose_parent_does_not_ask_for_it_is_not_waited_for(
    home: Path, project: Path
) -> None:
    # As the first process of many a container: orphans are its children, and it never asks what became of them.
    script = """
        import ctypes, json, subprocess, sys
        PR_SET_CHILD_SUBREAPER = 36  # of sys/prctl.h
        assert ctypes.CDLL(None).prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0) == 0
        agora = [sys.executable, "-m", "agora", "server"]
        said = [subprocess.run([*agora, name], capture_output=True, text=True) for name in ("start", "restart", "stop")]
        print(json.dumps([[each.returncode, each.stderr] for each in said]))
    """
    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(script)],
        capture_output=True,
        env=environment(home, SHARED),
        cwd=project,
        timeout=2 * PATIENCE,
        check=True,
    )
    assert json.loads(done.stdout) == [[0, ""]] * 3


@pytest.fixture
def link(home: Path, tmp_path: Path) -> Iterator[Path]:
    home.mkdir()
    found = tmp_path / "link"
    found.symlink_to(home)
    yield found
    found.unlink()


@posix
def test_a_data_folder_that_is_reached_by_a_link_is_the_same(session: Serve, home: Path, link: Path) -> None:
    one, two = session(), session(home=link)
    assert one.call("agora_status")["pid"] == two.call("agora_status")["pid"]
    assert servers_of(home) == [server_of(home)["pid"]]
