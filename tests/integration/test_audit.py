"""`agora audit` and `agora revert` with the real program, beside a server that runs on the same folder."""

from __future__ import annotations

import json
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

from tests.integration.processes import RunAgora, Serve

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
    assert told("audit", "--verify", "--head", then) == {"whole": True, "rows": 5, "head": then, "broken": None}
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
