"""Every tool does what its description says, in both protocol eras."""

from __future__ import annotations

import json
from typing import Any

import pytest
from tests.protocol.bench import Bench

pytestmark = pytest.mark.anyio

LONG = "The first part is about billing. " * 300 + "The zebra lives at the very end."


async def test_a_saved_note_comes_back_with_its_provenance(bench: Bench, mode: str) -> None:
    async with bench.client(mode=mode, name="claude-code") as client:
        saved = await bench.ok(
            client,
            "agora_save",
            content="Checkout  hung\nsince the webhook lock was never freed.",
            title="Checkout\n hangs",
            tags=["Payments", "payments", "bug  fix"],
            kind="bug",
            metadata={"pr": 12, "files": ["a.py"]},
            occurred_at="2026-01-10",
            confidence=0.5,
            expires_in="30d",
        )
        assert saved["status"] == "created"
        assert saved["namespace"] == "acme/shop"
        assert saved["namespace_rule"] == "setting namespace.default"
        assert saved["related"] == []
        found = await bench.ok(client, "agora_query", query="why did the checkout hang")
        (hit,) = found["results"]
        assert (
            hit
            | {
                "id": saved["id"],
                "type": "note",
                "title": "Checkout hangs",
                "content": "Checkout  hung\nsince the webhook lock was never freed.",
                "agent": "claude-code",
                "client": "claude-code",
                "origin": "agent",
                "created_at": "2026-01-15T12:00:00Z",
                "expires_at": "2026-02-14T12:00:00Z",
                "tags": ["bug fix", "payments"],
                "kind": "bug",
                "metadata": {"pr": 12, "files": ["a.py"]},
                "confidence": 0.5,
                "cut": False,
            }
            == hit
        )
        assert hit["session"].startswith("h_")
        assert 0 <= hit["score"] <= 1
        assert found["omitted"] == 0
        assert found["namespaces"] == ["acme/shop", "shared"]


async def test_agent_and_session_are_what_the_call_says(bench: Bench) -> None:
    async with bench.client() as client:
        await bench.ok(client, "agora_save", content="said by somebody", agent="  reviewer ", session="s-1")
        (hit,) = (await bench.ok(client, "agora_query", query="somebody", agents=["reviewer"]))["results"]
        assert (hit["agent"], hit["session"], hit["client"]) == ("reviewer", "s-1", "tester")
        assert (await bench.ok(client, "agora_query", query="somebody", agents=["tester"]))["results"] == []


async def test_each_connection_has_a_session_of_its_own(bench: Bench) -> None:
    sessions = set()
    for _ in range(2):
        async with bench.client() as client:
            sessions.add((await bench.ok(client, "agora_status"))["session"])
    assert len(sessions) == 2


async def test_a_client_without_a_usable_name_is_unknown_and_one_with_a_long_name_is_cut(bench: Bench) -> None:
    for given, kept in (("", "unknown"), ("\x1b[2J\n", "[2J"), ("n" * 5000, "n" * 128)):
        async with bench.client(name=given) as client:
            saved = await bench.ok(client, "agora_save", content=f"from {len(given)}")
            (note,) = (await bench.ok(client, "agora_get", ids=[saved["id"]]))["notes"]
            assert note["client"] == note["agent"] == kept


async def test_the_same_text_is_one_note_with_both_savers(bench: Bench) -> None:
    async with bench.client(name="a") as a, bench.client(name="b") as b:
        first = await bench.ok(a, "agora_save", content="one text", tags=["x"])
        second = await bench.ok(b, "agora_save", content="one text", tags=["y"])
        assert (second["status"], second["duplicate_of"], second["id"]) == ("duplicate", first["id"], first["id"])
        (note,) = (await bench.ok(a, "agora_get", ids=[first["id"]]))["notes"]
        assert note["agent"] == "a"
        assert [saver["agent"] for saver in note["also_saved_by"]] == ["b"]
        assert note["tags"] == ["x", "y"]


