"""Prompts: https://modelcontextprotocol.io/specification/2026-07-28/server/prompts"""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.protocol.bench import Bench
from tests.protocol.prompted import got

from agora.model.deadline import Deadline

pytestmark = pytest.mark.anyio

MINE = """---
name: mine
title: Mine
description: My own.
arguments:
  - name: who
    description: Who.
---
Hi {{who}}.
"""


async def test_the_setting_is_the_language_of_who_names_none(bench: Bench) -> None:
    async with bench.client(tools=bench.services(language="it")) as client:
        assert (await got(client, "session_handoff")).startswith("Questa sessione finisce")
        assert (await got(client, "session_handoff", language="EN ")).startswith("This session ends")
        handoff = next(p for p in (await client.list_prompts()).prompts if p.name == "session_handoff")
        assert handoff.title == "Passaggio di consegne"


async def test_optional_parts_come_with_their_arguments_alone(bench: Bench) -> None:
    async with bench.client(tools=bench.services()) as client:
        table = await got(client, "generate_test_cases", source="s")
        code = await got(client, "generate_test_cases", source="s", framework="pytest", type="unit")
        assert ("Markdown table" in table, "runnable" in table) == (True, False)
        assert ("Markdown table" in code, "runnable pytest code" in code) == (False, True)
        assert "Kind of tests: unit" in code
        logs = await got(client, "analyze_error_logs", logs="l", severity_focus="critical_only", timeframe="last week")
        assert "last week" in logs
        assert "Report severities: critical_only" in logs
        assert "They come from this period" not in await got(client, "analyze_error_logs", logs="l", timeframe=" ")
        docs = await got(client, "generate_api_docs", code="c", api_name="Shop", base_url="https://shop.test")
        assert "https://shop.test" in docs


async def test_the_memory_fills_what_a_prompt_asks_of_it(bench: Bench, mode: str) -> None:
    services = bench.services()
    async with (
        bench.client(mode=mode, tools=services, name="ann") as ann,
        bench.client(mode=mode, tools=services, name="bob") as bob,
    ):
        port = (await bench.ok(ann, "agora_save", content="the cache port is 8080", title="Port"))["id"]
        other = (await bench.ok(bob, "agora_save", content="the cache lives in redis"))["id"]
        text = await got(ann, "recall_context", topic="the cache")
        assert all(part in text for part in (port, other, "the cache port is 8080", "the cache lives in redis", "bob"))
        latest = await got(ann, "find_inconsistencies")
        assert port in latest
        assert other in latest
        bench.store.settle_reads(Deadline(5))
        handoff = await got(ann, "session_handoff")
        saved, _, changes = handoff.partition("What others changed")
        assert port in saved
        assert other not in saved
        # Ann's own agent has just been answered with both notes.
        assert "(nothing)" in changes
        await bench.ok(bob, "agora_save", content="redis moved to another host", title="Moved")
        assert "Moved" in (await got(ann, "session_handoff")).partition("What others changed")[2]
        assert "(niente)" in await got(ann, "recall_context", topic="qwertz", language="it")


async def test_differences_between_agents_are_shown(bench: Bench) -> None:
    services = bench.services()
    async with bench.client(tools=services, name="ann") as ann, bench.client(tools=services, name="bob") as bob:
        await bench.ok(ann, "agora_save", content="src/db.py listens on port 5432.")
        await bench.ok(bob, "agora_save", content="src/db.py uses port 5433")
        text = await got(ann, "find_inconsistencies", topic="src/db.py port")
        assert "<verdicts>" in text
        assert "src/db.py: differ: port = 5432 (ann); port = 5433 (bob)" in text.partition("<verdicts>")[2]
        assert "<verdicts>" not in await got(ann, "find_inconsistencies", topic="nothing like it")


async def test_users_add_prompts_of_their_own_and_replace_those_of_the_package(
    bench: Bench, tmp_path: Path, mode: str
) -> None:
    folder = tmp_path / "prompts"
    services = bench.services(folder)
    async with bench.client(mode=mode, tools=services) as client:
        assert len((await client.list_prompts()).prompts) == 7
        folder.mkdir()
        (folder / "mine.md").write_text(MINE, "utf-8")
        (folder / "mine.it.md").write_text(MINE.replace("Hi", "Ciao"), "utf-8")
        (folder / "session_handoff.md").write_text(
            "---\nname: session_handoff\ntitle: T\ndescription: D\n---\nMy handoff: {{saved}}\n", "utf-8"
        )
        prompts = {prompt.name: prompt for prompt in (await client.list_prompts()).prompts}
        assert len(prompts) == 8
        assert [each.name for each in prompts["mine"].arguments or []] == ["who", "language"]
        assert await got(client, "mine", who="Ann") == "Hi Ann.\n"
        assert await got(client, "mine", who="Ann", language="it") == "Ciao Ann.\n"
        assert await got(client, "session_handoff") == "My handoff: (nothing)\n"
        (folder / "mine.md").unlink()
        assert await got(client, "mine", who="Ann") == "Ciao Ann.\n"


async def test_a_file_that_cannot_be_used_is_left_out_and_named(bench: Bench, tmp_path: Path) -> None:
    folder = tmp_path / "prompts"
    folder.mkdir()
    (folder / "good.md").write_text(MINE.replace("name: mine", "name: good"), "utf-8")
    (folder / "bad.md").write_text("no front matter", "utf-8")
    services = bench.services(folder)
    async with bench.client(tools=services) as client:
        names = {prompt.name for prompt in (await client.list_prompts()).prompts}
        assert "good" in names
        assert "bad" not in names
    assert services.prompts is not None
    (problem,) = services.prompts.library.problems()
    assert problem.startswith("bad.md: ")
    assert any(event == "prompt left out" for _, event, _ in bench.log.heard)
