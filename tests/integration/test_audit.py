"""`agora audit` and `agora revert` with the real program, beside a server that runs on the same folder."""

from __future__ import annotations

import json
import sqlite3
from contextlib import closing
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

from tests.integration.processes import RunAgora, Serve

from agora.model.caller import Caller, Scope
from agora.model.calls import CallRow
from agora.model.deadline import Deadline
from agora.stores.sqlite.connection import Database
from agora.stores.sqlite.gateway.calls import SqliteCallLog
from agora.stores.sqlite.migrations import is_current, migrate

SCOPE = "acme/shop"


def test_a_writer_is_found_and_undone_while_a_server_runs(serve: Serve, run_agora: RunAgora, home: Path) -> None:
    server = serve("--namespace", SCOPE)
    server.call("agora_save", content="use port 8080", key="port", agent="ann", namespace=SCOPE)
    server.call("agora_save", content="use port 1", key="port", agent="mal\x1b[2J", namespace=SCOPE)
    shown = run_agora("audit")
    assert (shown.returncode, "\x1b" in shown.stdout) == (0, False)
    rows = json.loads(run_agora("audit", "-n", SCOPE, "--json").stdout)["rows"]
    assert [row["operation"] for row in rows] == ["save", "supersede", "save"]
    writer = rows[-1]["agent"]
    rows_head = json.loads(run_agora("audit", "--verify", "--json").stdout)["head"]
    assert "\x1b" not in run_agora("revert", "--agent", "misspelt").stderr
    preview = run_agora("revert", "--agent", writer)
    assert preview.stdout.startswith("to take back: 1\n")
    assert len(json.loads(run_agora("audit", "--json").stdout)["rows"]) == 3
    done = json.loads(run_agora("revert", "--agent", writer, "--yes", "--json").stdout)
    assert done["counts"] == {"withdraw": 0, "give_back": 0, "forget": 0, "take_back": 1, "restore": 0}
    answer = server.call("agora_query", query="which port?", namespace=SCOPE)
    assert [hit["content"] for hit in answer["results"]] == ["use port 8080"]
    assert json.loads(run_agora("revert", "--agent", writer, "--yes", "--json").stdout)["steps"] == []
    whole = json.loads(run_agora("audit", "--verify", "--json").stdout)
    assert (whole["whole"], whole["rows"]) == (True, done["sequence"])
    assert json.loads(run_agora("audit", "--verify", "--head", rows_head, "--json").stdout)["head"] == whole["head"]
    assert run_agora("audit", "--verify", "--head", f"1:{'0' * 64}").returncode == 1
    assert run_agora("audit", "--head", rows_head).returncode == 2
    assert server.end_input()[0] == 0
    assert run_agora("doctor").returncode == 0
    with closing(sqlite3.connect(home / "agora.db", isolation_level=None)) as raw:
        raw.execute("UPDATE journal SET origin = 'user' WHERE sequence = 2")
    broken = run_agora("audit", "--verify")
    assert broken.returncode == 1
    assert broken.stdout.startswith("BROKEN at change 2: ")


def called(home: Path, *tools: str, at: datetime) -> None:
    """Have these tools of another server called, as a server of the same folder records it."""
    caller = Caller(Scope(SCOPE, "test"), "mal", "s-mal", "codex", "1")
    database = Database(home / "agora.db", is_current, migrate, synchronous="normal", busy_timeout=10.0, readers=1)
    try:
        for tool in tools:
            access = "read" if tool.startswith("get") else "write"
            row = CallRow(at, caller, "files\x1b[2J", tool, access, "name", "name", "ok", 0.25)
            SqliteCallLog(database).record(row, Deadline(10))
    finally:
        database.close()


def test_calls_are_listed_beside_changes_verified_and_told_of_by_a_revert(run_agora: RunAgora, home: Path) -> None:
    run_agora("save", "before", "-n", SCOPE)
    [before] = json.loads(run_agora("audit", "--json").stdout)["rows"]
    called(home, "get_file", "put_file", at=datetime.fromisoformat(before["at"]) + timedelta(microseconds=1))
    run_agora("save", "after", "-n", SCOPE)
    assert [row["operation"] for row in json.loads(run_agora("audit", "--json").stdout)["rows"]] == ["save", "save"]
    both = json.loads(run_agora("audit", "--calls", "--json").stdout)
    assert both["total"] == 4
    assert [row["operation"] for row in both["rows"]] == ["save", "call", "call", "save"]
    assert (
        both["rows"][2].items()
        >= {
            "sequence": 2,
            "tool": "put_file",
            "access": "write",
            "rule": "name",
            "matched_by": "name",
            "outcome": "ok",
            "seconds": 0.25,
            "cached": False,
            "namespace": SCOPE,
            "agent": "mal",
            "session": "s-mal",
        }.items()
    )
    assert both["rows"][1]["at"].endswith("Z")
    newest = json.loads(run_agora("audit", "--calls", "--limit", "2", "--json").stdout)
    assert [row["operation"] for row in newest["rows"]] == ["call", "save"]
    shown = run_agora("audit", "--operation", "call", "--agent", "mal")
    assert shown.stdout.count("\n") == 2
    assert "put_file of files" in shown.stdout
    assert f"in {SCOPE}: write, ok in 0.25 s  by mal (agent), codex 1, s-mal" in shown.stdout
    assert "\x1b" not in shown.stdout
    assert json.loads(run_agora("audit", "--operation", "save", "--calls", "--json").stdout)["total"] == 2
    preview = run_agora("revert", "--agent", "mal")
    assert "cannot be undone: 2 calls of other servers' tools, of which 1 may have changed something" in preview.stdout
    assert "nothing to undo" in preview.stdout
    assert json.loads(run_agora("revert", "--agent", "mal", "--json").stdout)["calls"] == {"all": 2, "writing": 1}
    whole = run_agora("audit", "--verify")
    assert (whole.returncode, whole.stdout.count("whole: ")) == (0, 2)
    kept = json.loads(run_agora("audit", "--verify", "--json").stdout)["calls"]["head"]
    assert run_agora("audit", "--verify", "--calls-head", kept).returncode == 0
    assert run_agora("audit", "--verify", "--calls-head", f"1:{'0' * 64}").returncode == 1
    assert run_agora("audit", "--calls-head", kept).returncode == 2
    assert run_agora("audit", "--verify", "--calls").returncode == 2
    assert run_agora("doctor").returncode == 0
    with closing(sqlite3.connect(home / "agora.db", isolation_level=None)) as raw:
        raw.execute("UPDATE calls SET access = 'read' WHERE sequence = 2")
    broken = run_agora("audit", "--verify")
    assert broken.returncode == 1
    assert "BROKEN at call 2: changed" in broken.stdout
    assert run_agora("doctor").returncode == 1


