"""Facts over stdio and on the command line, with the real program and the packaged model."""

from __future__ import annotations

import json
import subprocess
from typing import Any

from tests.integration.processes import RunAgora, Serve


def said(done: subprocess.CompletedProcess[str]) -> Any:
    """The one JSON document on stdout of a command that worked."""
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def test_what_one_agent_remembers_another_process_recalls_and_finds(serve: Serve) -> None:
    b = serve(name="codex")
    a = serve(name="claude-code")
    old = a.call("remember", key="database port", value=5432, subject="acme/shop", valid_from="2026-01-01")
    new = b.call("remember", key="Database_Port", value=5433, subject="acme/shop")
    assert (new["status"], [each["id"] for each in new["replaced"]]) == ("superseded", [old["id"]])
    assert a.call("remember", key="database port", value="5,433", subject="acme/shop")["count"] == 2
    found = a.call("recall", subject="acme/shop", include_history=True)
    assert [each["value"] for each in found["facts"]] == [5433]
    assert [each["value"] for each in found["history"]] == [5432]
    assert found["profile"] == "What you know about acme/shop:\n- database port: 5433"
    hits = a.call("agora_query", query="which port does the database listen on?")["results"]
    assert [(hit["id"], hit["type"], hit["value"]) for hit in hits] == [(new["id"], "fact", 5433)]
    a.call("agora_forget", ids=[new["id"]], dry_run=False)
    assert b.call("recall", subject="acme/shop")["facts"] == []
    b.call("agora_restore", ids=[new["id"]])
    assert [each["value"] for each in a.call("recall", key="database port")["facts"]] == [5433]


def test_facts_go_through_the_commands_in_words(run_agora: RunAgora) -> None:
    first = run_agora("remember", "city", "Rome", "--subject", "ann", "--from", "2025-06-01T00:00:00Z")
    status, old, _, namespace, *rest = first.stdout.split()
    assert (status, rest) == ("stored", ["city", "of", "ann:", "Rome"])
    assert namespace.startswith("project-")
    moved = run_agora("remember", "city", "Milan", "--subject", "Ann", "--from", "2026-01-01T00:00:00Z")
    assert moved.stdout.startswith("superseded f_")
    assert f"  replaces {old} Rome — agora-cli, agent, 2025-06-01 to 2026-01-01\n" in moved.stdout
    shown = run_agora("recall", "ann", "--history").stdout.splitlines()
    assert shown[:2] == ["What you know about ann:", "- city: Milan"]
    assert "city of ann: Milan — agora-cli, agent, 2026-01-01" in shown[3]
    assert shown[4].startswith(f"superseded: {old} city of ann: Rome — agora-cli, agent, 2025-06-01 to 2026-01-01")
    then = run_agora("recall", "ann", "--as-of", "2025-12-31T12:00:00Z").stdout
    assert "- city: Rome" in then
    assert "Milan" not in then
    whole = run_agora("get", old).stdout
    assert "superseded, from 2025-06-01T00:00:00Z until 2026-01-01T00:00:00Z" in whole
    assert '"Milan"' in whole
    assert "facts       1 of 1 subjects" in run_agora("status").stdout
    assert run_agora("forget", old, "--yes").returncode == 0
    gone = run_agora("recall", "ann", "--history").stdout
    assert "Rome" not in gone
    assert "city of ann, taken back" in gone
    assert run_agora("recall", "nobody").stdout == "nothing is known\n"


def test_facts_go_through_the_commands_as_json(run_agora: RunAgora) -> None:
    value = {"hosts": ["a", "b"], "port": 5432, "tls": True}
    done = said(run_agora("remember", "database", json.dumps(value), "--json-value", "--multi", "--json"))
    assert (done["status"], done["subject"], done["value"]) == ("stored", "user", value)
    beside = said(run_agora("remember", "database", "5", "--json", "--expires-in", "3600", "-n", "acme/shop"))
    assert (beside["namespace"], beside["value"]) == ("acme/shop", "5")
    found = said(run_agora("recall", "--json"))
    assert [(each["value"], each["multi"]) for each in found["facts"]] == [(value, True)]
    assert [each["value"] for each in said(run_agora("recall", "-n", "acme/shop", "--json"))["facts"]] == ["5"]
    gone = run_agora("remember", "database", "5", "--to", "now", "-n", "acme/shop")
    assert gone.stdout.startswith("corroborated ")
    assert said(run_agora("recall", "-n", "acme/shop", "--json"))["facts"] == []


def test_mistakes_end_with_a_reason_and_write_nothing(run_agora: RunAgora) -> None:
    for arguments, reason in (
        (["remember", "k", "{", "--json-value"], "must be JSON"),
        (["remember", "k", "null", "--json-value"], "may not be null"),
        (["remember", "k", "NaN", "--json-value"], "must be a finite number"),
        (["remember", " ", "v"], "must not be blank"),
        (["remember", "k", "v", "--to", "yesterday"], "is needed"),
        (["recall", "--as-of", "soon"], "must be an ISO 8601"),
    ):
        done = run_agora(*arguments)
        assert done.returncode == 2, arguments
        assert reason in done.stderr
    assert run_agora("recall", "--history").stdout == "nothing is known\n"
