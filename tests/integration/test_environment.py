"""A full disk, a folder that can only be read, a network file system: in words, without loss, and until they end."""

from __future__ import annotations

import json
import os
import sqlite3
import subprocess
import sys
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from tests.integration.conditions import can_mount, fill_up, read_only, small_disk
from tests.integration.processes import AGORA, RunAgora, Serve, environment

from agora.stores.sqlite.examine import examine

HOUSE = ("--namespace", "acme/shop")


def problems(status: dict[str, Any]) -> set[str]:
    return {each["code"] for each in status["problems"]}


def ids(answer: dict[str, Any]) -> list[str]:
    return [hit["id"] for hit in answer["results"]]


def test_a_folder_that_can_only_be_read_is_queried_and_says_so(run_agora: RunAgora, home: Path) -> None:
    kept = json.loads(run_agora("save", "the gateway needs port 8080", "--json").stdout)["id"]
    before = (home / "agora.db").read_bytes()
    with read_only(home):
        for mode in ("hybrid", "lexical", "semantic"):
            found = run_agora("query", "which port", "--mode", mode, "--json")
            assert found.returncode == 0, found.stderr
            assert ids(json.loads(found.stdout)) == [kept]
        assert json.loads(run_agora("get", kept, "--json").stdout)["notes"][0]["id"] == kept
        status = json.loads(run_agora("status", "--json").stdout)
        assert (status["health"], problems(status)) == ("degraded", {"read_only"})
        for command in (["save", "more"], ["forget", kept, "--yes"], ["restore", kept]):
            done = run_agora(*command)
            assert (done.returncode, done.stdout) == (1, "")
            assert "can only be read" in done.stderr
            assert "Nothing was written" in done.stderr
        assert run_agora("export", "-").returncode == 0
        for command in (["doctor"], ["doctor", "--repair"]):
            done = run_agora(*command, "--json")
            assert done.returncode == 1
            failed = [row for row in json.loads(done.stdout)["checks"] if not row["ok"]]
            assert [row["code"] for row in failed] == ["read_only"]
    assert (home / "agora.db").read_bytes() == before
    assert run_agora("save", "more").returncode == 0
    assert run_agora("doctor").returncode == 0


def test_a_server_on_a_folder_that_can_only_be_read_saves_as_soon_as_it_can(
    serve: Serve, home: Path, run_agora: RunAgora
) -> None:
    kept = json.loads(run_agora("save", "written before", *HOUSE, "--json").stdout)["id"]
    with read_only(home) as release:
        server = serve(*HOUSE)
        assert ids(server.call("agora_query", query="written before")) == [kept]
        error = server.refused("agora_save", content="not now")
        assert (error["code"], error["retryable"]) == ("store_unavailable", True)
        assert "read_only" in problems(server.call("agora_status"))
        release()
        assert server.call("agora_status")["health"] in {"ok", "degraded"}
        new = server.call("agora_save", content="written after")["id"]
        # What it read from a file that nobody changed is no longer what the store holds.
        assert set(ids(server.call("agora_query", query="written", min_score=0))) == {kept, new}
        assert server.call("agora_status")["health"] == "ok"
    assert "Traceback" not in server.log()
    assert examine(home / "agora.db") == []


def test_what_is_only_in_the_log_is_never_passed_over_in_silence(
    serve: Serve, home: Path, tmp_path: Path, run_agora: RunAgora
) -> None:
    server = serve(*HOUSE)
    kept = server.call("agora_save", content="only in the log so far")["id"]
    copy = tmp_path / "copy"
    copy.mkdir()
    # As a machine that died left it: the log is there, its index is not.
    for name in ("agora.db", "agora.db-wal"):
        (copy / name).write_bytes((home / name).read_bytes())
    with read_only(copy):
        done = run_agora("query", "only in the log", *HOUSE, "--home", str(copy))
        assert (done.returncode, done.stdout) == (1, "")
        assert "write-ahead log" in done.stderr
        assert "copy it whole" in done.stderr
        done = run_agora("doctor", "--home", str(copy))
        assert done.returncode == 1
        assert "write-ahead log" in done.stdout
    found = json.loads(run_agora("query", "only in the log", *HOUSE, "--home", str(copy), "--json").stdout)
    assert ids(found) == [kept]


