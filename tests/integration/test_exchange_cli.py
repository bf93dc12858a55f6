"""`agora export` and `agora import`: the real program, the real model, real files and pipes."""

from __future__ import annotations

import gzip
import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from tests.integration.processes import AGORA, RunAgora, environment, run_command

TRANSCRIPT = (
    '{"type":"user","sessionId":"s1","timestamp":"2026-01-05T10:00:00Z","uuid":"u1",'
    '"message":{"role":"user","content":"Why does the ferry sink?"}}\n'
    '{"type":"assistant","sessionId":"s1","timestamp":"2026-01-05T10:00:09Z","uuid":"u2",'
    '"message":{"role":"assistant","content":[{"type":"text","text":"It has a hole."},{"type":"tool_use"}]}}\n'
    "oops\n"
)


def said(done: subprocess.CompletedProcess[str], status: int = 0) -> Any:
    """The one JSON document on stdout."""
    assert done.returncode == status, done.stderr
    return json.loads(done.stdout)


def versions(text: str | bytes) -> list[str]:
    """The lines of an export between header and end."""
    return (text if isinstance(text, str) else text.decode()).splitlines()[1:-1]


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A data folder with two namespaces, a history, two savers and something forgotten."""
    home = tmp_path_factory.mktemp("made") / "home"

    def run(*arguments: str) -> str:
        return run_command(arguments, home, home.parent, b"", None).stdout

    run("save", "use port 8080", "--key", "port", "-n", "acme/shop")
    run("save", "use port 9090", "--key", "port", "-n", "acme/shop", "--agent", "second")
    wrong = json.loads(run("save", "a mistake", "-n", "other", "--json"))["id"]
    run("forget", wrong, "-n", "other", "--yes")
    return home


@pytest.fixture
def filled(run_agora: RunAgora, made: Path, home: Path) -> RunAgora:
    """Runs commands on a copy of that folder."""
    shutil.copytree(made, home)
    return run_agora


def test_a_store_goes_through_a_pipe_into_another_one_byte_for_byte(filled: RunAgora, tmp_path: Path) -> None:
    first = filled("export", "-")
    assert first.returncode == 0
    assert first.stderr == "exported 3 versions from 2 namespaces to -\n"
    elsewhere = {"AGORA_HOME": str(tmp_path / "elsewhere")}
    taken = filled("import", "-", stdin=first.stdout.encode(), env=elsewhere)
    assert (taken.returncode, taken.stderr) == (0, "")
    assert taken.stdout == "standard input (agora): 3 created came\n"
    second = filled("export", "-", env=elsewhere)
    assert versions(second.stdout) == versions(first.stdout)
    found = said(filled("query", "which port", "-n", "acme/shop", "--json", env=elsewhere))["results"]
    assert [hit["content"] for hit in found] == ["use port 9090"]
    assert found[0]["agent"] == "second"


def test_options_say_what_an_export_holds(filled: RunAgora, project: Path) -> None:
    done = said(filled("export", "all.jsonl.gz", "--json"))
    assert (done["file"], done["versions"], done["namespaces"]) == ("all.jsonl.gz", 3, ["acme/shop", "other"])
    assert len(versions(gzip.decompress((project / "all.jsonl.gz").read_bytes()))) == 3
    assert said(filled("export", "live.jsonl", "--live-only", "--json"))["versions"] == 1
    some = filled("export", "some.jsonl", "-n", "Acme/Shop", "-n", "other", "--since", "1h", "--vectors", "--json")
    assert said(some)["versions"] == 3
    assert all('"passages"' in line for line in versions((project / "some.jsonl").read_bytes()))
    assert said(filled("export", "old.jsonl", "-n", "other", "--since", "2099-01-01", "--json"))["versions"] == 0


def test_a_wrong_option_of_an_export_is_said_and_leaves_no_file(filled: RunAgora, project: Path) -> None:
    unknown = filled("export", "x.jsonl", "-n", "nowhere")
    assert unknown.returncode == 1
    assert "no namespace 'nowhere'" in unknown.stderr
    assert "It has: acme/shop, other." in unknown.stderr
    assert filled("export", "x.jsonl", "--since", "someday").returncode == 2
    assert list(project.iterdir()) == []
    (project / "x.jsonl").write_text("mine")
    kept = filled("export", "x.jsonl", "--json")
    assert said(kept, 2)["error"]["hint"] == "Add --force to replace it."
    assert (project / "x.jsonl").read_text() == "mine"
    assert filled("export", "x.jsonl", "--force").returncode == 0


def test_a_transcript_comes_in_after_a_dry_run_that_says_so(run_agora: RunAgora, project: Path) -> None:
    (project / "talk.jsonl").write_text(TRANSCRIPT, encoding="utf-8")
    dry = run_agora("import", "talk.jsonl", "--dry-run")
    assert dry.returncode == 1
    assert dry.stdout.splitlines() == [
        "talk.jsonl (claude-code): 2 created, 1 broken would come",
        "  left out: 1 tool calls and results",
        "  created [message] user 2026-01-05 Why does the ferry sink?",
        "  created [message] claude-code 2026-01-05 It has a hole.",
        "  broken line 3: is not JSON: Expecting value at character 0",
    ]
    assert said(run_agora("query", "ferry", "--json"))["results"] == []
    done = said(run_agora("import", "talk.jsonl", "--json"), 1)
    [report] = done["files"]
    nothing = dict.fromkeys(("updated", "history", "contested", "duplicate", "conflict"), 0)
    assert report["counts"] == {"created": 2, **nothing, "broken": 1}
    assert report["broken"][0]["place"] == "line 3"
    [hit, *_] = said(run_agora("query", "why did the boat go down", "--json"))["results"]
    assert hit["origin"] == "agent"
    assert hit["session"] == "s1"
    again = said(run_agora("import", "talk.jsonl", "--json"), 1)["files"][0]
    assert again["counts"]["duplicate"] == 2
    assert said(run_agora("status", "--json"))["notes"]["rows"] == 2


def test_several_files_come_in_one_after_the_other(run_agora: RunAgora, project: Path) -> None:
    (project / "CLAUDE.md").write_text("# Build\n\nRun make.\n", encoding="utf-8")
    (project / "notes.json").write_text('[{"id":"1","memory":"Prefers tabs"}]', encoding="utf-8")
    done = said(run_agora("import", "CLAUDE.md", "notes.json", "-n", "acme/shop", "--origin", "web", "--json"))
    assert [(each["file"], each["format"]) for each in done["files"]] == [
        ("CLAUDE.md", "rules"),
        ("notes.json", "mem0"),
    ]
    hits = said(run_agora("query", "tabs make", "-n", "acme/shop", "--json"))["results"]
    assert {hit["origin"] for hit in hits} == {"web"}
    assert len(hits) == 2


def test_a_file_that_cannot_be_imported_is_said_so(run_agora: RunAgora, project: Path) -> None:
    (project / "x.bin").write_bytes(b"\x00\x01")
    unknown = run_agora("import", "x.bin")
    assert unknown.returncode == 2
    assert "is in no format that can be imported" in unknown.stderr
    assert "mcp-memory" in unknown.stderr
    assert "did you mean 'chatgpt'" in run_agora("import", "x.bin", "--format", "chatgtp").stderr
    assert run_agora("import", "nothing.jsonl").returncode == 2
    assert "cannot be read" in run_agora("import", ".").stderr
    assert run_agora("import", "x.bin", "--origin", "user").returncode == 2


def test_a_cut_export_is_said_and_ends_with_1(filled: RunAgora, project: Path) -> None:
    filled("export", "x.jsonl")
    whole = (project / "x.jsonl").read_bytes().splitlines(keepends=True)
    (project / "x.jsonl").write_bytes(b"".join(whole[:2]))
    done = filled("import", "x.jsonl")
    assert done.returncode == 1
    assert "the last line is missing: the file was cut" in done.stdout


def test_an_import_that_is_no_terminal_takes_no_authority_from_a_file(filled: RunAgora, project: Path) -> None:
    filled("export", "x.jsonl")
    text = (project / "x.jsonl").read_text(encoding="utf-8").replace('"origin":"agent"', '"origin":"user"')
    (project / "x.jsonl").write_text(text, encoding="utf-8", newline="\n")
    done = filled("import", "x.jsonl", env={"AGORA_HOME": str(project / "elsewhere")})
    assert "3 savers of higher origin than yours" in done.stdout
    assert '"origin":"user"' not in filled("export", "-", env={"AGORA_HOME": str(project / "elsewhere")}).stdout


def test_nothing_in_a_file_can_drive_the_terminal(run_agora: RunAgora, project: Path) -> None:
    line = {"type": "entity", "name": "A\x1b[31m", "entityType": "x\u202e", "observations": ["b\x9b2J"]}
    (project / "m.jsonl").write_text(json.dumps(line) + "\n\x1b[5m\n", encoding="utf-8")
    done = run_agora("import", "m.jsonl", "--dry-run")
    assert "\x1b" not in done.stdout
    assert "\x9b" not in done.stdout
    assert "A\\u001b[31m" in done.stdout


@pytest.mark.skipif(sys.platform == "win32", reason="Windows has no pseudo-terminals")
def test_a_bar_shows_on_a_terminal_alone(filled: RunAgora, home: Path, project: Path) -> None:
    import pty  # noqa: PLC0415 - Windows has none

    quiet = filled("export", "a.jsonl")
    assert quiet.stderr == ""
    master, terminal = pty.openpty()
    try:
        done = subprocess.run(
            [*AGORA, "export", "b.jsonl"],
            cwd=project,
            env=environment(home, {"TERM": "xterm", "COLUMNS": "80"}),
            stdout=subprocess.PIPE,
            stderr=terminal,
            check=False,
            timeout=60,
        )
        shown = os.read(master, 65_536)
    finally:
        os.close(terminal)
        os.close(master)
    assert done.returncode == 0
    assert done.stdout == b"exported 3 versions from 2 namespaces to b.jsonl\n"
    assert b"exporting" in shown
