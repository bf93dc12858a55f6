"""What is said to be saved is saved, once, and nothing else is said."""

from __future__ import annotations

import hashlib
import json
import shutil
import time
from pathlib import Path

import pytest
from tests.integration.processes import Serve, Served
from tests.protocol.bench import Bench

from agora.embedding.onnx import packaged_model
from agora.memory.notes import Notes
from agora.protocol.tools.handlers import Limits, Tools
from agora.stores.sqlite.store import SqliteStore
from agora.testing import FakeEncoder, SilentLog

FACTS = (
    "The staging database is reset every Sunday.",
    "Ana owns the invoice service.",
    "Feature flags live in LaunchDarkly.",
    "The mobile app still supports Android 9.",
    "Releases are tagged by the bot, never by hand.",
    "Our S3 bucket for uploads is in Frankfurt.",
    "The search index takes forty minutes to rebuild.",
    "PDFs are rendered by a headless browser.",
    "Rate limits are counted per organisation.",
    "The design system is called Pebble.",
    "Cron jobs run in UTC.",
    "Nobody may merge on the last day of a quarter.",
)


@pytest.mark.anyio
async def test_thirty_retries_of_a_save_leave_one_note_and_say_so(bench: Bench) -> None:
    async with bench.client() as client:
        answers = [await bench.ok(client, "agora_save", content="retried over and over") for _ in range(30)]
        assert [answer["status"] for answer in answers] == ["created"] + ["duplicate"] * 29
        assert {answer["id"] for answer in answers} == {answers[0]["id"]}
        assert all(answer["duplicate_of"] == answers[0]["id"] for answer in answers[1:])
        assert (await bench.ok(client, "agora_status"))["notes"]["rows"] == 1


def test_twelve_unrelated_facts_are_twelve_notes(served: Served) -> None:
    answers = [served.call("agora_save", content=fact) for fact in FACTS]
    assert [answer["status"] for answer in answers] == ["created"] * 12
    assert len(served.call("agora_get", ids=[answer["id"] for answer in answers])["notes"]) == 12


def test_the_first_save_after_a_cold_start_is_there_once_and_soon(serve: Serve) -> None:
    server = serve()
    began = time.monotonic()
    saved = server.call("agora_save", content="saved before the model was there")
    assert time.monotonic() - began < 10
    assert saved["status"] == "created"
    assert server.call("agora_status")["notes"]["rows"] == 1


def test_a_model_that_cannot_be_loaded_is_an_error_in_every_call_and_in_the_status(serve: Serve, home: Path) -> None:
    folder = home.parent / "nonsense"
    shutil.copytree(packaged_model(), folder)
    graph = b"this is no graph"
    (folder / "model.onnx").write_bytes(graph)
    manifest = json.loads((folder / "manifest.json").read_text(encoding="utf-8"))
    manifest["files"]["model.onnx"] = {"sha256": hashlib.sha256(graph).hexdigest(), "bytes": len(graph)}
    (folder / "manifest.json").write_text(json.dumps(manifest), encoding="utf-8")
    server = serve(env={"AGORA_EMBEDDING_MODEL": str(folder)})
    for tool, given in (("agora_save", {"content": "a text"}), ("agora_query", {"query": "a text"})):
        error = server.refused(tool, **given)
        assert error["code"] == "embedding_error"
        assert error["hint"]
    status = server.call("agora_status")
    assert (status["health"], status["notes"]["rows"]) == ("degraded", 0)
    assert [problem["code"] for problem in status["problems"]] == ["model_failed"]
    assert server.call("agora_query", query="a text", mode="lexical")["results"] == []


@pytest.mark.anyio
async def test_a_store_of_another_model_is_searched_by_words_and_says_how_to_migrate(bench: Bench) -> None:
    async with bench.client() as client:
        await bench.ok(client, "agora_save", content="the lighthouse keeper")
    bench.store.close()
    encoder = FakeEncoder(dimension=128, name="another-model")
    store = SqliteStore(bench.home / "agora.db", encoder.fingerprint, bench.clock)
    notes = Notes(store, encoder, bench.clock, SilentLog(), model_seconds=5)
    tools = Tools(notes, bench.clock, Limits(262_144, 10_000, 10), lambda: {"version": "test"})
    try:
        async with bench.client(tools=tools) as client:
            for tool, given in (
                ("agora_save", {"content": "new"}),
                ("agora_query", {"query": "lighthouse"}),
                ("agora_query", {"query": "lighthouse", "mode": "semantic"}),
            ):
                error = await bench.refused(client, tool, **given)
                assert error["code"] == "embedding_mismatch"
                assert "agora reembed" in error["hint"]
            found = await bench.ok(client, "agora_query", query="lighthouse", mode="lexical")
            assert len(found["results"]) == 1
            status = await bench.ok(client, "agora_status")
            assert status["health"] == "degraded"
            assert [problem["code"] for problem in status["problems"]] == ["embedding_mismatch"]
    finally:
        store.close()
