"""What the access tables come to over MCP: nothing is widened by a name, and a refusal says what to do."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Any

import anyio
import pytest
from mcp.shared.exceptions import MCPError
from mcp_types import ListRootsResult, PromptReference, ResourceTemplateReference, Root
from pydantic import FileUrl
from tests.protocol.bench import Bench
from tests.protocol.heard import Heard, subscribed

from agora.config.access import AccessTable
from agora.model.access import Door, Policy
from agora.model.browse import Listing
from agora.model.deadline import Deadline
from agora.protocol.context import Connection

pytestmark = pytest.mark.anyio

UNKNOWN = "n_01M8MKRP2CC69HXHW522H8C8V1"


def table(*namespaces: str, rights: str = "read", **who: Any) -> AccessTable:
    return AccessTable(namespaces, rights, place="agora.toml:7", **(who or {"any": True}))


def under(bench: Bench, *tables: AccessTable, own: str = "acme/shop", door: Door = "http", **given: Any) -> Connection:
    return bench.connection(own, door=door, policy=Policy(tables), **given)


async def planted(bench: Bench, namespace: str, content: str, **given: Any) -> str:
    """A note that somebody saved whom no table binds."""
    async with bench.client(namespace, connection=bench.connection(namespace, door="command")) as client:
        return str((await bench.ok(client, "agora_save", content=content, **given))["id"])


async def test_somebody_that_no_table_is_for_is_refused_everything_in_words(bench: Bench, mode: str) -> None:
    await planted(bench, "acme/shop", "the port is 8080")
    connection = under(bench, table("*", rights="admin", tokens=("ci",)), token="other")  # noqa: S106 - a name
    async with bench.client(connection=connection, mode=mode, tools=bench.services()) as client:
        for tool, given in (
            ("agora_query", {"query": "port"}),
            ("agora_query", {"query": "port", "namespace": "acme/shop"}),
            ("agora_get", {"ids": [UNKNOWN]}),
            ("agora_crossref", {"query": "port"}),
            ("agora_crossref", {"id": UNKNOWN}),
            ("agora_forget", {"ids": [UNKNOWN]}),
            ("agora_forget", {"namespace": "acme/shop"}),
            ("agora_restore", {"ids": [UNKNOWN]}),
            ("agora_save", {"content": "mine"}),
            ("remember", {"key": "port", "value": 1}),
            ("recall", {}),
            ("recall", {"namespace": "acme/shop"}),
            ("remember_from", {"text": "the port is 1"}),
            ("session_append", {"session": "talk", "role": "user", "content": "mine"}),
            ("session_context", {"session": "talk"}),
            ("session_context", {"session": "talk", "namespace": "acme/shop"}),
        ):
            error = await bench.refused(client, tool, **given)
            assert error["code"] == "namespace_denied", tool
            assert error["message"] == "token other may not use the memory at all"
            assert "[[access]]" in error["hint"]
        for ask in (
            client.list_resources,
            lambda: client.read_resource("agora://namespaces/acme%2Fshop"),
            lambda: client.read_resource("agora://changes"),
            lambda: client.read_resource("agora://facts"),
            lambda: client.read_resource("agora://facts/user"),
            lambda: client.read_resource("agora://sessions"),
            lambda: client.read_resource("agora://sessions/talk"),
            lambda: client.complete(
                ResourceTemplateReference(uri="agora://agents/{name}{?cursor}"), {"name": "name", "value": ""}
            ),
            lambda: client.get_prompt("recall_context", {"topic": "port"}),
        ):
            with pytest.raises(MCPError) as caught:
                await ask()
            assert caught.value.error.data["code"] == "namespace_denied"
        status = await bench.ok(client, "agora_status")
        assert status["notes"]["rows"] == 0
        assert status["access"] == {"who": "token other", "given_by": []}
        # What says nothing of notes goes on.
        found = await client.complete(PromptReference(name="recall_context"), {"name": "language", "value": ""})
        assert found.completion.values


async def test_the_status_says_which_table_applies_and_nothing_of_others(bench: Bench) -> None:
    await planted(bench, "vault", "hidden", agent="spy")
    await planted(bench, "acme/shop", "open")
    tables = (table("*", rights="admin", tokens=("x",)), table("{own}", "team-*", rights="write", tokens=("ci",)))
    async with bench.client(connection=under(bench, *tables, token="ci")) as client:  # noqa: S106 - a name
        status = await bench.ok(client, "agora_status")
    given = {"table": 2, "place": "agora.toml:7", "namespaces": ["acme/shop", "team-*"], "rights": "write"}
    assert status["access"] == {"who": "token ci", "given_by": [given]}
    assert (status["notes"]["live"], status["agents"], status["namespaces"]) == (1, {"tester": 1}, {"acme/shop": 1})
    assert status["index"]["passages"] == 1
    for name in ("store", "cache", "home", "maintenance", "server"):
        assert name not in status
    assert "sequence" not in str(status)


async def test_to_name_a_namespace_never_widens_what_is_seen(bench: Bench, mode: str) -> None:
    hidden = await planted(bench, "vault", "the port is 8080")
    team = await planted(bench, "team-a", "the port is 9090")
    connection = under(bench, table("{own}", "team-*"))
    async with bench.client(connection=connection, mode=mode, tools=bench.services()) as client:
        error = await bench.refused(client, "agora_query", query="port", namespace="vault")
        assert error["code"] == "namespace_denied"
        # The same words whether there is such a namespace or not.
        other = await bench.refused(client, "agora_query", query="port", namespace="vaulted")
        assert {**error, "message": error["message"].replace("'vault'", "'vaulted'")} == other
        with pytest.raises(MCPError):
            await client.read_resource("agora://namespaces/vault")
        assert (await bench.ok(client, "agora_get", ids=[hidden, team]))["unknown"] == [hidden, team]
        # One that the tables allow is reached once it is named.
        await bench.ok(client, "agora_query", query="port", namespace="team-a")
        got = await bench.ok(client, "agora_get", ids=[hidden, team])
        assert ([note["id"] for note in got["notes"]], got["unknown"]) == ([team], [hidden])


async def test_a_namespace_that_a_table_names_is_seen_without_being_named(bench: Bench) -> None:
    note = await planted(bench, "team-a", "the port is 9090")
    async with bench.client(connection=under(bench, table("team-a"))) as client:
        assert [each["id"] for each in (await bench.ok(client, "agora_get", ids=[note]))["notes"]] == [note]
        # Its own project and `shared` it may not read: a query that names nothing has nowhere to look.
        assert (await bench.refused(client, "agora_query", query="port"))["code"] == "namespace_denied"


async def test_an_id_that_is_denied_is_as_unknown_as_one_that_never_was(bench: Bench) -> None:
    hidden = await planted(bench, "vault", "the port is 8080")
    async with bench.client(connection=under(bench, table("{own}", rights="admin"))) as client:
        for tool in ("agora_get", "agora_forget"):
            found = await bench.ok(client, tool, ids=[hidden])
            never = await bench.ok(client, tool, ids=[UNKNOWN])
            assert str(found).replace(hidden, UNKNOWN) == str(never)
        for tool, argument in (("agora_restore", "ids"), ("agora_crossref", "id")):
            given = [hidden] if argument == "ids" else hidden
            denied = await bench.refused(client, tool, **{argument: given})
            never = await bench.refused(client, tool, **{argument: [UNKNOWN] if argument == "ids" else UNKNOWN})
            assert str(denied).replace(hidden, UNKNOWN) == str(never)


async def test_nothing_of_a_damaged_note_elsewhere_is_read_when_its_id_is_guessed(bench: Bench) -> None:
    hidden = await planted(bench, "vault", "the port is 8080")
    await anyio.to_thread.run_sync(
        lambda: bench.store._database.write(lambda c: c.execute("UPDATE texts SET metadata = 'no json'"), Deadline(5))
    )
    async with bench.client(connection=under(bench, table("{own}"))) as client:
        assert (await bench.ok(client, "agora_get", ids=[hidden]))["unknown"] == [hidden]


async def test_the_same_text_in_another_namespace_is_no_duplicate_and_not_related(bench: Bench) -> None:
    await planted(bench, "vault", "the port of the gateway is 8080", key="port")
    async with bench.client(connection=under(bench, table("{own}", rights="write"))) as client:
        saved = await bench.ok(client, "agora_save", content="the port of the gateway is 8080", key="port")
        assert (saved["status"], saved["version"], saved["related"]) == ("created", 1, [])
        assert "sequence" not in saved


async def test_who_may_read_may_not_change_anything(bench: Bench) -> None:
    note = await planted(bench, "acme/shop", "the port is 8080", tags=["net"])
    async with bench.client(connection=under(bench, table("{own}"))) as client:
        for tool, given in (
            ("agora_save", {"content": "the port is 8080"}),
            ("agora_forget", {"ids": [note]}),
            ("agora_forget", {"tags": ["net"]}),
            ("agora_restore", {"ids": [note]}),
        ):
            error = await bench.refused(client, tool, **given)
            assert error["code"] == "namespace_denied", tool
            assert "takes the right" in error["message"]
        assert len((await bench.ok(client, "agora_query", query="port"))["results"]) == 1


async def test_who_may_write_forgets_what_came_with_its_own_token_alone(bench: Bench) -> None:
    tables = (table("{own}", rights="write"),)
    theirs = await planted(bench, "acme/shop", "the port is 8080", agent="ci", tags=["net"])
    async with bench.client(connection=under(bench, *tables, token="ci")) as client:  # noqa: S106 - a name
        mine = (await bench.ok(client, "agora_save", content="queue limit is 10", tags=["net"], agent="boss"))["id"]
        both = (await bench.ok(client, "agora_save", content="retry twice", tags=["net"]))["id"]
    await planted(bench, "acme/shop", "retry twice")
    async with bench.client(connection=under(bench, *tables, token="else")) as client:  # noqa: S106 - as above
        # The agent's name, which anybody may claim, makes nothing one's own.
        await bench.ok(client, "agora_save", content="its own", agent="ci")
        found = await bench.ok(client, "agora_forget", ids=[theirs, mine], dry_run=False)
        assert (found["count"], found["kept_for_other_savers"]) == (0, 2)
    async with bench.client(connection=under(bench, *tables, token="ci")) as client:  # noqa: S106 - as above
        preview = await bench.ok(client, "agora_forget", tags=["net"])
        assert ([each["id"] for each in preview["notes"]], preview["kept_for_other_savers"]) == ([mine], 2)
        found = await bench.ok(client, "agora_forget", ids=[theirs, mine, both], dry_run=False)
        assert (found["count"], found["kept_for_other_savers"]) == (1, 2)
        # To bring back takes more: else a note that was taken away could be put back by who saved it.
        assert (await bench.refused(client, "agora_restore", ids=[mine]))["code"] == "namespace_denied"
    async with bench.client(connection=under(bench, table("{own}", rights="admin"))) as client:
        assert (await bench.ok(client, "agora_restore", ids=[mine]))["restored"] == [mine]
        assert (await bench.ok(client, "agora_forget", ids=[theirs, mine, both], dry_run=False))["count"] == 3


async def test_without_a_token_over_http_nothing_is_ones_own(bench: Bench) -> None:
    tables = (table("{own}", rights="write"),)
    async with bench.client(connection=under(bench, *tables)) as client:
        note = (await bench.ok(client, "agora_save", content="queue limit is 10"))["id"]
        found = await bench.ok(client, "agora_forget", ids=[note], dry_run=False)
        assert (found["count"], found["kept_for_other_savers"]) == (0, 1)
    async with bench.client(connection=under(bench, *tables, door="local")) as client:
        # What came without a token counts as this machine's user's.
        assert (await bench.ok(client, "agora_forget", ids=[note], dry_run=False))["count"] == 1


async def test_a_program_may_call_itself_what_it_likes_and_gains_nothing(bench: Bench, mode: str) -> None:
    await planted(bench, "acme/shop", "the port is 8080")
    tables = (table("shared"), table("{own}", "shared", rights="admin", clients=("boss",)))
    connection = under(bench, *tables)
    async with bench.client(connection=connection, mode=mode, name="boss") as client:
        error = await bench.refused(client, "agora_query", query="port", namespace="acme/shop")
        assert error["code"] == "namespace_denied"
    limited = under(bench, table("{own}", "shared"), table("shared", clients=("tes*",)))
    async with bench.client(connection=limited, mode=mode, name="Tester") as client:
        assert (await bench.ok(client, "agora_query", query="port"))["namespaces"] == ["shared"]
        assert "limited_by" in (await bench.ok(client, "agora_status"))["access"]


async def test_a_root_that_a_client_over_http_declares_gives_it_no_rights(bench: Bench, tmp_path: Path) -> None:
    (tmp_path / "theirs").mkdir()
    for door in ("http", "local"):
        connection = Connection(at_ms=0, door=door, policy=Policy([table("{own}", rights="write")]))

        async def roots(_: object) -> ListRootsResult:
            return ListRootsResult(roots=[Root(uri=FileUrl((tmp_path / "theirs").as_uri()))])

        async with bench.client(connection=connection, mode="legacy", list_roots_callback=roots) as client:
            if door == "local":
                assert (await bench.ok(client, "agora_save", content="here"))["namespace"].startswith("theirs-")
            else:
                assert (await bench.refused(client, "agora_save", content="here"))["code"] == "namespace_denied"


async def test_a_page_begins_after_a_note_and_never_after_one_elsewhere(bench: Bench) -> None:
    first = await planted(bench, "acme/shop", "one of two")
    hidden = await planted(bench, "vault", "between")
    second = await planted(bench, "acme/shop", "two of two")
    resources = bench.services().resources
    assert resources is not None
    caller = under(bench, table("{own}")).caller("tester")

    def page(before: str | None) -> list[str]:
        wanted = Listing(("acme/shop",), before=before, limit=1)
        return [note.id for note in resources._browsing.page(wanted, caller, Deadline(5)).notes]

    assert page(None) == [second]
    assert page(second) == [first]
    assert page(hidden) == page(UNKNOWN) == []


async def test_nobody_hears_of_changes_that_it_may_not_see(bench: Bench, mode: str) -> None:
    services = bench.services()
    connection = under(bench, table("{own}"), table("shared", clients=("limited",)))
    uris = ("agora://status", "agora://agents/spy", "agora://changes")
    make = partial(bench.client, mode=mode, tools=services, connection=connection)
    async with subscribed(make, *uris, legacy=mode == "legacy") as (_, heard):
        hidden = await planted(bench, "vault", "one", agent="spy", key="k")
        await planted(bench, "vault", "two", agent="spy", key="k")
        async with bench.client(connection=bench.connection("vault")) as client:
            await bench.ok(client, "agora_forget", ids=[hidden], dry_run=False)
        await heard.settled()
        await planted(bench, "acme/shop", "three", agent="spy")
        await heard.settled("resources", *(f"updated {uri}" for uri in uris))


async def test_what_is_denied_cannot_be_subscribed_to(bench: Bench, mode: str) -> None:
    connection = under(bench, table("{own}"))
    make = partial(bench.client, mode=mode, tools=bench.services(), connection=connection)
    with pytest.raises((MCPError, ExceptionGroup)) as caught:
        async with subscribed(make, "agora://namespaces/vault", legacy=mode == "legacy"):
            pass
    error: BaseException = caught.value
    while isinstance(error, BaseExceptionGroup):
        error = error.exceptions[0]
    assert isinstance(error, MCPError)
    assert error.error.data["code"] == "namespace_denied"


async def test_a_program_that_only_listens_is_held_to_its_limit_too(bench: Bench, mode: str) -> None:
    services = bench.services()
    connection = under(bench, table("{own}", "shared"), table("shared", clients=("limited",)))
    make = partial(bench.client, mode=mode, tools=services, connection=connection, name="limited")

    async def changed_and_heard(heard: Heard) -> None:
        await planted(bench, "acme/shop", "one")
        await heard.settled()
        await planted(bench, "shared", "two")
        await heard.settled("resources")

    if mode == "auto":
        async with subscribed(make, legacy=False) as (_, told):
            await changed_and_heard(told)
        return
    told = Heard()
    async with make(message_handler=told) as client:
        # Whoever has asked for any list hears of both.
        await client.list_prompts()
        await changed_and_heard(told)


async def test_programs_of_one_token_hear_what_all_of_them_may_see(bench: Bench) -> None:
    services = bench.services()
    connection = under(bench, table("{own}", "shared"), table("shared", clients=("limited",)))
    async with bench.client(tools=services, connection=connection, name="limited") as limited:
        await bench.ok(limited, "agora_status")
        make = partial(bench.client, mode="auto", tools=services, connection=connection, name="free")
        async with subscribed(make, "agora://status", legacy=False) as (_, heard):
            await planted(bench, "acme/shop", "one")
            await heard.settled()
            await planted(bench, "shared", "two")
            await heard.settled("resources", "updated agora://status")


async def test_tables_that_allow_everything_hide_nothing(bench: Bench) -> None:
    async with bench.client(connection=under(bench, table("*", rights="admin"))) as client:
        saved = await bench.ok(client, "agora_save", content="the port is 8080")
        assert saved["sequence"] == 1
        assert "store" in await bench.ok(client, "agora_status")


async def test_who_may_read_recalls_facts_and_remembers_none_and_sees_none_elsewhere(bench: Bench, mode: str) -> None:
    for namespace in ("acme/shop", "acme/other"):
        async with bench.client(namespace, connection=bench.connection(namespace, door="command")) as user:
            planted_fact = await bench.ok(user, "remember", key="port", value=namespace, subject="database")
    connection = under(bench, table("acme/shop", rights="read"), token="ci")  # noqa: S106 - a name
    async with bench.client(connection=connection, mode=mode, tools=bench.services()) as client:
        found = await bench.ok(client, "recall")
        assert [each["value"] for each in found["facts"]] == ["acme/shop"]
        assert "sequence" not in found
        for tool, given in (
            ("remember", {"key": "port", "value": 1}),
            ("remember_from", {"text": "The port is 1."}),
            ("recall", {"namespace": "acme/other"}),
            ("remember", {"key": "port", "value": 1, "namespace": "acme/other"}),
        ):
            assert (await bench.refused(client, tool, **given))["code"] == "namespace_denied", tool
        assert bench.extractor.asked == []
        assert (await bench.ok(client, "agora_get", ids=[planted_fact["id"]]))["unknown"] == [planted_fact["id"]]
        assert (await bench.ok(client, "agora_status"))["facts"] == {"subjects": 1, "keys": 1}
        listed = (await client.read_resource("agora://facts")).contents[0]
        assert "acme/other" not in listed.model_dump_json()


async def test_who_may_read_gets_contexts_and_changes_no_conversation_and_sees_none_elsewhere(
    bench: Bench, mode: str
) -> None:
    tokens = {}
    for namespace in ("acme/shop", "acme/other"):
        async with bench.client(namespace, connection=bench.connection(namespace, door="command")) as user:
            for number in range(13):
                given = {"session": "talk", "role": "user", "content": f"message {number} of {namespace}"}
                done = await bench.ok(user, "session_append", **given)
            tokens[namespace] = done["summary_due"]["token"]
    connection = under(bench, table("acme/shop", rights="read"), token="ci")  # noqa: S106 - a name
    async with bench.client(connection=connection, mode=mode, tools=bench.services()) as client:
        found = await bench.ok(client, "session_context", session="talk")
        assert found["total"] == 13
        # Who may not write is not asked to.
        assert "summary_due" not in found
        given = {"session": "talk", "role": "user", "content": "mine"}
        for tool, arguments in (
            ("session_append", given),
            ("session_append", given | {"namespace": "acme/other"}),
            ("session_context", {"session": "talk", "namespace": "acme/other"}),
            ("session_context", {"session": "nothing", "namespace": "acme/other"}),
            ("session_summarize", {"token": tokens["acme/shop"], "summary": "They talked."}),
            ("session_summarize", {"token": tokens["acme/other"], "summary": "They talked."}),
        ):
            assert (await bench.refused(client, tool, **arguments))["code"] == "namespace_denied", tool
        for uri in ("agora://sessions", "agora://sessions/talk"):
            told = (await client.read_resource(uri)).contents[0].model_dump_json()
            assert "acme/shop" in told
            assert "acme/other" not in told
        bench.models = [{"model": "m", "calls": 1, "last_error": "it is away", "used_for": ["facts"]}]
        status = await bench.ok(client, "agora_status")
        assert "language_models" not in status
        assert [set(each) for each in status["problems"]] == [{"code", "hint"}]
        assert (status["messages"], status["conversations"]) == (13, 1)
