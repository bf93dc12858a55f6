"""What a program calls itself is its own word: the name of another one tells and takes nothing of that one."""

from __future__ import annotations

from typing import Any

import pytest
from tests.protocol.bench import Bench

from agora.config.access import AccessTable
from agora.model.access import Door, Policy
from agora.model.deadline import Deadline

pytestmark = pytest.mark.anyio

ROOM = "acme/shop"


async def unread(bench: Bench, token: str, *, door: Door = "http") -> dict[str, Any]:
    """What a program called codex that came so is told of changes by others; it has read them then."""
    policy = Policy([AccessTable(("*",), "admin", any=True)])
    connection = bench.connection(ROOM, door=door, token=token, policy=policy)
    async with bench.client(connection=connection, name="codex") as client:
        found = await bench.ok(client, "agora_crossref", query="port")
    bench.store.settle_reads(Deadline(20))
    return dict(found["changed_by_others"])


async def saved(bench: Bench, content: str, token: str, *, name: str = "codex", **given: Any) -> None:
    connection = bench.connection(ROOM, door="http", token=token)
    async with bench.client(connection=connection, name=name) as client:
        await bench.ok(client, "agora_save", content=content, **given)


async def test_who_takes_another_one_s_name_is_not_told_when_that_one_read_and_reads_nothing_in_its_place(
    bench: Bench,
) -> None:
    await saved(bench, "the port is 8080", "desk", name="writer")
    assert (await unread(bench, "alice"))["count"] == 1
    await saved(bench, "the port is 9090", "desk", name="writer")
    told = await unread(bench, "mallory")
    assert told["last_read"] is None
    assert told["count"] == 2
    assert (await unread(bench, "alice"))["count"] == 1
    assert (await unread(bench, "alice"))["count"] == 0


async def test_sessions_of_this_machine_and_clients_without_a_token_are_not_each_other(bench: Bench) -> None:
    await saved(bench, "the port is 8080", "desk", name="writer")
    doors: list[Door] = ["local", "http", "local", "http"]
    told = [(await unread(bench, "", door=door))["count"] for door in doors]
    assert told == [1, 1, 0, 0]


async def test_a_change_is_not_hidden_from_whom_its_writer_calls_itself_by_the_name_of(bench: Bench) -> None:
    await unread(bench, "alice")
    await saved(bench, "the port is 666", "mallory", name="codex", agent="codex")
    told = await unread(bench, "alice")
    assert [change["title"] for change in told["changes"]] == ["the port is 666"]


async def test_a_change_is_not_hidden_by_a_session_that_it_claims(bench: Bench) -> None:
    connection = bench.connection(ROOM, door="http", token="alice")  # noqa: S106 - a name
    async with bench.client(connection=connection, name="codex") as client:
        await bench.ok(client, "agora_crossref", query="port")
        await saved(bench, "the port is 666", "mallory", agent="other", session=connection.session)
        bench.store.settle_reads(Deadline(20))
        told = (await bench.ok(client, "agora_crossref", query="port"))["changed_by_others"]
    assert [change["title"] for change in told["changes"]] == ["the port is 666"]
