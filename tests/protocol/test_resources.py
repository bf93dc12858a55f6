"""Resources: https://modelcontextprotocol.io/specification/2026-07-28/server/resources"""

from __future__ import annotations

import json
from typing import Any

import pytest
from mcp import Client
from mcp.shared.exceptions import MCPError
from mcp_types import ResourceTemplateReference
from tests.protocol.bench import Bench

from agora.model.deadline import Deadline

pytestmark = pytest.mark.anyio


async def read(client: Client, uri: str) -> Any:
    (content,) = (await client.read_resource(uri)).contents
    assert (content.uri, content.mime_type) == (uri, "application/json")
    return json.loads(content.text)  # type: ignore[union-attr]


async def not_there(client: Client, uri: str, mode: str) -> None:
    with pytest.raises(MCPError) as caught:
        await client.read_resource(uri)
    assert caught.value.error.code == (-32602 if mode == "auto" else -32002)
    assert caught.value.error.data["uri"] == uri


async def saved(bench: Bench, client: Client, content: str, **arguments: Any) -> str:
    return str((await bench.ok(client, "agora_save", content=content, **arguments))["id"])


async def test_the_list_has_the_fixed_ones_the_namespaces_and_the_newest_notes(bench: Bench, mode: str) -> None:
    async with bench.client(mode=mode, tools=bench.services()) as client:
        older = await saved(bench, client, "older text", title="Older")
        newer = await saved(bench, client, "newer text that has no title")
        page = await client.list_resources()
        uris = [resource.uri for resource in page.resources]
        assert uris == [
            "agora://status",
            "agora://changes",
            "agora://cache/stats",
            "agora://namespaces/acme/shop",
            "agora://namespaces/shared",
            f"agora://notes/{newer}",
            f"agora://notes/{older}",
        ]
        assert [resource.title for resource in page.resources[-2:]] == ["newer text that has no title", "Older"]
        assert page.next_cursor is None
        for uri in uris:
            await read(client, uri)


async def test_every_template_is_listed_and_each_leads_to_something(bench: Bench, mode: str) -> None:
    async with bench.client(mode=mode, tools=bench.services(), name="ann") as client:
        first = await saved(bench, client, "the port is 8080", key="port", session="h_one")
        templates = [each.uri_template for each in (await client.list_resource_templates()).resource_templates]
        assert templates == [
            "agora://notes/{id}",
            "agora://agents/{name}{?cursor}",
            "agora://sessions/{id}{?cursor}",
            "agora://namespaces/{name}{?cursor}",
            "agora://search{?q,namespace}",
            "agora://changes{?since}",
        ]
        note = await read(client, f"agora://notes/{first}")
        assert (note["content"], note["agent"], note["key"]) == ("the port is 8080", "ann", "port")
        for uri in ("agora://agents/ann", "agora://sessions/h_one", "agora://namespaces/acme%2Fshop"):
            listed = await read(client, uri)
            assert (listed["total"], [row["id"] for row in listed["notes"]]) == (1, [first])
        found = await read(client, "agora://search?q=the%20port&namespace=acme/shop")
        assert [row["id"] for row in found["results"]] == [first]
        status = await read(client, "agora://status")
        assert status["notes"]["live"] == 1
        assert await read(client, "agora://cache/stats") == {"cache": None}


async def test_a_replaced_note_can_be_read_and_tells_its_history(bench: Bench) -> None:
    async with bench.client(tools=bench.services()) as client:
        first = await saved(bench, client, "the port is 8080", key="port")
        second = await saved(bench, client, "the port is 9090", key="port")
        note = await read(client, f"agora://notes/{first}")
        assert (note["superseded_by"], [each["id"] for each in note["history"]]) == (second, [first, second])


@pytest.mark.parametrize(
    "uri",
    [
        "agora://nothing",
        "agora://notes",
        "agora://notes/",
        "agora://notes/n_x",
        "agora://notes/n_01KF0RDQG00A59TGN08RKYGRWD",
        "agora://status/more",
        "agora://cache",
        "agora://agents/nobody",
        "agora://sessions/none",
        "https://example.com/x",
        "agora:status",
        "agora://status#part",
        "not a uri",
        "",
    ],
)
async def test_what_is_not_there_is_said_to_be_unknown_with_its_uri(bench: Bench, mode: str, uri: str) -> None:
    async with bench.client(mode=mode, tools=bench.services()) as client:
        await not_there(client, uri, mode)


