"""`agora serve` as a client sees it when the sessions of a data folder share a server."""

from __future__ import annotations

import json
import os
import signal
import stat
import sys
import threading
from pathlib import Path

import psutil
import pytest
from tests.integration.processes import PATIENCE, RunAgora, Serve, Served, runs
from tests.integration.shared.conftest import eventually, greeted, kill_server, server_of, servers_of

from agora.daemon.lock import take

posix = pytest.mark.skipif(sys.platform == "win32", reason="Unix sockets and their permissions")


def saved(server: Served, text: str) -> str:
    return str(server.call("agora_save", content=text)["id"])


def contents(server: Served, query: str) -> list[str]:
    return [hit["content"] for hit in server.call("agora_query", query=query)["results"]]


def test_two_sessions_share_one_server_and_what_one_saves_the_other_finds(session: Serve, home: Path) -> None:
    one, two = session(name="one"), session(name="two")
    saved(one, "The staging database is restarted every Sunday at noon.")
    assert contents(two, "when does staging restart?") == ["The staging database is restarted every Sunday at noon."]
    states = [each.call("agora_status") for each in (one, two)]
    assert states[0]["pid"] == states[1]["pid"] == server_of(home)["pid"]
    assert [state["server"]["shared"] for state in states] == [True, True]
    assert states[0]["session"] != states[1]["session"]
    assert {state["connection"]["transport"] for state in states} == {"shared"}
    assert one.process.pid != states[0]["pid"]


def test_each_session_has_the_project_of_its_own_folder_its_own_agent_and_its_own_named_namespaces(
    session: Serve, tmp_path: Path
) -> None:
    folders = [tmp_path / "alpha", tmp_path / "beta"]
    for folder in folders:
        folder.mkdir()
    one = session("--agent", "first", cwd=folders[0])
    two = session("--namespace", "acme/shop", cwd=folders[1])
    saved(one, "Alpha is built with bazel.")
    saved(two, "The shop is built with make.")
    first, second = one.call("agora_status"), two.call("agora_status")
    assert first["namespace"].startswith("alpha")
    assert second["namespace"] == "acme/shop"
    assert contents(one, "how is it built?") == ["Alpha is built with bazel."]
    (hit,) = two.call("agora_query", query="how is it built?")["results"]
    assert (hit["content"], hit["agent"]) == ("The shop is built with make.", "raw")
    (hit,) = one.call("agora_query", query="how is it built?")["results"]
    assert hit["agent"] == "first"
    # What one connection has named is visible to it alone.
    assert one.call("agora_query", query="built", namespace="acme/shop")["results"]
    assert two.call("agora_get", ids=[hit["id"]])["unknown"] == [hit["id"]]


@posix
def test_what_the_server_leaves_in_the_data_folder_is_for_its_user_alone(session: Serve, home: Path) -> None:
    session()
    run = home / "run"
    assert stat.S_IMODE(run.stat().st_mode) == 0o700
    modes = {file.name: stat.S_IMODE(file.stat().st_mode) for file in run.iterdir()}
    assert modes == {"server.lock": 0o600, "server.log": 0o600, "server.sock": 0o600}


@posix
def test_the_server_is_nobodys_child_and_ends_with_no_client(session: Serve, home: Path) -> None:
    one = session()
    pid = server_of(home)["pid"]
    process = psutil.Process(pid)
    assert process.ppid() != one.process.pid
    assert os.getsid(pid) != os.getsid(0)
    one.process.kill()
    one.process.wait(PATIENCE)
    eventually(lambda: server_of(home)["clients"] == 0, "the server forgets a session whose process was killed")
    assert process.is_running()


def test_a_server_that_nobody_uses_ends_by_itself_and_the_next_session_starts_another(
    session: Serve, home: Path
) -> None:
    one = session(env={"AGORA_SERVER_IDLE_SECONDS": "0.3"})
    saved(one, "Kept through the end of the server.")
    first = server_of(home)["pid"]
    assert one.end_input()[0] == 0
    eventually(lambda: not runs(first), "an idle server ends")
    assert not (home / "run" / "server.sock").exists()
    two = session(env={"AGORA_SERVER_IDLE_SECONDS": "0.3"})
    assert contents(two, "kept") == ["Kept through the end of the server."]
    assert server_of(home)["pid"] != first


def test_the_end_of_input_answers_what_is_under_way_and_ends_with_status_0(session: Serve) -> None:
    one = session()
    saved(one, "The model is loaded by now.")
    request = one.post_call("agora_save", content="The last words of a session.")
    status, seconds = one.end_input()
    assert status == 0
    assert seconds < 2
    assert one.result(request)["status"] == "created"


@posix
def test_a_signal_ends_the_session_and_not_the_server(session: Serve, home: Path) -> None:
    one, two = session(name="one"), session(name="two")
    pid = server_of(home)["pid"]
    status, seconds = one.signal(signal.SIGTERM)
    assert (status, seconds < 2) == (0, True)
    assert two.call("agora_status")["pid"] == pid


