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
            "agora://backends",
            "agora://sessions",
            "agora://facts",
            "agora://namespaces/acme/shop",
            "agora://namespaces/shared",
            f"agora://notes/{newer}",
            f"agora://notes/{older}",
        ]
        assert [resource.title for resource in page.resources[-2:]] == ["newer text that has no title", "Older"]
        assert page.next_cursor is None
        for uri in uris:
            await read(client, uri)


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
        # What cannot be shown as it is cannot be chosen either.
        await bench.ok(client, "agora_save", content="one more", agent="a\x1b[31m\u202ered")
        assert await completed("agora://agents/{name}{?cursor}", "name", "a") == ["ann"]
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
