"""Tools answer alike over stdio and HTTP and in both protocol eras: one suite, four clients."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import count
from typing import Any, cast

import pytest
from mcp.shared.exceptions import MCPError
from tests.integration.clients import Era, HttpServer, SdkClient, over_stdio

from agora.protocol.tools.table import TABLE

SETTINGS = {"namespace.default": "acme/shop"}
TEXTS = ["perché no, città", "数据库连接超时", "ошибка 😀", "e\u0301 is not \u00e9", 'quo"te\\ \u2028 tab\there']


@pytest.fixture(scope="module", params=["stdio-auto", "stdio-legacy", "http-auto", "http-legacy"])
def client(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[SdkClient]:
    """An agent that is connected to a server with a data folder of its own."""
    transport, _, era = request.param.partition("-")
    home = tmp_path_factory.mktemp("home")
    if transport == "stdio":
        with SdkClient(over_stdio(home, SETTINGS), era=cast("Era", era)) as connected:
            yield connected
        return
    with HttpServer(home, settings=SETTINGS) as server, SdkClient(server.target(), era=cast("Era", era)) as connected:
        yield connected


_numbers = count(1)


@pytest.fixture
def place() -> str:
    """A namespace that no other test uses."""
    return f"acme/place-{next(_numbers)}"


def test_the_tools_are_listed_with_their_schemas(client: SdkClient) -> None:
    tools = client.portal.call(client.client.list_tools).tools
    assert [tool.name for tool in tools] == [tool.name for tool in TABLE]
    assert {"agora_save", "agora_query", "agora_get", "agora_forget", "agora_restore", "agora_status"} <= {
        tool.name for tool in tools
    }
    assert all(tool.input_schema["type"] == "object" and tool.output_schema for tool in tools)


def test_the_era_is_the_one_that_was_asked_for(client: SdkClient, request: pytest.FixtureRequest) -> None:
    legacy = "legacy" in request.node.callspec.id
    assert client.client.protocol_version == ("2025-11-25" if legacy else "2026-07-28")


def test_what_was_saved_is_found_by_meaning_with_who_saved_it(client: SdkClient, place: str) -> None:
    text = "Customers were charged twice because the card provider's webhook was delivered again."
    saved = client.call("agora_save", content=text, namespace=place, tags=["payments"], agent="ann")
    client.call("agora_save", content="The kitchen has a new kettle.", namespace=place)
    found = client.call("agora_query", query="why do shoppers pay two times for one order?", namespace=place)
    best = found["results"][0]
    assert (best["id"], best["content"], best["tags"]) == (saved["id"], text, ["payments"])
    assert (best["agent"], best["session"] != "") == ("ann", True)
    assert found["namespace"] == place


def test_the_client_s_name_is_the_agent_of_a_save_that_names_none(client: SdkClient, place: str) -> None:
    saved = client.call("agora_save", content="Named by nobody.", namespace=place)
    [note] = client.call("agora_get", ids=[saved["id"]])["notes"]
    assert note["agent"] == "tester"
    assert note["client"] == "tester"


@pytest.mark.parametrize("text", TEXTS, ids=range(len(TEXTS)))
def test_a_text_comes_back_byte_for_byte(client: SdkClient, place: str, text: str) -> None:
    saved = client.call("agora_save", content=text, namespace=place)
    [note] = client.call("agora_get", ids=[saved["id"]])["notes"]
    assert note["content"] == text


def test_a_long_text_comes_back_whole(client: SdkClient, place: str) -> None:
    text = "line of a log\n" * 2_000 + "end"
    saved = client.call("agora_save", content=text, namespace=place)
    assert client.call("agora_get", ids=[saved["id"]])["notes"][0]["content"] == text


def test_the_same_text_is_one_note_and_a_key_keeps_its_history(client: SdkClient, place: str) -> None:
    first = client.call("agora_save", content="Deploy with make ship.", namespace=place, key="deploy")
    again = client.call("agora_save", content="Deploy with make ship.", namespace=place, key="deploy")
    assert again["id"] == first["id"]
    newer = client.call("agora_save", content="Deploy with just ship.", namespace=place, key="deploy")
    assert (newer["version"], newer["supersedes"]) == (2, first["id"])


def test_forgetting_is_a_preview_until_it_is_meant_and_can_be_undone(client: SdkClient, place: str) -> None:
    saved = client.call("agora_save", content="A secret plan for the summer.", namespace=place)
    preview = client.call("agora_forget", ids=[saved["id"]], namespace=place)
    assert (preview["dry_run"], preview["count"]) == (True, 1)
    assert client.call("agora_get", ids=[saved["id"]])["notes"]
    client.call("agora_forget", ids=[saved["id"], "n_01ARZ3NDEKTSV4RRFFQ69G5FAV"], namespace=place, dry_run=False)
    assert client.call("agora_get", ids=[saved["id"]])["forgotten"] == [saved["id"]]
    assert client.call("agora_query", query="plan for the summer", namespace=place)["results"] == []
    assert client.call("agora_restore", ids=[saved["id"]])["restored"] == [saved["id"]]
    assert client.call("agora_query", query="plan for the summer", namespace=place)["results"][0]["id"] == saved["id"]


def test_the_status_tells_of_the_store_and_of_the_namespace_in_use(client: SdkClient) -> None:
    status = client.call("agora_status")
    assert (status["health"], status["problems"]) == ("ok", [])
    assert (status["namespace"], status["namespace_rule"]) == ("acme/shop", "setting namespace.default")
    assert status["index"]["sequence"] == status["store"]["sequence"]


def test_a_namespace_that_was_not_named_is_not_seen(client: SdkClient, place: str) -> None:
    client.call("agora_save", content="The kettle is in the attic.", namespace=place)
    elsewhere = client.call("agora_query", query="where is the kettle in the attic?", namespace=f"{place}-other")
    assert elsewhere["results"] == []
    assert client.call("agora_query", query="where is the kettle in the attic?", namespace=place)["results"]


def test_the_shared_namespace_is_seen_without_being_named(client: SdkClient) -> None:
    saved = client.call("agora_save", content="Everybody's umbrella stands at the door.", namespace="shared")
    found = client.call("agora_query", query="umbrella at the door")
    assert saved["id"] in [hit["id"] for hit in found["results"]]


BAD: list[tuple[str, dict[str, Any], str]] = [
    ("agora_save", {"content": ""}, "content"),
    ("agora_save", {"content": " \n\t"}, "content"),
    ("agora_save", {"content": "a\0b"}, "content"),
    ("agora_save", {"content": 7}, "content"),
    ("agora_save", {}, "content"),
    ("agora_save", {"content": "x" * 300_000}, "content"),
    ("agora_save", {"content": "x", "colour": "red"}, "colour"),
    ("agora_save", {"content": "x", "confidence": 99}, "confidence"),
    ("agora_save", {"content": "x", "occurred_at": "yesterday-ish"}, "occurred_at"),
    ("agora_save", {"content": "x", "namespace": "no spaces"}, "namespace"),
    ("agora_query", {"query": ""}, "query"),
    ("agora_query", {"query": "x", "top_k": 0}, "top_k"),
    ("agora_query", {"query": "x", "top_k": 1000}, "top_k"),
    ("agora_query", {"query": "x" * 100_000}, "query"),
    ("agora_query", {"query": "x", "mode": "telepathy"}, "mode"),
    ("agora_get", {"ids": "n_1"}, "ids"),
    ("agora_forget", {}, ""),
]


@pytest.mark.parametrize(("tool", "arguments", "param"), BAD, ids=range(len(BAD)))
def test_a_bad_argument_is_named_with_the_reason(
    client: SdkClient, tool: str, arguments: dict[str, Any], param: str
) -> None:
    error = client.refused(tool, **arguments)
    assert {"param", "reason", "received"} <= set(error)
    assert param in error["param"]


@pytest.mark.parametrize("query", ['"foo AND (bar*', "NEAR(a, b)", "a OR", "col:x", "'; DROP TABLE items; --"])
def test_search_syntax_in_a_query_is_text(client: SdkClient, query: str) -> None:
    assert client.call("agora_query", query=query, mode="lexical")["results"] is not None


def test_a_tool_that_does_not_exist_is_a_protocol_error(client: SdkClient) -> None:
    with pytest.raises(MCPError) as caught:
        client.result("agora_teleport", {})
    assert caught.value.error.code == -32602
    assert "agora_teleport" in caught.value.error.message


def test_unknown_ids_are_told_apart_from_notes(client: SdkClient) -> None:
    got = client.call("agora_get", ids=["n_01ARZ3NDEKTSV4RRFFQ69G5FAV"])
    assert (got["notes"], got["unknown"]) == ([], ["n_01ARZ3NDEKTSV4RRFFQ69G5FAV"])
