"""Every resource, its pages, its completions, and what is said of those that are not there."""

from __future__ import annotations

import json
from typing import Any
from urllib.parse import quote

import pytest
from mcp import Client
from mcp.shared.exceptions import MCPError
from mcp_types import ResourceTemplateReference
from tests.protocol.links import Link, ok
from tests.protocol.spec import spec

pytestmark = pytest.mark.anyio

TEMPLATES = [
    "agora://notes/{id}",
    "agora://agents/{name}{?cursor}",
    "agora://sessions/{id}{?cursor}",
    "agora://namespaces/{name}{?cursor}",
    "agora://facts/{subject}",
    "agora://search{?q,namespace}",
    "agora://changes{?since}",
]


async def read(client: Client, uri: str) -> Any:
    (content,) = (await client.read_resource(uri)).contents
    assert (content.uri, content.mime_type) == (uri, "application/json")
    return json.loads(content.text)  # type: ignore[union-attr]


async def saved(link: Link, client: Client, content: str, **given: Any) -> str:
    return str((await ok(client, "agora_save", content=content, **{"namespace": link.space, **given}))["id"])


async def not_there(link: Link, client: Client, uri: str) -> None:
    with pytest.raises(MCPError) as caught:
        await client.read_resource(uri)
    assert caught.value.error.code == link.missing, uri
    assert caught.value.error.data["uri"] == uri


@spec("2025-11-25/server/resources#listing-resources", "2026-07-28/server/resources#listing-resources")
async def test_the_list_begins_with_the_fixed_ones_and_every_row_can_be_read(link: Link) -> None:
    async with link.client() as client:
        note = await saved(link, client, "text that has no title")
        titled = await saved(link, client, "text", title="A title")
        page = await client.list_resources()
        uris = [resource.uri for resource in page.resources]
        fixed = ["agora://status", "agora://changes", "agora://cache/stats", "agora://backends"]
        assert uris[:6] == [*fixed, "agora://sessions", "agora://facts"]
        assert f"agora://namespaces/{link.space}" in uris
        titles = {resource.uri: resource.title for resource in page.resources}
        assert titles[f"agora://notes/{note}"] == "text that has no title"
        assert titles[f"agora://notes/{titled}"] == "A title"
        assert uris.index(f"agora://notes/{titled}") < uris.index(f"agora://notes/{note}")
        for uri in uris[:8]:
            await read(client, uri)


@spec("2025-11-25/server/resources#resource-templates", "2026-07-28/server/resources#resource-templates")
async def test_every_template_is_listed(link: Link) -> None:
    async with link.client() as client:
        listed = (await client.list_resource_templates()).resource_templates
        assert [each.uri_template for each in listed] == TEMPLATES
        assert all(each.name and each.title and each.description for each in listed)
        assert {each.mime_type for each in listed} == {"application/json"}


@spec("2025-11-25/server/resources#reading-resources", "2026-07-28/server/resources#reading-resources")
async def test_every_resource_tells_what_its_name_says(link: Link) -> None:
    agent, session = f"ann {link.space}", f"h_{link.space}"
    async with link.client() as client:
        first = await saved(link, client, "the port is 8080", key="port", agent=agent, session=session)
        note = await read(client, f"agora://notes/{first}")
        assert (note["content"], note["agent"], note["key"]) == ("the port is 8080", agent, "port")
        space = quote(link.space, safe="")
        for uri in (f"agora://agents/{quote(agent, safe='')}", f"agora://sessions/{quote(session, safe='')}"):
            listed = await read(client, uri)
            assert (listed["total"], [row["id"] for row in listed["notes"]]) == (1, [first])
        assert (await read(client, f"agora://namespaces/{space}"))["total"] == 1
        who = f"Ann of {link.space}"
        await ok(client, "remember", key="city", value="Rome", subject=who)
        known = await read(client, f"agora://facts/{quote(who, safe='')}")
        assert (known["profile"], known["facts"][0]["value"]) == (f"What you know about {who}:\n- city: Rome", "Rome")
        subjects = (await read(client, "agora://facts"))["subjects"]
        assert {"uri": f"agora://facts/{quote(who, safe='/')}", "subject": who, "keys": 1} in subjects
        found = await read(client, f"agora://search?q=the%20port&namespace={link.space}")
        assert [row["id"] for row in found["results"]] == [first]
        status = await read(client, "agora://status")
        assert status["health"] == "ok"
        assert status["notes"]["live"] >= 1
        assert set(await read(client, "agora://cache/stats")) == {"cache"}
        second = await saved(link, client, "the port is 9090", key="port", agent=agent)
        old = await read(client, f"agora://notes/{first}")
        assert (old["superseded_by"], [each["id"] for each in old["history"]]) == (second, [first, second])


@spec("2025-11-25/server/resources#reading-resources", "2026-07-28/server/resources#reading-resources")
async def test_changes_tell_what_another_process_did(link: Link) -> None:
    async with link.client(name="ann") as client, link.elsewhere("carl") as carl:
        theirs = (await ok(carl, "agora_save", content=f"news of {link.space}"))["id"]
        changes = await read(client, "agora://changes?since=1h")
        assert theirs in [each["id"] for each in changes["changes"]]


