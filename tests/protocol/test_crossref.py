"""`agora_crossref` over a connection: its arguments, its form, who counts as a reader, and the command of that name."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from agora.model.deadline import Deadline

if TYPE_CHECKING:
    from tests.protocol.bench import Bench

SOURCE = Path(__file__).parents[2] / "src"
NOTE = "The checkout in src/pay.py fails: the payment gateway closes idle connections after 30 seconds of silence."
UNKNOWN = "n_01J00000000000000000000000"


@pytest.mark.anyio
async def test_the_answer_has_every_field_however_little_there_is(bench: Bench, mode: str) -> None:
    async with bench.client(mode=mode) as client:
        nothing = await bench.ok(client, "agora_crossref", query="gateway")
        saved = await bench.ok(client, "agora_save", content=NOTE)
        one = await bench.ok(client, "agora_crossref", query="gateway checkout")
        by_id = await bench.ok(client, "agora_crossref", id=saved["id"])
        assert nothing.keys() == one.keys() == by_id.keys()
        for found in (one, by_id):
            (position,) = found["positions"]
            (stated,) = position["notes"]
            assert (position["agent"], stated["id"], stated["content"]) == ("tester", saved["id"], NOTE)
            assert {"score", "client", "session", "origin", "saved_at", "cut"} <= stated.keys()
        assert nothing["changed_by_others"] == {"last_read": None, "count": 0, "changes": []}
        assert by_id["changed_by_others"]["last_read"] is not None


@pytest.mark.anyio
@pytest.mark.parametrize(
    ("given", "param"),
    [
        ({}, "query"),
        ({"query": "x", "id": UNKNOWN}, "query"),
        ({"query": " "}, "query"),
        ({"query": "x" * 10_001}, "query"),
        ({"id": "n_1"}, "id"),
        ({"query": "x", "agents": ["a"] * 33}, "agents"),
        ({"query": "x", "since": "soon"}, "since"),
        ({"query": "x", "agent": "ann"}, "agent"),
    ],
)
async def test_wrong_arguments_are_named(bench: Bench, given: dict[str, Any], param: str) -> None:
    async with bench.client() as client:
        assert (await bench.refused(client, "agora_crossref", **given))["param"] == param


@pytest.mark.anyio
async def test_an_id_that_is_not_visible_is_not_found(bench: Bench) -> None:
    async with bench.client("acme/other") as other, bench.client() as client:
        secret = (await bench.ok(other, "agora_save", content=NOTE))["id"]
        for unknown in (secret, UNKNOWN):
            assert (await bench.refused(client, "agora_crossref", id=unknown))["code"] == "note_not_found"
        found = await bench.ok(client, "agora_crossref", query=NOTE)
        assert secret not in json.dumps(found)
        named = await bench.ok(client, "agora_crossref", query=NOTE, namespace="acme/other")
        assert named["positions"][0]["notes"][0]["id"] == secret


@pytest.mark.anyio
async def test_two_agents_that_differ_are_both_named(bench: Bench) -> None:
    async with bench.client(name="codex") as one, bench.client(name="cursor") as other:
        await bench.ok(one, "agora_save", content="src/pay.py listens on port 1")
        await bench.ok(other, "agora_save", content="The port of src/pay.py is 2")
        (verdict,) = (await bench.ok(one, "agora_crossref", query="port src/pay.py"))["verdicts"]
        assert (verdict["kind"], verdict["value"], verdict["verdict"]) == ("path", "src/pay.py", "differ")
        assert {(value["value"], *value["agents"]) for value in verdict["values"]} == {("1", "codex"), ("2", "cursor")}


@pytest.mark.anyio
@pytest.mark.parametrize("claims", [{}, {"agent": "reviewer"}, {"agent": "reviewer", "session": "of my own"}])
async def test_a_reader_is_an_echo_under_whatever_name_it_saves(bench: Bench, claims: dict[str, str]) -> None:
    async with bench.client(name="codex") as one, bench.client(name="cursor") as other:
        source = (await bench.ok(one, "agora_save", content=NOTE))["id"]
        assert (await bench.ok(other, "agora_query", query=NOTE))["results"][0]["id"] == source
        echo = (await bench.ok(other, "agora_save", content="Found: " + NOTE, **claims))["id"]
        found = await bench.ok(one, "agora_crossref", query=NOTE)
        marks = {note["id"]: note.get("echo_of") for each in found["positions"] for note in each["notes"]}
        assert marks == {source: None, echo: source}
        assert [anchor["independent"] for anchor in found["anchors"]] == [1]


@pytest.mark.anyio
async def test_a_connection_that_has_not_read_it_is_a_source(bench: Bench) -> None:
    async with bench.client(name="codex") as one, bench.client(name="cursor") as other:
        await bench.ok(one, "agora_save", content=NOTE)
        await bench.ok(other, "agora_save", content="Found: " + NOTE)
        found = await bench.ok(one, "agora_crossref", query=NOTE)
        assert [(each["independent"], each["agents"]) for each in found["anchors"]] == [(2, ["codex", "cursor"])]
        assert not any("echo_of" in note for each in found["positions"] for note in each["notes"])


@pytest.mark.anyio
async def test_what_a_connection_saved_under_another_name_is_no_change_by_others(bench: Bench) -> None:
    async with bench.client(name="codex") as one, bench.client(name="cursor") as other:
        await bench.ok(one, "agora_save", content="mine", agent="reviewer")
        theirs = (await bench.ok(other, "agora_save", content="theirs"))["id"]
        changed = (await bench.ok(one, "agora_crossref", query="mine"))["changed_by_others"]
        assert [(change["id"], change["agent"]) for change in changed["changes"]] == [(theirs, "cursor")]


def test_a_query_has_the_same_key_in_the_cache_whoever_read_before(bench: Bench) -> None:
    bench.tools.call("agora_save", {"content": NOTE}, bench.connection(), client="codex", deadline=Deadline(20))
    states = []
    for _ in range(2):
        with bench.store.read(Deadline(20)) as reading:
            states.append(reading.state(("acme/shop", "shared")))
        bench.tools.call("agora_query", {"query": NOTE}, bench.connection(), client="codex", deadline=Deadline(20))
        bench.tools.call("agora_crossref", {"query": NOTE}, bench.connection(), client="codex", deadline=Deadline(20))
        bench.store.settle_reads(Deadline(20))
    assert states[0] == states[1]


def test_the_command_answers_in_words_and_as_json(tmp_path: Path) -> None:
    environment = os.environ | {
        "PYTHONPATH": str(SOURCE),
        "AGORA_HOME": str(tmp_path / "home"),
        "AGORA_NAMESPACE_DEFAULT": "acme/shop",
    }

    def run(*arguments: str) -> subprocess.CompletedProcess[str]:
        command = [sys.executable, "-m", "agora", *arguments]
        return subprocess.run(
            command, env=environment, check=False, capture_output=True, encoding="utf-8", stdin=subprocess.DEVNULL
        )

    for agent, text in (("ann", "src/pay.py listens on port 1"), ("bob", "The port of src/pay.py is 2")):
        assert run("save", text, "--agent", agent).returncode == 0
    found = json.loads(run("crossref", "which port does src/pay.py use", "--json").stdout)
    assert {position["agent"] for position in found["positions"]} == {"ann", "bob"}
    assert [verdict["verdict"] for verdict in found["verdicts"]] == ["differ"]
    words = run("crossref", "--id", found["positions"][0]["notes"][0]["id"]).stdout
    assert "differ: path src/pay.py (2 independent)" in words
    assert "port: 1 — ann" in words
    assert "changed by others since" in words
