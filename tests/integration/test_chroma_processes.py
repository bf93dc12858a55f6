"""Chroma with several processes, some of which die: the real program, or a store in a process of its own."""

from __future__ import annotations

import contextlib
import json
import os
import sqlite3
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.integration.chroma_process import PATIENCE, Process, starting
from tests.integration.processes import environment, run_command, serving

from agora.stores.sqlite.checks import find_problems

pytest.importorskip("chromadb")

CHROMA = {"AGORA_INDEX_URL": "chroma://"}


Start = Callable[[str], Process]


@pytest.fixture
def start(tmp_path: Path) -> Iterator[Start]:
    with starting(tmp_path) as one:
        yield one


def agrees(process: Process, text: str = "note") -> list[str]:
    """Ids of everything, which both indexes find."""
    found = process.ask("everything", text)
    assert found["semantic"] == found["lexical"]
    ids: list[str] = found["semantic"]
    return ids


def test_a_second_process_is_told_who_has_the_index_and_can_save_and_search_words(start: Start) -> None:
    holder, other = start("holder"), start("other")
    first = holder.ask("save", "a note of the holder")
    assert agrees(holder) == [first]
    error = other.ask("refused", "a note")
    assert error["code"] == "index_unavailable"
    assert error["retryable"] is True
    assert f"process {holder.process.pid} " in error["message"]
    assert "lexical" in error["hint"]
    assert "shared server" in error["hint"]
    assert error["seconds"] < 10
    # Whoever waited in vain does not wait at every call.
    assert other.ask("refused", "a note")["seconds"] < 1
    second = other.ask("save", "a note of the other")
    assert set(other.ask("query", "note", "lexical")) == {first, second}
    assert set(agrees(holder)) == {first, second}
    assert str(holder.process.pid) in other.ask("details")["problem"]
    holder.ask("close")
    assert set(agrees(other)) == {first, second}
    assert other.ask("details")["problem"] is None


def test_a_process_that_ends_soon_is_waited_for(start: Start) -> None:
    holder, other = start("holder"), start("other")
    public_id = holder.ask("save", "a note")
    assert agrees(holder) == [public_id]
    other.tell("query", "a note", "semantic")
    holder.ask("close")
    assert other.answer() == [public_id]


def test_a_process_that_is_killed_leaves_its_index_to_the_next_as_it_was(start: Start) -> None:
    holder, other = start("holder"), start("other")
    holder.ask("save_quickly", "one", 20)
    ids = agrees(holder)
    holder.kill()
    assert agrees(other) == ids
    assert "rebuilt" not in other.ask("details")


@pytest.mark.parametrize("moment", ["build", "apply"])
def test_a_kill_while_changes_are_applied_loses_nothing(start: Start, tmp_path: Path, moment: str) -> None:
    victim, writer = start("victim"), start("writer")
    writer.ask("save_quickly", "first", 800)
    if moment == "apply":
        agrees(victim)
        writer.ask("save_quickly", "second", 400)
    begun = int(writer.ask("sequence"))
    victim.tell("everything", "note")

    def halfway(mark: dict[str, Any]) -> bool:
        at_work = mark["state"] == "writing" and mark["collection"] != ""
        return at_work and (mark["sequence"] < begun if moment == "apply" else bool(mark["after"]))

    mark = victim.kill_when(halfway)
    assert mark["sequence"] <= begun
    heir = start("heir")
    heir.ask("save", "one note more")
    assert len(agrees(heir)) == begun + 1
    with contextlib.closing(sqlite3.connect(tmp_path / "agora.db", isolation_level=None)) as connection:
        connection.execute("BEGIN")
        assert find_problems(connection) == []


def test_kills_at_any_moment_lose_no_acknowledged_note(start: Start) -> None:
    acknowledged: set[str] = set()
    for number, lines in enumerate((4, 17)):
        victim = start(f"victim {number}")
        victim.tell("follow_without_end")
        acknowledged |= {victim.line() for _ in range(lines)}
        victim.kill()
        acknowledged |= {line.decode() for line in victim.process.stdout or () if line.endswith(b"\n")}
        heir = start(f"heir {number}")
        assert acknowledged <= set(agrees(heir))
        heir.ask("close")


@pytest.mark.skipif(os.name == "nt", reason="Windows cannot limit the size of files")
def test_a_full_disk_is_named_and_the_index_is_whole_when_there_is_room_again(start: Start) -> None:
    process = start("agent")
    process.ask("save_quickly", "first", 1_200)
    process.ask("limit_files", 300_000)
    error = process.ask("refused", "a note")
    assert error["code"] == "index_unavailable"
    assert "disk" in error["message"] + error["hint"]
    # Not tried again at every call.
    assert process.ask("refused", "a note")["seconds"] < 1
    assert process.ask("query", "note 7", "lexical")
    process.ask("limit_files", None)
    assert process.ask("reindex")["passages"] == 1_200
    assert len(agrees(process)) == 1_200


def test_four_processes_that_save_and_search_at_once_all_live(start: Start) -> None:
    processes = [start(f"agent {number}") for number in range(4)]
    for number, process in enumerate(processes):
        process.tell("mixed", 3.0, number)
    done = [process.answer() for process in processes]
    assert all(process.process.poll() is None for process in processes)
    saved = [public_id for each in done for public_id in each["saved"]]
    assert all(each["saved"] for each in done)
    assert sum(each["answered"] > 0 for each in done) == 1, "Chroma was open in one process"
    assert all(each["missing"] == 0 for each in done)
    (holder,) = [process for process, each in zip(processes, done, strict=True) if each["answered"]]
    assert set(agrees(holder, "text in common")) == set(saved)


