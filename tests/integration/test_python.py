"""`from agora import Memory`: what the documentation shows, and what a program gets that is an agent itself."""

from __future__ import annotations

import asyncio
import re
import subprocess
import sys
from collections.abc import Iterator
from datetime import UTC, date, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from tests.integration.processes import RunAgora, Serve, environment

import agora
from agora import AgoraError, Memory
from agora.errors import InvalidInput

ROOT = Path(__file__).parents[2]
TOKEN = "ghp_" + "aB3dE5fG7hJ9kL1mN3pQ5rS7tU9vW1xY3zA5"


def blocks(page: str) -> list[str]:
    """The Python of a page."""
    return re.findall(r"^```python\n(.*?)^```", (ROOT / page).read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL)


def run(code: str, home: Path) -> str:
    command = [sys.executable, "-W", "error", "-c", code]
    done = subprocess.run(command, env=environment(home), capture_output=True, text=True, check=False, timeout=120)
    assert done.returncode == 0, done.stderr
    assert done.stderr == ""
    return done.stdout


@pytest.fixture
def memory(home: Path) -> Iterator[Memory]:
    """One that is open, of a project of its own."""
    with Memory(home, "acme/shop", "tester") as made:
        yield made


def test_the_snippet_of_the_readme_runs(home: Path) -> None:
    (code,) = blocks("README.md")
    assert run(code, home) == (
        "The gateway answers 502 when the queue is full; raise QUEUE_MAX first.\n"
        "What you know about ann:\n- editor: Helix\n"
    )


def test_the_snippet_of_the_page_prints_what_the_page_says(home: Path) -> None:
    (code,) = blocks("docs/python.md")
    assert f"```\n{run(code, home)}```" in (ROOT / "docs/python.md").read_text(encoding="utf-8")


def test_importing_the_package_loads_nothing_and_it_offers_few_names(home: Path) -> None:
    code = (
        "import sys, agora\n"
        "print([name for name in sys.modules if name.startswith('agora.')], dir(agora))\n"
        "try:\n    agora.memories\nexcept AttributeError as error:\n    print(error)\n"
    )
    assert run(code, home) == (
        "[] ['AgoraError', 'Memory', '__version__']\nmodule 'agora' has no attribute 'memories'\n"
    )
    assert len(agora.__all__) <= 12


def test_the_stub_names_what_the_package_offers() -> None:
    stub = (ROOT / "src/agora/__init__.pyi").read_text(encoding="utf-8")
    assert sorted(re.findall(r"^from [\w.]+ import (\w+) as \1$|^(\w+): str$", stub, re.MULTILINE)) == [
        ("", "__version__"),
        ("AgoraError", ""),
        ("Memory", ""),
    ]


def test_notes_go_through_every_method(memory: Memory) -> None:
    saved = memory.save("The pump is blue", title="Pump", tags=["Parts"], kind="decision", expires_in=timedelta(days=3))
    assert (saved.status, saved.namespace) == ("created", "acme/shop")
    memory.save("The pump is green", occurred_at=date(2026, 1, 2), namespace="acme/other", metadata={"n": (1, 2)})
    (hit,) = memory.query("which colour is the pump", tags=("parts",)).hits
    assert (hit.note.id, hit.note.savers[0].agent, hit.note.savers[0].client) == (saved.id, "tester", "agora-python")
    (other,) = memory.query("which colour is the pump", namespace="acme/other").hits
    assert other.note.metadata == {"n": [1, 2]}
    assert memory.get(saved.id).notes[0].title == "Pump"
    assert memory.forget(saved.id, reason="wrong").count == 1
    assert memory.get(saved.id).forgotten == (saved.id,)
    assert memory.restore(saved.id).restored == (saved.id,)


def test_facts_go_through_every_method(memory: Memory) -> None:
    start = datetime(2026, 1, 1, tzinfo=UTC)
    first = memory.remember("city", "Rome", "ann", valid_from=start)
    second = memory.remember("City", "Milan", "Ann", valid_from=start + timedelta(days=30))
    assert (second.status, [old.id for old in second.replaced]) == ("superseded", [first.id])
    assert [each.fact.value for each in memory.recall("ann").facts] == ["Milan"]
    then = memory.recall("ann", as_of=start + timedelta(days=29), include_history=True)
    assert [each.fact.value for each in then.facts] == ["Rome"]
    assert [each.state for each in then.history] == ["upcoming"]
    assert then.profile == "What you know about ann:\n- city: Rome"
    (note,) = memory.get(second.id).notes
    assert note.fact is not None
    assert (note.fact.key, note.fact.value) == ("city", "Milan")
    gathered = memory.remember_from("I prefer tea.", "ann", occurred_at=start)
    assert [(each.value, each.quote) for each, _ in gathered.remembered] == [("tea", "I prefer tea.")]


