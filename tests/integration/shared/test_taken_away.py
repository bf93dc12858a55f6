"""Somebody deletes or moves what the shared server keeps in the data folder while it runs."""

from __future__ import annotations

import sys
from pathlib import Path

import psutil
import pytest
from tests.integration.processes import RunAgora, Serve, runs
from tests.integration.shared.conftest import eventually, server_of, servers_of

from agora.daemon import control

posix = pytest.mark.skipif(sys.platform == "win32", reason="an open file cannot be moved there")


@posix
@pytest.mark.parametrize("name", ["server.sock", "server.lock"])
def test_a_server_whose_file_is_deleted_makes_room_and_its_sessions_go_on_with_the_next_one(
    session: Serve, home: Path, name: str
) -> None:
    one = session()
    note = one.call("agora_save", content="Kept.")["id"]
    first = server_of(home)["pid"]
    (home / "run" / name).unlink()
    two = session()
    eventually(lambda: not runs(first), "the old one ends")
    for each in (one, two):
        assert each.call("agora_get", ids=[note])["unknown"] == []
        assert each.call("agora_status")["pid"] == server_of(home)["pid"]
    assert servers_of(home) == [server_of(home)["pid"]]
    log = (home / "run" / "server.log").read_text("utf-8")
    assert "deleted or replaced" in log
    assert "Traceback" not in log


@posix
def test_a_server_whose_folder_is_moved_and_made_anew_ends_soon_and_leaves_the_next_one_alone(
    session: Serve, home: Path, tmp_path: Path
) -> None:
    one = session()
    first = server_of(home)["pid"]
    (home / "run").rename(tmp_path / "moved")
    second = control.start(home, {}, {**psutil.Process(first).environ(), "AGORA_SERVER_SHARED": "true"})["pid"]
    assert second != first
    eventually(lambda: not runs(first), "the old one ends")
    assert one.call("agora_status")["pid"] == second
    assert servers_of(home) == [second]
    assert "deleted or replaced" in (tmp_path / "moved" / "server.log").read_text("utf-8")


def test_a_call_under_way_is_answered_when_a_person_ends_the_server_and_the_log_tells_of_no_failure(
    session: Serve, home: Path, run_shared: RunAgora
) -> None:
    # The first call waits for the model: it is under way for long enough.
    one = session(env={"AGORA_SERVER_DRAIN": "20"})
    request = one.post_call("agora_save", content="Said before the end.")
    eventually(lambda: server_of(home)["connections"][0]["requests"] > 1, "it has come")
    assert run_shared("server", "stop").returncode == 0
    assert one.result(request)["status"] == "created"
    log = (home / "run" / "server.log").read_text("utf-8")
    assert "Traceback" not in log
    assert "ended hard" not in log


def test_what_a_server_that_ends_says_tells_how_long_its_calls_may_take(session: Serve, home: Path) -> None:
    session(env={"AGORA_SERVER_DRAIN": "42"})
    found = control.stop(home)
    assert found is not None
    assert control.ends_within(found) > 42