@pytest.fixture
def project(tmp_path: Path) -> Path:
    (tmp_path / "project").mkdir()
    return tmp_path / "project"


def test_the_whole_way_on_the_command_line(tmp_path: Path, project: Path) -> None:
    home = tmp_path / "home"

    def agora(*arguments: str, env: dict[str, str] | None = None) -> Any:
        done = run_command([*arguments, "--json"], home, project, env=CHROMA if env is None else env)
        assert done.returncode == 0, done.stderr
        # A command says where it searched, and nothing of Chroma.
        assert done.stderr == "", done.stderr
        return json.loads(done.stdout)

    key = agora("save", "The deploy key lives in the vault of the operations team", env={})["id"]
    # One line of configuration, then this command.
    assert agora("reindex") | {"seconds": 0} == {"index": "chroma://", "passages": 1, "seconds": 0}
    coffee = agora("save", "Coffee beans are in the kitchen, second shelf")["id"]
    agora("forget", coffee, "--yes")
    hits = agora("query", "something to drink", "--mode", "semantic")["results"]
    assert [hit["id"] for hit in hits] == [key]
    agora("restore", coffee)
    hits = agora("query", "something to drink", "--mode", "semantic")["results"]
    assert [hit["id"] for hit in hits] == [coffee, key]
    # And back: nothing but the notes was ever needed.
    assert agora("reindex", env={})["index"] == "sqlite"


def test_a_server_speaks_nothing_but_the_protocol_and_a_command_beside_it_is_told(
    tmp_path: Path, project: Path
) -> None:
    home = tmp_path / "home"
    with serving(home, project, tmp_path) as serve:
        # Every line of its output is parsed: what is no message fails the test.
        server = serve(env=CHROMA)
        saved = server.call("agora_save", content="The deploy key lives in the vault")["id"]
        assert [hit["id"] for hit in server.call("agora_query", query="deploy key")["results"]] == [saved]
        told = run_command(["query", "the secret for releases", "--mode", "semantic"], home, project, env=CHROMA)
        assert told.returncode == 1
        assert f"process {server.process.pid} uses the Chroma index" in told.stderr
        words = run_command(["query", "deploy key", "--mode", "lexical", "--json"], home, project, env=CHROMA)
        assert [hit["id"] for hit in json.loads(words.stdout)["results"]] == [saved]
        beside = run_command(["save", "Coffee is in the kitchen", "--json"], home, project, env=CHROMA)
        coffee = json.loads(beside.stdout)["id"]
        hits = server.call("agora_query", query="something to drink", mode="semantic")["results"]
        assert hits[0]["id"] == coffee
        about = server.call("agora_status")
        assert (about["health"], about["index"]["kind"], about["index"]["passages"]) == ("ok", "chroma", 2)
        status, seconds = server.end_input()
        assert (status, seconds < 5) == (0, True)
        # What there is to say is said in a line of Agora's own log.
        lines = server.log().replace(str(tmp_path), "").splitlines()
        assert [line for line in lines if "hroma" in line and "[agora]" not in line] == []
        assert all(json.loads(line)["jsonrpc"] == "2.0" for line in server.lines)


def test_settings_of_chroma_that_lie_around_have_no_effect(tmp_path: Path) -> None:
    foreign = {"CHROMA_API_IMPL": "chromadb.api.fastapi.FastAPI", "PERSIST_DIRECTORY": str(tmp_path / "elsewhere")}
    (tmp_path / ".env").write_text("".join(f"{key}={value}\n" for key, value in foreign.items()), "utf-8")
    program = "from agora.stores.chroma.client import *; Client(Path('here')).create(); print('made')"
    done = _python(program, tmp_path, foreign)
    assert (done.stdout, done.stderr, done.returncode) == ("made\n", "", 0)
    assert (tmp_path / "here" / "chroma.sqlite3").exists()
    assert not (tmp_path / "elsewhere").exists()


def test_settings_that_chroma_cannot_be_loaded_with_are_named(tmp_path: Path) -> None:
    (tmp_path / ".env").write_text("MIGRATIONS=all of them\n", "utf-8")
    done = _python("from agora.stores.chroma.client import load; load()", tmp_path)
    assert "ConfigError: chromadb cannot be loaded" in done.stderr
    assert "migrations" in done.stderr


def test_without_the_extra_the_command_that_installs_it_is_named(tmp_path: Path) -> None:
    program = "import sys; sys.modules['chromadb'] = None; from agora.__main__ import main; main()"
    done = _python(program, tmp_path, {"AGORA_HOME": str(tmp_path / "home"), **CHROMA}, "query", "words")
    assert done.returncode == 2
    assert "pip install 'agora-memory[chroma]'" in done.stderr


def _python(
    program: str, cwd: Path, env: dict[str, str] | None = None, *arguments: str
) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-c", program, *arguments],
        env=environment(None, env),
        cwd=cwd,
        capture_output=True,
        text=True,
        timeout=PATIENCE,
        check=False,
    )