@spec("2025-11-25/server/resources#error-handling", "2026-07-28/server/resources#error-handling")
async def test_what_is_not_there_is_said_to_be_unknown_with_its_uri(link: Link) -> None:
    async with link.client() as client:
        for uri in (
            "agora://nothing",
            "agora://notes/",
            "agora://notes/n_x",
            "agora://notes/n_01KF0RDQG00A59TGN08RKYGRWD",
            "agora://status/more",
            "agora://agents/nobody",
            "agora://sessions/none",
            "https://example.com/x",
            "agora://status#part",
            "not a uri",
            "",
        ):
            await not_there(link, client, uri)


@spec("2025-11-25/server/resources#error-handling", "2026-07-28/server/resources#error-handling")
async def test_a_forgotten_note_is_not_there(link: Link) -> None:
    async with link.client() as client:
        gone = await saved(link, client, "will be hidden")
        await ok(client, "agora_forget", ids=[gone], namespace=link.space, dry_run=False)
        await not_there(link, client, f"agora://notes/{gone}")


@spec("2025-11-25/server/resources#error-handling", "2026-07-28/server/resources#error-handling")
async def test_bad_arguments_of_a_uri_are_named(link: Link) -> None:
    wrong = [
        ("agora://status?x=1", "uri"),
        ("agora://agents/ann?cursor=zz", "cursor"),
        ("agora://search", "q"),
        ("agora://search?q=%20", "q"),
        ("agora://search?q=x&namespace=%00", "namespace"),
        ("agora://changes?since=soon", "since"),
        ("agora://namespaces/%07", "namespace"),
    ]
    async with link.client() as client:
        for uri, param in wrong:
            with pytest.raises(MCPError) as caught:
                await client.read_resource(uri)
            assert caught.value.error.code == -32602
            assert caught.value.error.data["param"] == param
            assert {"reason", "received", "message", "code"} <= set(caught.value.error.data)


@spec(
    "2025-11-25/server/utilities/pagination#pagination-flow", "2026-07-28/server/utilities/pagination#pagination-flow"
)
async def test_pages_follow_each_other_without_a_gap_or_a_repetition(link: Link) -> None:
    async with link.client() as client:
        ids = [await saved(link, client, f"text number {number}") for number in range(57)]
        seen: list[str] = []
        cursor = None
        while True:
            page = await client.list_resources(cursor=cursor)
            notes = [each.uri.rpartition("/")[2] for each in page.resources if "/notes/" in each.uri]
            assert not set(notes) & set(seen)
            seen += notes
            if cursor is None:
                assert len(notes) == 50
                # What is saved while somebody turns pages is not in those that follow.
                await saved(link, client, "in between")
            if (cursor := page.next_cursor) is None or set(ids) <= set(seen):
                break
        assert [each for each in seen if each in set(ids)] == ids[::-1]
        uri: str | None = f"agora://namespaces/{quote(link.space, safe='')}"
        rows: list[str] = []
        while uri:
            listed = await read(client, uri)
            assert listed["total"] == 58
            assert len(rows) < 58
            rows += [row["id"] for row in listed["notes"]]
            uri = listed.get("next")
        assert rows[1:] == ids[::-1]


@spec("2025-11-25/server/utilities/pagination#error-handling", "2026-07-28/server/utilities/pagination#error-handling")
async def test_a_cursor_of_another_making_is_refused(link: Link) -> None:
    async with link.client() as client:
        for cursor in ("", "x", "eyJ4IjoxfQ", "bnVsbA", "AAAA" * 1000):
            with pytest.raises(MCPError) as caught:
                await client.list_resources(cursor=cursor)
            assert caught.value.error.code == -32602


@spec(
    "2025-11-25/server/utilities/completion#requesting-completions",
    "2026-07-28/server/utilities/completion#requesting-completions",
)
async def test_arguments_of_templates_are_completed_from_the_store(link: Link) -> None:
    agent = f"100%_{link.space}"
    async with link.client() as client:
        note = await saved(link, client, "text", session=f"h_{link.space}", agent=agent)

        async def completed(template: str, argument: str, beginning: str) -> list[str]:
            reference = ResourceTemplateReference(uri=template)
            done = await client.complete(reference, {"name": argument, "value": beginning})
            assert len(done.completion.values) <= 100
            return list(done.completion.values)

        assert await completed("agora://agents/{name}{?cursor}", "name", agent) == [agent]
        assert await completed("agora://agents/{name}{?cursor}", "name", "100%x") == []
        assert await completed("agora://sessions/{id}{?cursor}", "id", f"h_{link.space}") == [f"h_{link.space}"]
        assert link.space in await completed("agora://namespaces/{name}{?cursor}", "name", link.space)
        assert link.space in await completed("agora://search{?q,namespace}", "namespace", link.space)
        assert await completed("agora://notes/{id}", "id", note) == [note]
        assert await completed("agora://notes/{id}", "other", "n_") == []


@spec("2025-11-25/server/utilities/completion#error-handling", "2026-07-28/server/utilities/completion#error-handling")
async def test_a_completion_of_what_does_not_exist_is_refused(link: Link) -> None:
    async with link.raw() as raw:
        argument = {"name": "id", "value": ""}
        unknown = await raw.error(
            "completion/complete", ref={"type": "ref/resource", "uri": "agora://nothing/{id}"}, argument=argument
        )
        assert unknown["code"] == link.missing
        unknown = await raw.error(
            "completion/complete", ref={"type": "ref/prompt", "name": "no_such"}, argument=argument
        )
        assert unknown["code"] == -32602
