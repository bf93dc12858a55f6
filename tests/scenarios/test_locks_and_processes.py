"""Locks that others hold, processes that are killed, machines that are busy."""

from __future__ import annotations

import json
import sqlite3
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

import psutil
import pytest
from tests.integration.processes import Serve, environment, run_command
from tests.protocol.bench import Bench

import agora
from agora.config.settings import Settings

HOLDER = """
import sqlite3, sys
store = sqlite3.connect(sys.argv[1], isolation_level=None)
store.execute("BEGIN IMMEDIATE")
store.execute("DELETE FROM items")
print("locked", flush=True)
sys.stdin.read()
"""


@contextmanager
def locked(store: Path) -> Iterator[sqlite3.Connection]:
    """The store's write lock, held from outside."""
    with closing(sqlite3.connect(store, isolation_level=None, check_same_thread=False)) as other:
        other.execute("BEGIN IMMEDIATE")
        yield other


@pytest.mark.anyio
async def test_a_save_waits_for_a_lock_that_goes_away(bench: Bench) -> None:
    async with bench.client() as client:
        with locked(bench.home / "agora.db") as other:
            timer = threading.Timer(0.3, other.execute, ["ROLLBACK"])
            timer.start()
            began = time.monotonic()
            saved = await bench.ok(client, "agora_save", content="patience")
            assert time.monotonic() - began >= 0.25
            timer.join()
        assert saved["status"] == "created"
        assert (await bench.ok(client, "agora_status"))["health"] == "ok"


@pytest.mark.anyio
async def test_a_lock_that_stays_is_an_error_and_the_status_says_so_until_a_save_works(bench: Bench) -> None:
    async with bench.client() as client:
        kept = await bench.ok(client, "agora_save", content="written before")
        with locked(bench.home / "agora.db"):
            # The bench waits for half a second.
            error = await bench.refused(client, "agora_save", content="never written")
            assert (error["code"], error["retryable"]) == ("store_unavailable", True)
            assert "Nothing was written" in error["hint"]
            found = await bench.ok(client, "agora_query", query="written before")
            assert [hit["id"] for hit in found["results"]] == [kept["id"]]
            status = await bench.ok(client, "agora_status")
            assert status["health"] == "degraded"
            assert [problem["code"] for problem in status["problems"]] == ["store_unavailable"]
        await bench.ok(client, "agora_save", content="written after")
        status = await bench.ok(client, "agora_status")
        assert (status["health"], status["notes"]["rows"]) == ("ok", 2)


def test_a_killed_lock_holder_leaves_nothing_to_clean_up(serve: Serve, home: Path) -> None:
    first = serve()
    kept = first.call("agora_save", content="here before the accident")["id"]
    with subprocess.Popen(
        [sys.executable, "-c", HOLDER, str(home / "agora.db")], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as holder:
        assert holder.stdout is not None
        assert holder.stdout.readline().strip() == b"locked"
        holder.kill()
    began = time.monotonic()
    second = serve()
    assert second.call("agora_save", content="and after it")["status"] == "created"
    assert time.monotonic() - began < 8
    assert [note["id"] for note in second.call("agora_get", ids=[kept])["notes"]] == [kept]


def test_six_servers_start_while_somebody_writes_for_long(serve: Serve, home: Path) -> None:
    assert serve().call("agora_status")["health"] == "ok"
    alone = started_in(serve)
    with locked(home / "agora.db"):
        for _ in range(6):
            server = serve(name=None)
            server.initialize()
            assert time.monotonic() - server.started < max(3.0, 3 * alone)
            assert server.call("agora_query", query="anything", mode="lexical")["results"] == []


def test_a_server_starts_no_process_of_its_own(serve: Serve) -> None:
    server = serve()
    server.call("agora_save", content="a note")
    server.call("agora_query", query="a note")
    process = psutil.Process(server.process.pid)
    assert process.children(recursive=True) == []
    assert server.end_input()[0] == 0


BUSY = "import os\nif hasattr(os, 'nice'): os.nice(19)\nwhile True: pass"


@pytest.mark.slow
def started_in(serve: Serve) -> float:
    """Seconds that a server takes to start here and now: other tests run beside this one, and their coverage costs."""
    server = serve(name=None)
    server.initialize()
    taken = time.monotonic() - server.started
    server.end_input()
    return taken


def test_a_busy_machine_does_not_keep_a_client_waiting_for_the_tools(serve: Serve) -> None:
    alone = started_in(serve)
    idle = getattr(subprocess, "IDLE_PRIORITY_CLASS", 0)
    busy = [subprocess.Popen([sys.executable, "-c", BUSY], creationflags=idle) for _ in range(8)]
    try:
        server = serve(name=None)
        server.initialize()
        tools = server.request("tools/list")["result"]["tools"]
        assert time.monotonic() - server.started < max(3.0, 3 * alone)
        assert len(tools) >= 6
        # And the model comes all the same.
        assert server.call("agora_save", content="in spite of it all")["status"] == "created"
    finally:
        for each in busy:
            each.kill()
            each.wait()


def test_data_lies_in_a_folder_of_the_user_and_never_in_the_package(tmp_path: Path) -> None:
    user = {"HOME": str(tmp_path), "USERPROFILE": str(tmp_path)}
    kept = environment(None, user)
    kept.pop("XDG_DATA_HOME", None)
    command = [sys.executable, "-m", "agora", "config", "--json"]
    done = subprocess.run(command, env=kept, cwd=tmp_path, check=True, capture_output=True, timeout=60)
    home = Path(json.loads(done.stdout)["settings"]["home"]["value"])
    assert home.is_absolute()
    assert Path(agora.__file__).parent not in home.parents
    if sys.platform != "win32":
        assert tmp_path in home.parents


def test_the_status_shows_the_data_that_is_really_used_and_a_mistyped_variable_is_no_silent_default(
    tmp_path: Path,
) -> None:
    real, mistyped = tmp_path / "real", {"AGORA_HOEM": str(tmp_path / "lost")}
    shown = run_command(["status", "--json"], real, tmp_path)
    assert f'"home": {json.dumps(str(real))}' in shown.stdout
    refused = run_command(["status"], real, tmp_path, env=mistyped)
    assert (refused.returncode, refused.stdout) == (2, "")
    assert "AGORA_HOEM" in refused.stderr
    assert "Did you mean AGORA_HOME?" in refused.stderr
    assert not (tmp_path / "lost").exists()


@pytest.mark.anyio
async def test_the_log_is_written_ahead_and_locks_are_waited_for(bench: Bench) -> None:
    async with bench.client() as client:
        assert (await bench.ok(client, "agora_status"))["store"]["journal_mode"] == "wal"
    assert Settings().store.busy_timeout >= 5
    assert (bench.home / "agora.db-wal").exists()