def test_a_store_of_an_older_release_that_can_only_be_read_is_refused_in_words(run_agora: RunAgora, home: Path) -> None:
    assert run_agora("save", "x").returncode == 0
    with closing(sqlite3.connect(home / "agora.db")) as connection:
        connection.execute("PRAGMA user_version = 2")
    with read_only(home):
        done = run_agora("query", "x")
        assert (done.returncode, done.stdout) == (1, "")
        assert "older release" in done.stderr
        assert "cannot be migrated" in done.stderr


@can_mount
def test_a_full_disk_refuses_saves_answers_queries_and_loses_nothing(
    serve: Serve, home: Path, run_agora: RunAgora
) -> None:
    with small_disk(home, 6_000):
        server = serve(*HOUSE)
        kept = [
            server.call("agora_save", content=f"note {number} before the disk was full")["id"] for number in range(5)
        ]
        ballast = fill_up(home)
        refused = 0
        for number in range(40):
            # A log that has room left takes a few more.
            answer = server.answer(server.post_call("agora_save", content=f"late note {number} " + "long " * 300))
            result = answer["result"]
            if result.get("isError"):
                error = result["structuredContent"]["error"]
                assert error["code"] == "store_unavailable"
                assert "Nothing was written" in error["hint"] or "free space" in error["hint"]
                refused += 1
            else:
                kept.append(result["structuredContent"]["id"])
        assert refused
        found = server.call("agora_query", query="before the disk was full", top_k=50, min_score=0, max_tokens=20_000)
        assert set(kept[:5]) <= set(ids(found))
        assert "store_unavailable" in problems(server.call("agora_status"))
        # A process that starts now reads what there is.
        late = run_agora("query", "before the disk", *HOUSE, "--mode", "lexical", "--json")
        assert late.returncode == 0, late.stderr
        assert set(kept[:5]) <= set(ids(json.loads(late.stdout)))
        rows = json.loads(run_agora("doctor", "--json").stdout)["checks"]
        assert "disk_full" in {row.get("code") for row in rows}
        ballast.unlink()
        kept.append(server.call("agora_save", content="after there was room again")["id"])
        assert server.call("agora_status")["health"] == "ok"
        got = server.call("agora_get", ids=kept)
        assert [note["id"] for note in got["notes"]] == kept
        assert "Traceback" not in server.log()
        assert server.end_input()[0] == 0
        assert examine(home / "agora.db") == []
        with closing(sqlite3.connect(home / "agora.db")) as connection:
            assert connection.execute("SELECT count(*) FROM items").fetchone() == (len(kept),)


@can_mount
def test_a_store_that_was_closed_is_read_on_a_disk_without_a_free_byte(home: Path, run_agora: RunAgora) -> None:
    with small_disk(home, 6_000):
        kept = json.loads(run_agora("save", "before the disk was full", "--json").stdout)["id"]
        fill_up(home)
        found = run_agora("query", "before", "--mode", "lexical", "--json")
        assert found.returncode == 0, found.stderr
        assert ids(json.loads(found.stdout)) == [kept]
        done = run_agora("save", "no room " * 2_000)
        assert done.returncode == 1
        assert len(done.stderr) < 2_000


@can_mount
def test_a_repair_without_room_for_a_copy_is_refused_and_changes_nothing(home: Path, run_agora: RunAgora) -> None:
    with small_disk(home, 3_000):
        assert run_agora("save", "a note").returncode == 0
        with closing(sqlite3.connect(home / "agora.db", isolation_level=None)) as connection:
            connection.execute("DELETE FROM fulltext")
            connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        ballast = fill_up(home)
        before = (home / "agora.db").read_bytes()
        done = run_agora("doctor", "--repair")
        assert done.returncode == 1
        assert "free" in done.stderr
        assert (home / "agora.db").read_bytes() == before
        assert not list(home.glob("agora.db.before-repair-*"))
        ballast.unlink()
        assert run_agora("doctor", "--repair").returncode in {0, 1}
        assert examine(home / "agora.db") == []


LIMITED = """
import resource, runpy, signal, sys
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
resource.setrlimit(resource.RLIMIT_FSIZE, (int(sys.argv[1]), resource.RLIM_INFINITY))
sys.argv = ["agora", *sys.argv[2:]]
runpy.run_module("agora", run_name="__main__")
"""


