"""One server follows another: upgrades, storms of starts, idle ends, and clients that behave badly."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
import threading
from collections import Counter
from pathlib import Path
from typing import Any

import psutil
import pytest
from tests.integration.processes import AGORA, PATIENCE, SOURCE, Serve, environment, runs
from tests.integration.shared.conftest import HANDSHAKE, SHARED, eventually, greeted, server_of, servers_of

from agora.daemon import control
from agora.shim.places import socket_of

ROUNDS = int(os.environ.get("SHARED_ROUNDS", "3"))
"""50 by hand."""

posix = pytest.mark.skipif(sys.platform == "win32", reason="Unix sockets")


@pytest.fixture
def newer(tmp_path: Path) -> dict[str, str]:
    """The environment of a session of a newer release."""
    folder = tmp_path / "newer"
    (folder / "agora").mkdir(parents=True)
    for item in (SOURCE / "agora").iterdir():
        if item.name != "__init__.py":
            (folder / "agora" / item.name).symlink_to(item)
    text = (SOURCE / "agora" / "__init__.py").read_text("utf-8")
    changed = text.replace('__version__ = "0.', '__version__ = "99.')
    assert changed != text
    (folder / "agora" / "__init__.py").write_text(changed, "utf-8")
    return {"PYTHONPATH": str(folder)}


@posix
def test_a_session_of_a_newer_release_replaces_the_server_and_no_client_is_disconnected(
    session: Serve, home: Path, newer: dict[str, str]
) -> None:
    old = [session(name=f"old {n}") for n in range(3)]
    kept = [str(each.call("agora_save", content=f"From session {n}.")["id"]) for n, each in enumerate(old)]
    first = server_of(home)
    new = session(env=newer, name="new")
    second = server_of(home)
    assert second["version"].startswith("99.")
    assert second["pid"] != first["pid"]
    eventually(lambda: not runs(first["pid"]), "the old server ends")
    log = (home / "run" / "server.log").read_text("utf-8")
    assert log.count(" listening ") == 2, "the sessions of the old server leave the start to the new one"
    # A server of a newer release serves sessions of older ones, and is not replaced by them.
    for each in [*old, new, session(name="late")]:
        assert each.process.poll() is None
        assert each.call("agora_status")["pid"] == second["pid"]
        assert each.call("agora_get", ids=kept)["unknown"] == []
    assert server_of(home)["clients"] == 5


def test_ten_sessions_at_once_with_no_server_start_one_and_all_are_answered(home: Path, project: Path) -> None:
    line = json.dumps(HANDSHAKE).encode() + b"\n"
    for _ in range(ROUNDS):
        processes = [
            subprocess.Popen(
                [*AGORA, "serve"],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                env=environment(home, SHARED),
                cwd=project,
            )
            for _ in range(10)
        ]
        answers = [process.communicate(line, timeout=2 * PATIENCE) for process in processes]
        assert [err for _, err in answers if err] == []
        assert Counter(json.loads(out)["id"] for out, _ in answers) == {0: 10}
        assert {json.loads(out)["result"]["serverInfo"]["name"] for out, _ in answers} == {"agora"}
        assert servers_of(home) == [server_of(home)["pid"]]
        assert server_of(home)["sessions"] == 10
        control.stop(home)


def test_sessions_that_come_while_an_idle_server_ends_are_all_answered(home: Path, project: Path) -> None:
    env = {**SHARED, "AGORA_SERVER_IDLE_SECONDS": "0.05"}
    pids = set()
    pause = threading.Event()
    for number in range(4 * ROUNDS):
        done = greeted(home, project, env)
        assert (json.loads(done.stdout)["id"], done.stderr) == (0, b"")
        pids.update(servers_of(home))
        # The server ends some 50 ms after its last session: now, soon, or a little later.
        pause.wait(0.01 * number)
    assert len(pids) > 1, "the server did end in between"


@posix
def test_a_client_that_never_reads_holds_up_nobody_and_the_server_keeps_little_for_it(
    session: Serve, home: Path, tmp_path: Path, project: Path, request: pytest.FixtureRequest
) -> None:
    victim = session(name="victim")
    process = psutil.Process(server_of(home)["pid"])
    victim.call("agora_query", query="the model is loaded by now")
    before = process.memory_info().rss
    with (tmp_path / "errors").open("wb") as errors:
        deaf = subprocess.Popen(
            [*AGORA, "serve"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=errors,
            env=environment(home, SHARED),
            cwd=project,
        )
    request.addfinalizer(deaf.communicate)
    request.addfinalizer(deaf.kill)
    assert deaf.stdin is not None
    asked = deaf.stdin

    def ask() -> None:
        try:
            asked.write(json.dumps(HANDSHAKE).encode() + b"\n")
            for number in range(1, 20_000):
                listing = {"jsonrpc": "2.0", "id": number, "method": "tools/list", "params": {}}
                asked.write(json.dumps(listing).encode() + b"\n")
            asked.flush()
        except OSError:
            pass

    thread = threading.Thread(target=ask, daemon=True)
    thread.start()
    for _ in range(50):
        assert victim.call("agora_status")["health"] == "ok"
    assert thread.is_alive(), "what is not read holds up its own client"
    assert process.memory_info().rss - before < 30_000_000
    # Measuring coverage takes 15 MB of it; what was asked for has 200.
    assert psutil.Process(deaf.pid).memory_info().rss < 60_000_000
    # It does not hold up the end of the server either.
    assert control.stop(home) is not None


@posix
def test_a_server_that_answers_nothing_is_given_up_and_the_session_says_so(home: Path, project: Path) -> None:
    (home / "run").mkdir(parents=True, mode=0o700)
    with socket.socket(socket.AF_UNIX) as stuck:
        stuck.bind(socket_of(str(home)))
        stuck.listen()
        done = greeted(home, project)
        assert json.loads(done.stdout)["result"]["serverInfo"]["name"] == "agora"
        assert b"has not answered within" in done.stderr
        assert b"server of its own" in done.stderr
    Path(socket_of(str(home))).unlink()


@posix
@pytest.mark.parametrize(
    "said", [b"", b"nonsense\n", b'{"agora": 99}\n', b"GET / HTTP/1.1\r\n\r\n", b"x" * 3_000_000, b'{"agora": 1}\n']
)
def test_whatever_else_connects_is_sent_away_and_the_server_goes_on(session: Serve, home: Path, said: bytes) -> None:
    one = session()
    with socket.socket(socket.AF_UNIX) as stranger:
        stranger.settimeout(PATIENCE)
        stranger.connect(socket_of(str(home)))
        try:
            stranger.sendall(said)
            stranger.shutdown(socket.SHUT_WR)
            answer = stranger.recv(10_000)
        except OSError:
            answer = b""
    assert answer == b"" or json.loads(answer)["ok"] is False
    assert one.call("agora_status")["health"] == "ok"


@posix
def test_half_a_line_of_a_session_that_was_killed_is_not_done(session: Serve, home: Path) -> None:
    one, two = session(name="one"), session(name="two")
    call = {"name": "agora_save", "arguments": {"content": "Never whole."}}
    request: dict[str, Any] = {"jsonrpc": "2.0", "id": 77, "method": "tools/call", "params": call}
    with socket.socket(socket.AF_UNIX) as torn:
        torn.settimeout(PATIENCE)
        torn.connect(socket_of(str(home)))
        hello = {"agora": 1, "version": "0.1.0", "pid": 1, "cwd": str(home), "home": str(home)}
        hello |= {"options": {}, "env": {"AGORA_HOME": str(home), "AGORA_SERVER_SHARED": "true"}}
        torn.sendall(json.dumps(hello).encode() + b"\n")
        assert json.loads(torn.recv(10_000))["ok"] is True
        torn.sendall(json.dumps(HANDSHAKE).encode() + b"\n")
        assert torn.recv(100_000)
        torn.sendall(json.dumps(request).encode())
    eventually(lambda: server_of(home)["clients"] == 2, "it is gone")
    assert one.call("agora_query", query="never whole")["results"] == []
    assert two.call("agora_status")["notes"]["live"] == 0


@posix
def test_the_lock_is_free_when_the_server_was_killed_and_is_inherited_by_nobody(session: Serve, home: Path) -> None:
    session()
    pid = server_of(home)["pid"]
    lock = (home / "run" / "server.lock").stat()
    if sys.platform == "linux":
        flags = []
        for fd in Path(f"/proc/{pid}/fd").iterdir():
            found = fd.stat()
            if (found.st_dev, found.st_ino) == (lock.st_dev, lock.st_ino):
                text = Path(f"/proc/{pid}/fdinfo/{fd.name}").read_text("ascii")
                flags.append(int(text.split("flags:")[1].split()[0], 8))
        assert flags, "the server holds its lock"
        assert all(each & os.O_CLOEXEC for each in flags)
    psutil.Process(pid).kill()
    eventually(lambda: not runs(pid), "it is gone")
    assert control.start(home, {})["pid"] != pid


@posix
def test_sessions_of_a_data_folder_with_a_long_path_share_a_server_whatever_variables_they_have(
    tmp_path: Path, project: Path
) -> None:
    home = tmp_path / ("a-long-name-" * 12)
    other = tmp_path / "runtime"
    other.mkdir(mode=0o700)
    pids = set()
    for env in ({"XDG_RUNTIME_DIR": str(other)}, {"XDG_RUNTIME_DIR": ""}):
        done = greeted(home, project, {**SHARED, **env})
        assert (json.loads(done.stdout)["id"], done.stderr) == (0, b"")
        pids.add(server_of(home)["pid"])
    assert len(pids) == 1
    assert servers_of(home) == [*pids]
    assert list(other.iterdir()) == []
    assert (home / "run" / "server.sock").stat().st_mode & 0o077 == 0
    assert control.stop(home) is not None
    assert not (home / "run" / "server.sock").exists()