async def test_a_key_keeps_its_history_and_both_authors(bench: Bench, mode: str) -> None:
    async with bench.client(mode=mode, name="a") as a, bench.client(mode=mode, name="b") as b:
        first = await bench.ok(a, "agora_save", content="deploy with make ship", key="deploy")
        second = await bench.ok(b, "agora_save", content="deploy with the pipeline", key="deploy")
        assert (second["status"], second["version"], second["supersedes"]) == ("updated", 2, first["id"])
        hits = (await bench.ok(a, "agora_query", query="deploy"))["results"]
        assert [hit["id"] for hit in hits] == [second["id"]]
        old, new = (await bench.ok(a, "agora_get", ids=[first["id"], second["id"]]))["notes"]
        assert (old["content"], old["superseded_by"]) == ("deploy with make ship", second["id"])
        assert [(each["version"], each["agent"]) for each in new["history"]] == [(1, "a"), (2, "b")]


async def test_a_long_history_is_cut_to_its_newest_versions(bench: Bench) -> None:
    async with bench.client() as client:
        for n in range(60):
            last = await bench.ok(client, "agora_save", content=f"version {n}", key="counter")
        (note,) = (await bench.ok(client, "agora_get", ids=[last["id"]]))["notes"]
        assert [each["version"] for each in note["history"]] == list(range(11, 61))
        assert note["history_omitted"] == 10


async def test_a_save_names_the_near_notes_and_whose_they_are(bench: Bench) -> None:
    async with bench.client(name="a") as a, bench.client(name="b") as b:
        near = await bench.ok(a, "agora_save", content="the queue worker dies at midnight", title="Worker")
        await bench.ok(a, "agora_save", content="unrelated words entirely")
        saved = await bench.ok(b, "agora_save", content="The queue worker dies at midnight")
        assert saved["status"] == "created"
        (related,) = saved["related"]
        assert (related["id"], related["agent"], related["title"]) == (near["id"], "a", "Worker")
        assert related["same_words"] is True
        assert 0.55 <= related["score"] <= 1


FILTERS: list[tuple[dict[str, Any], list[str]]] = [
    ({"tags": ["RED"]}, ["red apple", "red pear"]),
    ({"tags": ["red", "big"]}, ["red pear"]),
    ({"agents": ["ann", "nobody"]}, ["red apple"]),
    ({"kinds": ["bug", "decision"]}, ["red pear"]),
    ({"metadata": {"n": 1.0}}, ["red apple"]),
    ({"metadata": {"n": 1, "deep": {"a": [1, None]}}}, ["red apple"]),
    ({"metadata": {"n": "1"}}, []),
    ({"since": "2026-01-12"}, ["green plum"]),
    ({"until": "2026-01-10"}, ["red apple"]),
    ({"since": "2026-01-10", "until": "2026-01-11"}, ["red apple", "red pear"]),
    ({"since": "yesterday"}, ["green plum"]),
    ({"since": "4d", "until": "now"}, ["red pear", "green plum"]),
    ({"since": "4d", "until": "yesterday"}, ["red pear"]),
    ({"namespace": "other/place"}, []),
]


@pytest.mark.parametrize(("given", "wanted"), FILTERS, ids=[json.dumps(given) for given, _ in FILTERS])
async def test_each_filter_narrows_the_query(bench: Bench, given: dict[str, Any], wanted: list[str]) -> None:
    async with bench.client() as client:
        deep = {"n": 1, "deep": {"a": [1, None]}}
        save = bench.ok
        await save(
            client,
            "agora_save",
            content="red apple",
            tags=["red"],
            agent="ann",
            metadata=deep,
            occurred_at="2026-01-10T12:00:00Z",
        )
        await save(
            client, "agora_save", content="red pear", tags=["Red", "big"], kind="bug", occurred_at="2026-01-11T13:00Z"
        )
        await save(client, "agora_save", content="green plum", occurred_at="today")
        found = await bench.ok(client, "agora_query", query="apple pear plum", **given)
        assert sorted(hit["content"] for hit in found["results"]) == sorted(wanted)


async def test_weak_notes_are_left_out_and_what_is_left_out_is_counted(bench: Bench) -> None:
    async with bench.client() as client:
        for n in range(8):
            await bench.ok(client, "agora_save", content=f"pump {n} of building {n * 7}")
        await bench.ok(client, "agora_save", content="nothing in common")
        found = await bench.ok(client, "agora_query", query="pump building", top_k=3)
        assert len(found["results"]) == 3
        assert found["omitted"] == 6
        strong = await bench.ok(client, "agora_query", query="pump building", min_score=0.5, top_k=50)
        assert len(strong["results"]) == 8
        assert all(hit["score"] >= 0.5 for hit in strong["results"])
        assert strong["omitted"] == 0