def test_conversations_go_through_every_method(memory: Memory) -> None:
    at = datetime(2026, 1, 1, tzinfo=UTC)
    first = memory.append("talk", "user", "The pump is loud", speaker="Ann", occurred_at=at, metadata={"n": (1,)})
    assert (first.seq, first.problems) == (1, ())
    memory.remember("editor", "Helix", "ann")
    for number in range(2, 14):
        kept = memory.append("talk", "assistant", f"We looked at part {number}")
    assert kept.summary_due is not None
    assert (kept.folded, kept.summary_due.first, kept.summary_due.last) == ((1, 6), 1, 6)
    done = memory.summarize(kept.summary_due.token, "The pump is loud; parts 2 to 6 are fine.")
    assert (done.version, done.written_by) == (2, "agent:tester")
    found = memory.context("talk", 1_000, query="what is loud?", subjects=("ann",))
    assert found.summary is not None
    assert (found.summary.text, found.messages, found.omitted) == (done.text, 13, 0)
    assert "- editor: Helix" in found.chat[0]["content"]
    assert found.chat[-1] == {"role": "assistant", "content": "We looked at part 13"}
    assert memory.get(first.id).notes[0].metadata == {"n": [1]}
    assert memory.get(first.id).notes[0].savers[0].session == "talk"
    memory.append("other", "user", "Hello", strategy="buffer", namespace="acme/other")
    assert [row.session for row in memory.sessions()] == ["talk"]
    (row,) = memory.sessions(namespace="acme/other")
    assert (row.session, row.messages, row.strategy) == ("other", 1, "buffer")
    with pytest.raises(AgoraError) as caught:
        memory.context("nothing")
    assert caught.value.code == "session_not_found"


def test_mistakes_are_errors_with_hints_and_secrets_never_arrive(memory: Memory, home: Path) -> None:
    for wrong in (
        lambda: memory.save(" "),
        lambda: memory.remember("k", None),  # type: ignore[arg-type]
        lambda: memory.remember("k", float("nan")),
        lambda: memory.recall(as_of="soon"),
        lambda: memory.get("17"),
        lambda: memory.query("x", top_k=1_000),
        lambda: memory.append("talk", "human", "x"),  # type: ignore[arg-type]
        lambda: memory.context("talk", 1),
        lambda: memory.summarize("token", "text"),
    ):
        with pytest.raises(AgoraError) as caught:
            wrong()
        assert caught.value.code == "invalid_input"
    memory.save(f"the token is {TOKEN}")
    assert memory.remember("deploy token", {"it": TOKEN}).status == "stored"
    memory.remember_from(f"My name is {TOKEN}.")
    memory.append("talk", "user", f"It is {TOKEN}")
    memory.close()
    assert TOKEN.encode() not in b"".join(file.read_bytes() for file in home.rglob("*") if file.is_file())


def test_values_that_no_json_can_hold_are_refused_in_words(memory: Memory) -> None:
    endless: list[Any] = []
    endless.append(endless)
    deep: list[Any] = []
    for _ in range(3_000):
        deep = [deep]
    for wrong in (endless, deep, {"a": endless}, 10**5_000, [{"n": -(10**5_000)}]):
        with pytest.raises(InvalidInput) as caught:
            memory.remember("k", wrong)
        assert "value" in caught.value.message
        with pytest.raises(InvalidInput):
            memory.save("a text", metadata={"it": wrong})
    assert memory.remember("k", 10**3_999).status == "stored"


@pytest.mark.skipif(sys.platform == "win32", reason="Windows has no such modes")
def test_no_file_of_the_memory_is_open_to_other_users_whatever_the_program_does_with_its_own(home: Path) -> None:
    code = """
import os, sys
from pathlib import Path
os.umask(0o022)
from agora import Memory
with Memory(HOME, "acme/shop", "tester") as memory:
    memory.remember("editor", "Helix")
    memory.query("which editor")
    print([file.name for file in Path(HOME).iterdir() if file.stat().st_mode & 0o077])
""".replace("HOME", repr(str(home)))
    home.mkdir(mode=0o755, parents=True, exist_ok=True)
    assert run(code, home) == "[]\n"


def test_a_running_server_and_the_command_line_see_what_a_program_keeps(
    memory: Memory, serve: Serve, run_agora: RunAgora
) -> None:
    memory.remember("port", 5432, "database", namespace="shared")
    server = serve(name="codex")
    assert [each["value"] for each in server.call("recall", subject="database")["facts"]] == [5432]
    assert "port of database: 5432" in run_agora("recall", "database").stdout
    server.call("remember", key="port", value=5433, subject="database", namespace="shared")
    assert [each.fact.value for each in memory.recall("database").facts] == [5433]


def test_many_threads_and_an_event_loop_may_use_one(memory: Memory) -> None:
    async def keep() -> list[str]:
        found = await asyncio.gather(
            *(asyncio.to_thread(memory.remember, f"key {n}", n, "loop", multi=False) for n in range(12))
        )
        return [each.status for each in found]

    assert asyncio.run(keep()) == ["stored"] * 12
    assert {each.fact.value for each in memory.recall("loop").facts} == set(range(12))


def test_a_closed_one_says_so_and_closing_twice_does_nothing(home: Path) -> None:
    memory = Memory(home, "acme/shop")
    memory.close()
    memory.close()
    with pytest.raises(AgoraError):
        memory.recall()
