"""`agora purge` with the real program and the packaged model, beside servers that run on the same folder."""

from __future__ import annotations

import contextlib
import json
import os
import sqlite3
import subprocess
import sys
import threading
import time
import unicodedata
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from tests.integration.processes import AGORA, PATIENCE, RunAgora, Serve, Served, environment
from tests.sentinels import files_below, looked_for

from agora.app.agora import opened
from agora.config.load import load_settings
from agora.model.deadline import Deadline
from agora.model.purge import Unwanted

SCOPE = "acme/shop"
TEXT = "The ZEPHYRINE gateway drops Wolframite packets when the xylographic queue is full"
NFD = unicodedata.normalize("NFD", "Der Schlüßel heißt größer, sagt Queröl")
WORDS = {
    "text": b"ZEPHYRINE",
    "word of the text": b"Wolframite",
    "term": b"olframit",
    "NFD": unicodedata.normalize("NFD", "Queröl").encode(),
    "tag": b"ytagged",
    "key": b"ukeyed",
    "title": b"Jtitled",
    "metadata": b"vfield",
    "value": b"mvalue",
    "reason": b"oreasoned",
}


def said(done: Any) -> Any:
    """The one JSON document on stdout of a command that worked."""
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def wait_for(folder: Path, needles: Mapping[str, bytes], file: str) -> None:
    """Until `file` holds one of `needles`: a cache is written behind the answers."""
    ends = time.monotonic() + PATIENCE
    while not any(file in files for files in looked_for(folder, needles).values()):
        assert time.monotonic() < ends, f"nothing came to {file}"
        threading.Event().wait(0.05)


def vectors_of(home: Path, ids: list[str]) -> dict[str, bytes]:
    with contextlib.closing(sqlite3.connect(home / "agora.db")) as connection:
        found = connection.execute(
            "SELECT substr(v.vector, 1, 32) FROM vectors v JOIN passages p ON p.id = v.passage_id"
            " JOIN items i ON i.id = p.item_id"
            " WHERE i.public_id IN (?, ?)",
            ids,
        ).fetchall()
    return {f"vector {number}": bytes(row[0]) for number, row in enumerate(found)}


def fill(server: Served, other: Served) -> list[str]:
    """Ids of a note of two versions with everything that a note can have, saved, read and asked for by two servers."""
    first = server.call("agora_save", content=NFD, key="ukeyed", tags=["ytagged"], namespace=SCOPE)
    second = server.call(
        "agora_save", content=TEXT, key="ukeyed", title="Jtitled", metadata={"vfield": "mvalue"}, namespace=SCOPE
    )
    other.call("agora_save", content=TEXT, key="ukeyed", tags=["ytagged"], agent="bob", namespace=SCOPE)
    for number in range(30):
        server.call("agora_save", content=f"Note {number} about invoices, stamps and printers", namespace=SCOPE)
    for each in (server, other):
        for question in ("why does the gateway drop packets?", TEXT):
            results = each.call("agora_query", query=question, namespace=SCOPE)["results"]
            assert second["id"] in {hit["id"] for hit in results}
        each.call("agora_get", ids=[second["id"]])
        each.call("agora_crossref", id=second["id"], namespace=SCOPE)
    return [first["id"], second["id"]]


def test_no_byte_is_left_in_the_data_folder_while_two_servers_run_on_it(
    serve: Serve, run_agora: RunAgora, home: Path, tmp_path: Path
) -> None:
    debug = {"AGORA_LOG_LEVEL": "debug"}
    server = serve("--namespace", SCOPE, env=debug)
    other = serve("--namespace", SCOPE, name="second", env=debug)
    ids = fill(server, other)
    needles = WORDS | vectors_of(home, ids)
    wait_for(home, {"text": WORDS["text"]}, "cache.db-wal")
    assert said(run_agora("forget", *ids[1:], "-n", SCOPE, "--yes", "--reason", "oreasoned", "--json"))["count"] == 1
    found = looked_for(home, needles)
    assert found.keys() == needles.keys()
    assert not [name for name, files in found.items() if not {"agora.db", "agora.db-wal"} & set(files)]
    assert any(file.startswith("cache.db") for file in found["text"])

    done = said(run_agora("purge", "-n", SCOPE, "--yes", "--json"))
    assert (done["notes"], done["versions"], done["unfinished"]) == (1, 2, False)
    assert [each for each in done["places"] if not each["clean"]] == []
    assert done["samples"] > 0
    assert looked_for(home, needles) == {}
    assert "export" in done["not_reached"]
    assert "backup" in done["not_reached"]

    for each in (server, other):
        assert each.call("agora_get", ids=ids)["purged"] == ids
        answer = each.call("agora_query", query="why does the gateway drop packets?", namespace=SCOPE)
        assert len(answer["results"]) == 5
        assert not {hit["id"] for hit in answer["results"]} & set(ids)
        status = each.call("agora_status")
        assert (status["health"], status["notes"]["purged"], status["notes"]["live"]) == ("ok", 2, 30)
    assert server.call("agora_save", content="The queue was made larger")["status"] == "created"
    assert server.end_input()[0] == 0
    assert other.end_input()[0] == 0
    assert looked_for(home, needles) == {}
    assert run_agora("doctor").returncode == 0
    logs = [name for name in files_below(home) if name.startswith("logs/")]
    assert len(logs) >= 2
    assert looked_for(home, {"saved": b"note saved", "level": b'"level": "debug"'}).keys() == {"saved", "level"}
    assert looked_for(tmp_path, WORDS) == {}