@pytest.mark.skipif(sys.platform == "win32", reason="there is no such limit there")
def test_a_file_that_may_not_grow_refuses_the_save_and_keeps_what_was_there(
    home: Path, tmp_path: Path, run_agora: RunAgora
) -> None:
    kept = json.loads(run_agora("save", "before the limit", "--json").stdout)["id"]
    given = environment(home, {"AGORA_LOG_FILE": "false"})
    # What measures coverage would write a file of its own, which may not grow either.
    given = {name: value for name, value in given.items() if not name.startswith("COVERAGE")}
    done = subprocess.run(
        [sys.executable, "-c", LIMITED, "40000", "save", "a long text of many words " * 2_000],
        env=given,
        cwd=tmp_path,
        capture_output=True,
        timeout=60,
        text=True,
        check=False,
    )
    assert done.returncode == 1, done.stderr
    assert "Traceback" not in done.stderr
    assert "cannot be used" in done.stderr
    assert examine(home / "agora.db") == []
    assert ids(json.loads(run_agora("query", "before the limit", "--json").stdout)) == [kept]


FAKED = 'mount --bind "$1" /proc/$$/mountinfo && shift && exec "$@"'


def on(kind: str, home: Path, tmp_path: Path, *command: str, **settings: str) -> subprocess.CompletedProcess[str]:
    """A command in a process to which the kernel says that its data folder is on such a file system."""
    table = tmp_path / "mountinfo"
    table.write_text(f"1 0 8:1 / / rw - ext4 /dev/sda1 rw\n2 1 0:9 / {home.parent} rw - {kind} server:/x rw\n")
    given = {f"AGORA_{name.upper()}": value for name, value in settings.items()}
    return subprocess.run(
        ["unshare", "-m", "sh", "-c", FAKED, "sh", str(table), *AGORA, *command],
        env=environment(home, given),
        cwd=tmp_path,
        capture_output=True,
        timeout=60,
        text=True,
        check=False,
        stdin=subprocess.DEVNULL,
    )


@can_mount
@pytest.mark.parametrize(
    "command", [["save", "x"], ["query", "x"], ["status"], ["serve"], ["doctor", "--repair"], ["reembed"]]
)
def test_a_network_file_system_is_refused_before_anything_is_made(
    home: Path, tmp_path: Path, command: list[str]
) -> None:
    done = on("nfs4", home, tmp_path, *command)
    assert done.returncode == 2, done.stderr
    assert "network file system (nfs4)" in done.stderr
    assert "AGORA_HOME" in done.stderr
    assert "store.network_file_system" in done.stderr
    assert "Traceback" not in done.stderr
    assert not (home / "agora.db").exists()


@can_mount
def test_a_network_file_system_may_be_allowed_and_is_named_all_the_same(home: Path, tmp_path: Path) -> None:
    allowed = {"store_network_file_system": "allow"}
    assert on("cifs", home, tmp_path, "save", "a note", **allowed).returncode == 0
    done = on("cifs", home, tmp_path, "status", "--json", **allowed)
    status = json.loads(done.stdout)
    assert problems(status) == {"network_file_system"}
    assert "two machines" in status["problems"][0]["message"]
    checked = on("cifs", home, tmp_path, "doctor", **allowed)
    assert checked.returncode == 0
    assert "warn  file system: " in checked.stdout
    refused = on("cifs", home, tmp_path, "doctor", "--json")
    assert refused.returncode == 1
    rows = [row for row in json.loads(refused.stdout)["checks"] if not row["ok"]]
    assert [row["code"] for row in rows] == ["network_file_system"]


@can_mount
def test_a_folder_shared_with_the_host_is_used_and_named(home: Path, tmp_path: Path) -> None:
    assert on("virtiofs", home, tmp_path, "save", "a note").returncode == 0
    status = json.loads(on("virtiofs", home, tmp_path, "status", "--json").stdout)
    assert problems(status) == {"network_file_system"}
    assert on("virtiofs", home, tmp_path, "doctor").returncode == 0


def test_a_disk_of_this_machine_is_no_problem(run_agora: RunAgora, home: Path) -> None:
    assert run_agora("save", "x").returncode == 0
    assert problems(json.loads(run_agora("status", "--json").stdout)) == set()
    assert os.access(home, os.W_OK)