async def test_a_whole_number_may_be_written_with_a_point(bench: Bench, mode: str) -> None:
    async with bench.client(mode=mode) as client:
        await bench.ok(client, "agora_save", content="a pump", expires_in=3600.0)
        found = await bench.ok(client, "agora_query", query="pump", top_k=5.0, max_tokens=500.0)
        assert found["results"][0]["expires_at"] == "2026-01-15T13:00:00Z"


async def test_a_long_note_is_cut_around_its_best_passage_and_says_what_the_whole_costs(bench: Bench) -> None:
    async with bench.client() as client:
        saved = await bench.ok(client, "agora_save", content=LONG)
        (hit,) = (await bench.ok(client, "agora_query", query="zebra lives", max_tokens=200))["results"]
        assert hit["cut"] is True
        assert hit["tokens"] == pytest.approx(len(LONG) / 4, abs=1)
        assert "zebra" in hit["content"]
        assert len(hit["content"]) < 1000
        (whole,) = (await bench.ok(client, "agora_get", ids=[saved["id"]]))["notes"]
        assert whole["content"] == LONG


@pytest.mark.parametrize("wanted", ["hybrid", "semantic", "lexical"])
async def test_each_mode_says_what_a_score_was_made_of(bench: Bench, wanted: str) -> None:
    async with bench.client() as client:
        await bench.ok(client, "agora_save", content="the lighthouse keeper")
        found = await bench.ok(client, "agora_query", query="lighthouse", mode=wanted, explain=True)
        assert found["mode"] == wanted
        parts = found["results"][0]["explain"]
        assert (parts["coverage"] > 0) == (wanted != "semantic")
        assert (parts["cosine"] > 0) == (wanted != "lexical")
        plain = await bench.ok(client, "agora_query", query="lighthouse", mode=wanted)
        assert "explain" not in plain["results"][0]


async def test_get_lists_what_it_cannot_show(bench: Bench, mode: str) -> None:
    async with bench.client(mode=mode) as client:
        live = (await bench.ok(client, "agora_save", content="live"))["id"]
        gone = (await bench.ok(client, "agora_save", content="gone"))["id"]
        late = (await bench.ok(client, "agora_save", content="late", expires_in=60))["id"]
        await bench.ok(client, "agora_forget", ids=[gone], dry_run=False)
        bench.clock.advance(seconds=61)
        # Not the last character: ids that are made in one millisecond follow each other.
        unknown = live[:-8] + ("0" if live[-8] != "0" else "1") + live[-7:]
        got = await bench.ok(client, "agora_get", ids=[live, gone, late, unknown, live])
        assert [note["id"] for note in got["notes"]] == [live]
        assert (got["forgotten"], got["expired"], got["unknown"]) == ([gone], [late], [unknown])


async def test_forget_previews_then_forgets_and_restore_brings_back(bench: Bench, mode: str) -> None:
    async with bench.client(mode=mode) as client:
        ids = [(await bench.ok(client, "agora_save", content=f"note {n}", tags=["old"]))["id"] for n in range(25)]
        before = bench.contents()
        preview = await bench.ok(client, "agora_forget", tags=["old"])
        assert (preview["dry_run"], preview["count"], len(preview["notes"])) == (True, 25, 20)
        assert bench.contents() == before
        done = await bench.ok(client, "agora_forget", tags=["old"], dry_run=False, reason="obsolete")
        assert (done["dry_run"], done["count"]) == (False, 25)
        assert (await bench.ok(client, "agora_query", query="note 3"))["results"] == []
        again = await bench.ok(client, "agora_forget", ids=ids[:1], dry_run=False)
        assert (again["count"], again["already_forgotten"]) == (0, ids[:1])
        restored = await bench.ok(client, "agora_restore", ids=ids[:2])
        assert restored["restored"] == ids[:2]
        assert (await bench.ok(client, "agora_restore", ids=ids[:1]))["not_forgotten"] == ids[:1]
        found = await bench.ok(client, "agora_query", query="note", tags=["old"])
        assert {hit["id"] for hit in found["results"]} == set(ids[:2])