def test_a_note_goes_through_purge_in_words(run_agora: RunAgora) -> None:
    old = said(run_agora("save", "use port 8080", "--key", "port", "--json"))["id"]
    new = said(run_agora("save", "use port 9090", "--key", "port", "--json"))["id"]
    refused = run_agora("purge", new, "--yes")
    assert refused.returncode == 1
    assert f"agora forget {new}" in refused.stderr
    assert run_agora("purge", "--yes").stdout.startswith("nothing to purge in project-")
    run_agora("forget", new, "--yes")
    looked = run_agora("purge", "--dry-run")
    assert looked.returncode == 0
    assert looked.stdout.splitlines()[0] == "to purge: 1 note (2 versions)"
    assert f"  {new} agora-cli (agent), forgotten" in looked.stdout
    assert "dry run" in looked.stderr
    nobody = run_agora("purge")
    assert nobody.returncode == 2
    assert "--yes" in nobody.stderr
    assert run_agora("restore", new).stdout == f"restored: {new}\n"
    run_agora("forget", new, "--yes")
    done = run_agora("purge", new, "--yes")
    assert done.returncode == 0, done.stderr
    lines = done.stdout.splitlines()
    assert lines[2].startswith("purged 1 note (2 versions); ")
    assert lines[3].startswith("clean: rows, texts, ")
    assert lines[3].endswith("write-ahead log, unused index, vector index, cache, logs")
    assert lines[4].startswith("not reached: ")
    assert f"purged: {old}, {new}" in run_agora("get", old, new).stdout
    assert f"purged: {new}" in run_agora("restore", new).stdout
    assert run_agora("purge", new, "--yes").stdout.startswith(f"purged before: {new}\nnothing to purge")
    assert "2 purged" in run_agora("status").stdout
    assert run_agora("doctor").returncode == 0


def test_only_the_named_scopes_are_purged(run_agora: RunAgora) -> None:
    ids = {}
    for scope in ("acme/one", "acme/two", "acme/three"):
        ids[scope] = said(run_agora("save", f"text of {scope}", "-n", scope, "--json"))["id"]
        run_agora("forget", ids[scope], "-n", scope, "--yes")
    assert said(run_agora("purge", "--dry-run", "--json"))["notes"] == 0
    unknown = run_agora("purge", "-n", "acme/none", "--yes")
    assert unknown.returncode == 1
    assert "acme/one" in unknown.stderr
    elsewhere = run_agora("purge", ids["acme/one"], "--yes")
    assert elsewhere.returncode == 1
    assert "-n" in elsewhere.stderr
    both = run_agora("purge", "-n", "acme/one", "--all-namespaces", "--yes")
    assert both.returncode == 2
    two = said(run_agora("purge", "-n", "acme/one", "-n", "acme/two", "--dry-run", "--json"))
    assert [each["id"] for each in two["listed"]] == [ids["acme/one"], ids["acme/two"]]
    late = said(run_agora("purge", "-n", "acme/one", "--before", "1d", "--dry-run", "--json"))
    assert late["notes"] == 0
    assert said(run_agora("purge", "--all-namespaces", "--yes", "--json"))["notes"] == 3


def test_with_json_nobody_is_asked(run_agora: RunAgora) -> None:
    note = said(run_agora("save", "text", "--json"))["id"]
    run_agora("forget", note, "--yes")
    refused = run_agora("purge", "--json")
    assert refused.returncode == 2
    assert json.loads(refused.stdout)["error"]["param"] == "yes"
    looked = said(run_agora("purge", "--json", "--dry-run"))
    assert (looked["dry_run"], looked["versions"], looked["unfinished"], "places" in looked) == (True, 1, False, False)
    assert (looked["listed"][0]["state"], looked["listed"][0]["origin"]) == ("forgotten", "agent")
    assert " (agent), forgotten" in run_agora("purge", "--dry-run").stdout
    assert said(run_agora("get", note, "--json"))["forgotten"] == [note]
    nothing = said(run_agora("purge", "--json", "--yes", "--before", "1d"))
    assert (nothing["dry_run"], nothing["notes"], "places" in nothing) == (False, 0, False)