async def test_forgotten_and_foreign_notes_are_not_there(bench: Bench, mode: str) -> None:
    services = bench.services()
    async with bench.client("acme/other", tools=services) as other:
        foreign = await saved(bench, other, "a text of another project")
    async with bench.client(mode=mode, tools=services, name="ann") as client:
        gone = await saved(bench, client, "will be hidden")
        await bench.ok(client, "agora_forget", ids=[gone], dry_run=False)
        await not_there(client, f"agora://notes/{gone}", mode)
        await not_there(client, f"agora://notes/{foreign}", mode)
        await not_there(client, "agora://agents/ann", mode)
        listed = [resource.uri for resource in (await client.list_resources()).resources]
        assert f"agora://notes/{gone}" not in listed
        assert f"agora://notes/{foreign}" not in listed
        # Naming a namespace opens it, as the argument of a tool does.
        page = await read(client, "agora://namespaces/acme/other")
        assert [row["id"] for row in page["notes"]] == [foreign]
        assert (await read(client, f"agora://notes/{foreign}"))["content"] == "a text of another project"


@pytest.mark.parametrize(
    ("uri", "param"),
    [
        ("agora://status?x=1", "uri"),
        ("agora://agents/ann?cursor=zz", "cursor"),
        ("agora://agents/ann?cursor=eyJiZWZvcmUiOi0xfQ", "cursor"),
        ("agora://search", "q"),
        ("agora://search?q=%20", "q"),
        ("agora://search?q=x&namespace=%00", "namespace"),
        ("agora://changes?since=soon", "since"),
        ("agora://namespaces/%07", "namespace"),
    ],
)
async def test_bad_arguments_of_a_uri_are_named(bench: Bench, mode: str, uri: str, param: str) -> None:
    async with bench.client(mode=mode, tools=bench.services()) as client:
        with pytest.raises(MCPError) as caught:
            await client.read_resource(uri)
        assert caught.value.error.code == -32602
        data = caught.value.error.data
        assert data["param"] == param
        assert {"reason", "received", "message", "code"} <= set(data)


async def test_pages_follow_each_other_without_a_gap_or_a_repetition(bench: Bench, mode: str) -> None:
    async with bench.client(mode=mode, tools=bench.services(), name="ann") as client:
        ids = [await saved(bench, client, f"text number {number}") for number in range(117)]
        seen: list[str] = []
        cursor = None
        sizes = []
        while True:
            page = await client.list_resources(cursor=cursor)
            notes = [each.uri.rpartition("/")[2] for each in page.resources if "/notes/" in each.uri]
            sizes.append(len(notes))
            seen += notes
            if not sizes[1:]:
                # What is saved while somebody turns pages is not in those that follow.
                await saved(bench, client, "in between")
            if (cursor := page.next_cursor) is None:
                break
        assert sizes == [50, 50, 17]
        assert seen == ids[::-1]
        uri: str | None = "agora://agents/ann"
        rows: list[str] = []
        while uri:
            listed = await read(client, uri)
            assert listed["total"] == 118
            rows += [row["id"] for row in listed["notes"]]
            uri = listed.get("next")
        assert rows[1:] == ids[::-1]


async def test_a_cursor_of_another_making_is_refused(bench: Bench, mode: str) -> None:
    async with bench.client(mode=mode, tools=bench.services()) as client:
        for cursor in ("", "x", "eyJ4IjoxfQ", "bnVsbA", "AAAA" * 1000):
            with pytest.raises(MCPError) as caught:
                await client.list_resources(cursor=cursor)
            assert caught.value.error.code == -32602
        with pytest.raises(MCPError):
            await client.list_resource_templates(cursor="2")