def test_a_session_with_other_settings_gets_a_server_of_its_own_and_says_so(session: Serve) -> None:
    one = session()
    two = session(env={"AGORA_CACHE_ENABLED": "false"}, name=None)
    two.initialize()
    assert "cache.enabled" in two.log()
    state = two.call("agora_status")
    assert state["server"]["shared"] is False
    assert "cache.enabled" in state["server"]["reason"]
    assert state["pid"] == two.process.pid
    saved(one, "Seen by both, whatever server they have.")
    assert contents(two, "seen") == ["Seen by both, whatever server they have."]


def test_a_changed_configuration_file_makes_the_server_give_way_to_one_that_has_read_it(
    session: Serve, home: Path
) -> None:
    one = session()
    first = server_of(home)["pid"]
    (home / "agora.toml").write_text("[limits]\nquery_chars = 200\n", encoding="utf-8")
    two = session()
    assert two.call("agora_status")["pid"] != first
    assert two.refused("agora_query", query="x" * 201)["code"] == "payload_too_large"
    # The session that was there goes on, with the new server.
    assert one.call("agora_status")["pid"] == two.call("agora_status")["pid"]


def test_settings_that_cannot_be_are_told_as_they_are_without_a_shared_server(run_shared: RunAgora, home: Path) -> None:
    home.mkdir()
    (home / "agora.toml").write_text("[store]\nsynchronus = 'full'\n", encoding="utf-8")
    done = run_shared("serve")
    assert done.returncode == 2
    assert done.stdout == ""
    assert "unknown setting" in done.stderr
    assert "Did you mean store.synchronous?" in done.stderr


@posix
def test_a_data_folder_whose_run_folder_others_may_enter_is_served_without_sharing_and_says_why(
    session: Serve, home: Path
) -> None:
    (home / "run").mkdir(parents=True)
    (home / "run").chmod(0o755)
    one = session(name=None)
    one.initialize()
    assert one.call("agora_status")["server"]["shared"] is False
    assert "server of its own" in one.log()
    assert str(home / "run") in one.log()
    assert not (home / "run" / "server.log").exists(), "none was started for nothing"


def test_a_call_under_way_when_the_server_is_killed_is_answered_once_and_the_session_goes_on(
    session: Serve, home: Path
) -> None:
    one = session()
    before = saved(one, "Before the crash.")
    kill_server(home)
    found = one.call("agora_query", query="before the crash")
    assert [hit["id"] for hit in found["results"]] == [before]
    assert saved(one, "After the crash.")
    ids = [json.loads(line)["id"] for line in one.lines]
    assert sorted(ids) == sorted(set(ids)), "each request is answered once"


def test_agora_server_stops_starts_and_shows_the_server(session: Serve, run_shared: RunAgora, home: Path) -> None:
    assert json.loads(run_shared("server", "status", "--json").stdout) == {"running": False}
    assert run_shared("server", "start").returncode == 0
    first = server_of(home)["pid"]
    one = session()
    shown = json.loads(run_shared("server", "status", "--json").stdout)
    assert (shown["pid"], shown["clients"]) == (first, 1)
    assert shown["connections"][0]["pid"] == one.process.pid
    assert "listening" in run_shared("server", "logs").stdout

    assert run_shared("server", "stop").returncode == 0
    assert not runs(first)
    assert one.process.poll() is None
    assert servers_of(home) == [], "nobody starts it again before it is needed"
    assert saved(one, "This starts it again.")
    assert server_of(home)["pid"] != first

    second = server_of(home)["pid"]
    assert run_shared("server", "restart").returncode == 0
    assert server_of(home)["pid"] != second
    assert contents(one, "starts it again") == ["This starts it again."]


def test_a_client_that_goes_while_the_server_is_stopped_leaves_no_process(
    session: Serve, run_shared: RunAgora, home: Path
) -> None:
    one, two = session(name="one"), session(name="two")
    saved(one, "x")
    assert run_shared("server", "stop").returncode == 0
    assert one.end_input()[0] == 0
    two.process.terminate()
    assert two.process.wait(PATIENCE) == 0
    assert servers_of(home) == []


def test_a_client_that_goes_while_a_server_is_awaited_leaves_no_process(session: Serve, home: Path) -> None:
    one = session()
    saved(one, "x")
    # Somebody holds the lock and listens nowhere: the session looks for a server for as long as it may.
    psutil.Process(one.process.pid).suspend()
    kill_server(home)
    lock = take(home / "run" / "server.lock")
    psutil.Process(one.process.pid).resume()
    threading.Event().wait(0.5)  # nothing tells that it looks; long enough to have begun
    status, seconds = one.end_input()
    assert status in {0, 1}
    assert seconds < 10
    lock.release()


@posix
def test_a_descriptor_that_a_session_inherited_is_not_held_by_the_server(home: Path, project: Path) -> None:
    reading, writing = os.pipe()
    os.set_inheritable(writing, True)  # noqa: FBT003 - as the system has it
    done = greeted(home, project, pass_fds=[writing])
    assert json.loads(done.stdout)["id"] == 0
    os.close(writing)
    assert server_of(home)["pid"]
    assert os.read(reading, 1) == b"", "the end is seen though the server lives"
    os.close(reading)


def test_what_stop_says_for_programs_is_that_nothing_runs(session: Serve, run_shared: RunAgora, home: Path) -> None:
    session()
    assert server_of(home)["pid"]
    assert json.loads(run_shared("server", "stop", "--json").stdout)["running"] is False