@pytest.mark.slow
def test_a_reader_that_stays_makes_the_command_fail_and_the_next_one_finishes(
    serve: Serve, run_agora: RunAgora, home: Path
) -> None:
    server = serve("--namespace", SCOPE)
    note = server.call("agora_save", content=TEXT)["id"]
    server.call("agora_forget", ids=[note], dry_run=False)
    with contextlib.closing(sqlite3.connect(home / "agora.db", isolation_level=None)) as reader:
        reader.execute("BEGIN")
        reader.execute("SELECT count(*) FROM items").fetchone()
        began = time.monotonic()
        done = run_agora("purge", "-n", SCOPE, "--yes")
        assert time.monotonic() - began < 50
        assert done.returncode == 1
        assert "NOT CLEAN: database file" in done.stdout
        assert "NOT CLEAN: write-ahead log" in done.stdout
        assert "run `agora purge` again" in done.stdout.casefold()
        status = server.call("agora_status")
        assert [problem["code"] for problem in status["problems"]] == ["purge_unfinished"]
        # Others are not held up.
        assert server.call("agora_save", content="in between")["status"] == "created"
        reader.execute("ROLLBACK")
    assert "earlier purge" in run_agora("purge", "--dry-run").stdout
    finished = run_agora("purge", "--yes")
    assert finished.returncode == 0, finished.stdout
    assert server.call("agora_status")["problems"] == []
    assert looked_for(home, {"text": WORDS["text"]}) == {}


@pytest.mark.skipif(sys.platform == "win32", reason="a terminal of Unix")
def test_on_a_terminal_the_person_is_asked(run_agora: RunAgora, home: Path, project: Path) -> None:
    note = said(run_agora("save", "use port 8080", "--json"))["id"]
    run_agora("forget", note, "--yes")
    status, text = at_a_terminal(home, project, b"n\n", "purge")
    assert status == 1
    assert "Purge? This cannot be undone. [y/N]" in text
    assert "nothing was purged" in text
    assert run_agora("restore", note).stdout == f"restored: {note}\n"
    run_agora("forget", note, "--yes")
    status, text = at_a_terminal(home, project, b"y\n", "purge")
    assert status == 0
    assert "purged 1 note (1 version)" in text
    assert f"purged: {note}" in run_agora("get", note).stdout


def at_a_terminal(home: Path, project: Path, typed: bytes, *arguments: str) -> tuple[int, str]:
    """Exit status and output of a command whose three streams are a terminal, at which `typed` is typed."""
    import pty  # noqa: PLC0415 - Unix has it

    ours, theirs = pty.openpty()
    process = subprocess.Popen(
        [*AGORA, *arguments], stdin=theirs, stdout=theirs, stderr=theirs, env=environment(home), cwd=project
    )
    os.close(theirs)
    os.write(ours, typed)
    shown = b""
    # Once nobody has the other end any more, reading fails on Linux and gives nothing elsewhere.
    with contextlib.suppress(OSError):
        while piece := os.read(ours, 4096):
            shown += piece
    os.close(ours)
    return process.wait(PATIENCE), shown.decode("utf-8", "replace")


def test_a_server_finishes_what_a_killed_purge_left(run_agora: RunAgora, home: Path) -> None:
    note = said(run_agora("save", TEXT, "-n", SCOPE, "--json"))["id"]
    run_agora("forget", note, "-n", SCOPE, "--yes")
    with opened(load_settings({"home": str(home)})) as agora:
        agora.start_maintenance()
        status = agora.tools.call("agora_status", {}, agora.connection(), client="t", deadline=soon())
        assert "purge" in status["maintenance"]
        assert agora._finish_purge() is None
        store = agora.store.purging()
        doomed = store.condemn(Unwanted((SCOPE,)), agora.clock.now(), soon())
        store.erase(doomed, agora.connection().caller("t"), agora.clock.now(), soon())
        assert looked_for(home, {"text": WORDS["text"]}) != {}
        # Whoever purges gets as long as lies between two looks.
        assert agora._finish_purge() is None
        assert agora._finish_purge() == {"unclean": []}
        assert looked_for(home, {"text": WORDS["text"]}) == {}
        assert agora._finish_purge() is None


def test_the_folder_of_an_index_that_is_not_in_use_goes_too(run_agora: RunAgora, home: Path) -> None:
    note = said(run_agora("save", TEXT, "-n", SCOPE, "--json"))["id"]
    run_agora("compact")
    # As after a change from Chroma: what it was built from is in its files still.
    left = home / "chroma" / "deeper"
    left.mkdir(parents=True)
    (left / "data.bin").write_bytes(TEXT.encode())
    run_agora("forget", note, "-n", SCOPE, "--yes")
    done = said(run_agora("purge", "--yes", "-n", SCOPE, "--json"))
    assert done["notes"] == 1
    assert not (home / "chroma").exists()
    assert looked_for(home, {"text": WORDS["text"]}) == {}
    assert run_agora("doctor").returncode == 0


def soon() -> Deadline:
    return Deadline(PATIENCE)