async def test_forgetting_by_agent_keeps_what_others_saved_too(bench: Bench) -> None:
    async with bench.client() as client:
        mine = (await bench.ok(client, "agora_save", content="mine", agent="a"))["id"]
        await bench.ok(client, "agora_save", content="ours", agent="a")
        await bench.ok(client, "agora_save", content="ours", agent="b")
        done = await bench.ok(client, "agora_forget", agent=" a", dry_run=False)
        assert [note["id"] for note in done["notes"]] == [mine]
        assert done["kept_for_other_savers"] == 1


async def test_restoring_ids_that_nobody_knows_is_an_error(bench: Bench) -> None:
    async with bench.client() as client:
        error = await bench.refused(client, "agora_restore", ids=["n_01J00000000000000000000000"])
        assert error["code"] == "note_not_found"
        assert error["hint"]


async def test_an_expired_note_is_found_no_more(bench: Bench) -> None:
    async with bench.client() as client:
        await bench.ok(client, "agora_save", content="for a minute", expires_in="1m")
        assert len((await bench.ok(client, "agora_query", query="minute"))["results"]) == 1
        bench.clock.advance(seconds=60)
        assert (await bench.ok(client, "agora_query", query="minute"))["results"] == []
        assert (await bench.ok(client, "agora_status"))["notes"]["expired"] == 1


async def test_an_answer_stays_small_whatever_hangs_on_a_note(bench: Bench) -> None:
    async with bench.client() as client:
        await bench.ok(client, "agora_save", content="loved by many", metadata={"blob": "x" * 10_000})
        for n in range(80):
            last = await bench.ok(client, "agora_save", content="loved by many", session=f"session {n}")
        result = await client.call_tool("agora_query", {"query": "loved"})
        (hit,) = (result.structured_content or {})["results"]
        assert len(json.dumps(hit)) < 2000
        assert len(hit["also_saved_by"]) == 5
        assert hit["savers"] == 81
        assert hit["metadata_cut"] is True
        (whole,) = (await bench.ok(client, "agora_get", ids=[last["id"]]))["notes"]
        assert len(whole["metadata"]["blob"]) == 10_000
        assert len(whole["also_saved_by"]) == 50


async def test_the_status_tells_of_everything_in_less_than_8_kb(bench: Bench, mode: str) -> None:
    async with bench.client(mode=mode) as client:
        empty = await bench.ok(client, "agora_status")
        assert (empty["health"], empty["problems"], empty["notes"]["rows"]) == ("ok", [], 0)
        for n in range(24):
            agent, namespace = f"{n:02}" + "数" * 126, f"{n:02}" + "据" * 126
            await bench.ok(client, "agora_save", content=f"note {n}", agent=agent, namespace=namespace)
        await bench.ok(client, "agora_save", content="one more", agent="busy")
        await bench.ok(client, "agora_save", content="and one", agent="busy")
        result = await client.call_tool("agora_status", {})
        status = result.structured_content or {}
        assert len(json.dumps(status, ensure_ascii=False).encode()) < 8_000
        assert status["notes"]["live"] == 26
        assert len(status["agents"]) + status["more_agents"] == 25
        assert "busy" in status["agents"], "the busiest are named first"
        assert len(status["namespaces"]) + status["more_namespaces"] == 25
        assert status["index"]["sequence"] == status["store"]["sequence"] == 26
        assert status["store"]["path"] == str(bench.home / "agora.db")
        assert status["model"]["model"] == "fake"
        assert status["version"] == "test"


async def test_the_status_still_answers_when_the_store_does_not(bench: Bench) -> None:
    async with bench.client() as client:
        bench.store.close()
        status = await bench.ok(client, "agora_status")
        assert status["health"] == "degraded"
        assert [problem["code"] for problem in status["problems"]] == ["store_unavailable"]
        error = await bench.refused(client, "agora_save", content="too late")
        assert error["code"] == "store_unavailable"
        assert error["retryable"] is True


async def test_what_a_failing_model_means_for_a_call_is_said_in_the_answer(bench: Bench) -> None:
    async with bench.client() as client:
        before = bench.contents()
        for mood, code, retryable in (("cold", "warming_up", True), ("other", "embedding_mismatch", False)):
            bench.encoder.mood = mood
            for tool, given in (("agora_save", {"content": "x"}), ("agora_query", {"query": "x"})):
                error = await bench.refused(client, tool, **given)
                assert (error["code"], error["retryable"]) == (code, retryable)
        assert (await bench.ok(client, "agora_query", query="x", mode="lexical"))["results"] == []
        assert bench.contents() == before
