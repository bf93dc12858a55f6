"""What was saved is found, what is gone is not, and an answer stays small."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator

import pytest
from tests.integration.processes import Serve, Served
from tests.protocol.bench import Bench

from agora.model.deadline import Deadline

pytestmark = pytest.mark.anyio

WORDS = ("retry", "timeout", "webhook", "payment", "queue", "export", "billing", "gateway", "nightly", "worker")


@pytest.fixture(scope="module")
def crowded(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Bench]:
    """Two thousand notes: half differ in an id alone, half in the order of their words."""
    bench = Bench(tmp_path_factory.mktemp("crowded"))
    connection = bench.connection("acme/crowd")
    for n in range(1_000):
        turned = " ".join(WORDS[(n // 10**place + place) % 10] for place in range(3))
        for text in (
            f"Ticket OPS-{n + 1:05}: the nightly export of the billing data failed again.",
            f"The {turned} handler failed in the nightly run, and the on-call engineer restarted it: {turned}",
        ):
            given = {"content": text, "tags": ["crowd"]}
            bench.tools.call("agora_save", given, connection, client="crowd", deadline=Deadline(20))
    yield bench
    bench.store.close()


async def test_a_thousand_texts_that_differ_in_an_id_are_a_thousand_notes(crowded: Bench) -> None:
    async with crowded.client("acme/crowd") as client:
        assert (await crowded.ok(client, "agora_status"))["notes"]["live"] == 2_000
        found = await crowded.ok(client, "agora_query", query="ticket OPS-00417 export", top_k=3)
        assert "OPS-00417" in found["results"][0]["content"]
        assert all("similar" not in hit for hit in found["results"])


async def test_answers_over_two_thousand_notes_are_small_and_say_what_they_leave_out(crowded: Bench) -> None:
    async with crowded.client("acme/crowd") as client:
        calls: tuple[tuple[str, dict[str, object]], ...] = (
            ("agora_query", {"query": "nightly export failed"}),
            ("agora_query", {"query": "nightly export failed", "top_k": 50}),
            ("agora_status", {}),
            ("agora_forget", {"tags": ["crowd"]}),
        )
        for tool, given in calls:
            result = await client.call_tool(tool, given)
            # Tokens are taken for four bytes.
            assert len(json.dumps(result.structured_content, ensure_ascii=False).encode()) < 4 * 8_000
        found = await crowded.ok(client, "agora_query", query="nightly export failed")
        assert len(found["results"]) == 5
        # Of the candidates, of which there are at least forty.
        assert found["omitted"] > 30
        preview = await crowded.ok(client, "agora_forget", tags=["crowd"])
        assert (preview["count"], len(preview["notes"])) == (2_000, 20)


async def test_a_query_among_near_copies_ends_soon(crowded: Bench) -> None:
    async with crowded.client("acme/crowd") as client:
        for query in ("the handler failed in the nightly run", "ticket", "retry " * 100):
            started = time.monotonic()
            await crowded.ok(client, "agora_query", query=query, top_k=50)
            assert time.monotonic() - started < 2


def test_a_question_in_other_words_finds_the_note(served: Served) -> None:
    wanted = served.call("agora_save", content="payments retry after 502")["id"]
    for other in ("sessions live in redis", "the linter runs before the tests", "payments are taken in euro"):
        served.call("agora_save", content=other)
    found = served.call("agora_query", query="why do payments retry", top_k=3)
    assert wanted in [hit["id"] for hit in found["results"]]


async def test_an_early_note_is_there_after_fifty_later_ones(bench: Bench) -> None:
    async with bench.client() as client:
        first = await bench.ok(client, "agora_save", content="the very first idea", title="Beginnings")
        for n in range(50):
            await bench.ok(client, "agora_save", content=f"later thought number {n}")
        assert len((await bench.ok(client, "agora_get", ids=[first["id"]]))["notes"]) == 1
        found = await bench.ok(client, "agora_query", query="Beginnings")
        assert found["results"][0]["id"] == first["id"]


async def test_a_changed_text_is_found_by_its_new_meaning_alone_and_keeps_where_it_came_from(bench: Bench) -> None:
    async with bench.client(name="a") as a, bench.client(name="b") as b:
        old = await bench.ok(a, "agora_save", content="deploys happen by bicycle courier", key="deploys")
        bench.clock.advance(days=1)
        new = await bench.ok(b, "agora_save", content="releases go out through the pipeline", key="deploys")
        for mode in ("hybrid", "semantic", "lexical"):
            by_new = await bench.ok(a, "agora_query", query="releases pipeline", mode=mode)
            assert [hit["id"] for hit in by_new["results"]] == [new["id"]]
            by_old = await bench.ok(a, "agora_query", query="bicycle courier", mode=mode)
            assert old["id"] not in [hit["id"] for hit in by_old["results"]]
        before, after = (await bench.ok(a, "agora_get", ids=[old["id"], new["id"]]))["notes"]
        assert (before["created_at"], before["agent"]) == ("2026-01-15T12:00:00Z", "a")
        assert (after["created_at"], after["agent"]) == ("2026-01-16T12:00:00Z", "b")
        assert after["supersedes"] == old["id"]


async def test_ten_outdated_versions_do_not_crowd_out_the_current_one(bench: Bench) -> None:
    async with bench.client() as client:
        for n in range(11):
            last = await bench.ok(client, "agora_save", content=f"the api limit is {n} calls a second", key="limit")
        await bench.ok(client, "agora_save", content="the api is documented on the wiki")
        found = await bench.ok(client, "agora_query", query="what is the api limit", top_k=5)
        assert found["results"][0]["id"] == last["id"]
        assert len(found["results"]) == 2
        assert all("superseded_by" not in hit for hit in found["results"])


async def test_the_same_text_of_two_projects_is_two_notes_and_one_is_forgotten_alone(bench: Bench) -> None:
    async with bench.client("a/a", name="ann") as ann, bench.client("b/b", name="bob") as bob:
        hers = (await bench.ok(ann, "agora_save", content="we use tabs"))["id"]
        his = (await bench.ok(bob, "agora_save", content="we use tabs"))["id"]
        assert hers != his
        for client, own, name in ((ann, hers, "ann"), (bob, his, "bob")):
            (hit,) = (await bench.ok(client, "agora_query", query="tabs"))["results"]
            assert (hit["id"], hit["agent"]) == (own, name)
            assert "also_saved_by" not in hit
        assert (await bench.ok(ann, "agora_forget", ids=[hers, his], dry_run=False))["unknown"] == [his]
        assert (await bench.ok(ann, "agora_query", query="tabs"))["results"] == []
        assert len((await bench.ok(bob, "agora_query", query="tabs"))["results"]) == 1


def test_what_is_forgotten_is_gone_in_every_process_and_after_a_restart(serve: Serve) -> None:
    one, two = serve(), serve()
    question = "which port does the dashboard use"
    note = one.call("agora_save", content="The dashboard listens on port 9443.")["id"]
    for server in (one, two):
        assert [hit["id"] for hit in server.call("agora_query", query=question)["results"]] == [note]
    one.call("agora_forget", ids=[note], dry_run=False)
    three = serve()
    for server in (one, two, three):
        assert server.call("agora_query", query=question)["results"] == []
    two.call("agora_restore", ids=[note])
    for server in (one, two, three):
        assert [hit["id"] for hit in server.call("agora_query", query=question)["results"]] == [note]