async def test_arguments_of_templates_are_completed_from_the_store(bench: Bench, mode: str) -> None:
    services = bench.services()
    async with bench.client("acme/hidden", tools=services, name="secret agent") as other:
        await saved(bench, other, "elsewhere", session="h_secret")
    async with bench.client(mode=mode, tools=services, name="ann") as client:
        note = await saved(bench, client, "text", session="h_one")
        await saved(bench, client, "50 % of it_all", agent="100%_bob", namespace="shared")

        async def completed(template: str, argument: str, beginning: str) -> list[str]:
            reference = ResourceTemplateReference(uri=template)
            done = await client.complete(reference, {"name": argument, "value": beginning})
            assert done.completion.total == len(done.completion.values)
            assert done.completion.has_more is False
            return list(done.completion.values)

        assert await completed("agora://agents/{name}{?cursor}", "name", "") == ["100%_bob", "ann"]
        assert await completed("agora://agents/{name}{?cursor}", "name", "a") == ["ann"]
        assert await completed("agora://agents/{name}{?cursor}", "name", "100%_") == ["100%_bob"]
        assert await completed("agora://agents/{name}{?cursor}", "name", "%") == []
        assert await completed("agora://sessions/{id}{?cursor}", "id", "h_o") == ["h_one"]
        assert await completed("agora://namespaces/{name}{?cursor}", "name", "") == ["acme/shop", "shared"]
        assert await completed("agora://search{?q,namespace}", "namespace", "s") == ["shared"]
        assert note in await completed("agora://notes/{id}", "id", "n_")
        assert await completed("agora://notes/{id}", "other", "n_") == []
        with pytest.raises(MCPError) as caught:
            await completed("agora://nothing/{id}", "id", "")
        assert caught.value.error.code == (-32602 if mode == "auto" else -32002)


async def test_a_completion_holds_a_hundred_values_and_says_how_many_there_are(bench: Bench) -> None:
    async with bench.client(tools=bench.services()) as client:
        for number in range(120):
            await saved(bench, client, f"text {number}", agent=f"agent {number:03}")
        reference = ResourceTemplateReference(uri="agora://agents/{name}{?cursor}")
        done = await client.complete(reference, {"name": "name", "value": "agent"})
        assert (len(done.completion.values), done.completion.total, done.completion.has_more) == (100, 120, True)
        assert done.completion.values[:2] == ["agent 000", "agent 001"]


async def test_changes_tell_what_others_did_since_a_time_read_or_not(bench: Bench) -> None:
    services = bench.services()
    async with bench.client(tools=services, name="ann") as ann, bench.client(tools=services, name="bob") as bob:
        old = await saved(bench, bob, "an hour ago")
        bench.clock.advance(hours=1)
        new = await saved(bench, bob, "just now", title="News")
        await saved(bench, ann, "my own")
        changes = await read(ann, "agora://changes")
        assert [(each["id"], each["agent"]) for each in changes["changes"]] == [(new, "bob"), (old, "bob")]
        await bench.ok(ann, "agora_query", query="anything")
        bench.store.settle_reads(Deadline(5))
        since = await read(ann, "agora://changes?since=30m")
        assert [(each["id"], each["title"]) for each in since["changes"]] == [(new, "News")]


async def test_reads_say_how_long_they_hold_and_for_whom(bench: Bench) -> None:
    async with bench.client(tools=bench.services()) as client:
        note = await saved(bench, client, "text")
        done = await client.read_resource(f"agora://notes/{note}")
        assert (done.ttl_ms, done.cache_scope) == (0, "private")
        listed = await client.list_resources()
        assert (listed.ttl_ms, listed.cache_scope) == (0, "private")
        templates = await client.list_resource_templates()
        assert (templates.ttl_ms, templates.cache_scope) == (3_600_000, "public")


async def test_a_store_that_fails_is_told_without_a_trace(bench: Bench, mode: str) -> None:
    async with bench.client(mode=mode, tools=bench.services()) as client:
        await client.list_resources()
        bench.store.close()
        with pytest.raises(MCPError) as caught:
            await client.list_resources()
        assert caught.value.error.code == -32603
        assert caught.value.error.data["code"] == "store_unavailable"
        assert "Traceback" not in str(caught.value.error)