def test_a_writer_that_nobody_knows_or_nobody_named_is_an_error(run_agora: RunAgora) -> None:
    run_agora("save", "a note")
    for option in ("--agent", "--session"):
        unknown = run_agora("revert", option, "nobody", "--yes")
        assert unknown.returncode == 1
        assert "nobody" in unknown.stderr
    assert run_agora("revert", "--yes").returncode == 2
    assert run_agora("audit", "--operation", "nonsense").returncode == 2
    assert run_agora("audit", "--verify", "--agent", "ann").returncode == 2


def test_a_backup_that_is_put_back_brings_the_record_of_its_day_and_what_it_holds_is_reverted_anew(
    serve: Serve, run_agora: RunAgora, tmp_path: Path
) -> None:
    def told(*command: str) -> dict[str, Any]:
        found: dict[str, Any] = json.loads(run_agora(*command, "--json").stdout)
        return found

    def first_hit() -> str:
        return str(server.call("agora_query", query="which port?")["results"][0]["content"])

    server = serve("--namespace", SCOPE)
    server.call("agora_save", content="use port 8080", key="port", agent="ann")
    server.call("agora_save", content="use port 1", key="port", agent="mal")
    server.call("agora_save", content="both say so", agent="ann")
    server.call("agora_save", content="both say so", agent="mal")
    then = told("audit", "--verify")["head"]
    assert run_agora("backup", str(tmp_path / "b.db")).returncode == 0
    done = {"withdraw": 1, "give_back": 0, "forget": 0, "take_back": 1, "restore": 0}
    first = told("revert", "--agent", "mal", "--yes")
    assert first["counts"] == done
    now = told("audit", "--verify", "--head", then)["head"]
    assert run_agora("restore-backup", str(tmp_path / "b.db"), "--yes").returncode == 0
    calls = {"whole": True, "rows": 0, "head": None, "broken": None}
    whole = {"whole": True, "rows": 5, "head": then, "broken": None, "calls": calls}
    assert told("audit", "--verify", "--head", then) == whole
    lost = run_agora("audit", "--verify", "--head", now)
    assert (lost.returncode, "the journal's end is missing" in lost.stdout) == (1, True)
    assert first_hit() == "use port 1"
    again = told("revert", "--agent", "mal", "--yes")
    assert (again["counts"], again["left"]) == (done, [])
    assert first_hit() == "use port 8080"
    # The same number, another change: the record of the restored store is another one from here on.
    other = run_agora("audit", "--verify", "--head", now)
    assert (other.returncode, "it is not the change that the head was given of" in other.stdout) == (1, True)
    undone = told("revert", "--session", again["session"], "--yes")
    # The version that came back, and the one that it is a copy of, as history.
    assert undone["counts"] == {"withdraw": 0, "give_back": 1, "forget": 0, "take_back": 1, "restore": 1}
    assert run_agora("doctor").returncode == 0


def test_one_that_floods_the_memory_is_stopped_over_every_session_and_told_when_to_go_on(serve: Serve) -> None:
    env = {"AGORA_QUOTA_AGENT_SAVES": "3", "AGORA_QUOTA_NAMESPACE_MB": "1"}
    one, two = serve("--namespace", SCOPE, env=env), serve("--namespace", SCOPE, env=env)
    for number, server in enumerate((one, two, one)):
        server.call("agora_save", content=f"junk {number}", agent="mal")
    error = two.refused("agora_save", content="more junk", agent="mal")
    assert (error["code"], error["retryable"], error["retry_after"] in range(1190, 1201)) == (
        "rate_limited",
        True,
        True,
    )
    one.call("agora_save", content="a fact", agent="ann")
    for number in range(8):
        one.call("agora_save", content=f"{number}" + "x" * 119_000, agent=f"forged{number}")
    error = two.refused("agora_save", content="9" + "x" * 119_000, agent="forged9")
    assert (error["code"], error["retryable"]) == ("quota_exceeded", False)
