"""What a client learns of the tools, and what it gets back when it calls them, rightly or wrongly."""

from __future__ import annotations

import json
from typing import Any

import anyio
import pytest
from jsonschema import Draft202012Validator
from mcp import MCPError
from mcp_types import INVALID_PARAMS
from tests.protocol.links import Link, ok, refused
from tests.protocol.spec import spec

from agora.protocol.server import _as_listed
from agora.protocol.tools.table import BY_NAME, TABLE

pytestmark = pytest.mark.anyio

UNKNOWN = "n_01J00000000000000000000000"


@spec("2025-11-25/server/tools#listing-tools", "2026-07-28/server/tools#listing-tools")
async def test_every_tool_is_listed_in_the_order_of_the_table_in_less_than_24_kb(link: Link) -> None:
    async with link.raw() as raw:
        first, second = await raw.result("tools/list"), await raw.result("tools/list")
    assert first == second
    assert first["tools"] == [
        _as_listed(tool).model_dump(mode="json", by_alias=True, exclude_none=True) for tool in TABLE
    ]
    assert len(json.dumps(first["tools"], ensure_ascii=False, separators=(",", ":")).encode()) < 24_000
    assert "nextCursor" not in first


@spec(
    "2025-11-25/basic#schema-dialect",
    "2026-07-28/basic#schema-dialect",
    "2025-11-25/server/tools#tool",
    "2026-07-28/server/tools#tool",
)
async def test_schemas_carry_defaults_bounds_and_enums_and_are_closed(link: Link) -> None:
    async with link.raw() as raw:
        listed = {tool["name"]: tool for tool in (await raw.result("tools/list"))["tools"]}
    for tool in listed.values():
        Draft202012Validator.check_schema(tool["inputSchema"])
        Draft202012Validator.check_schema(tool["outputSchema"])
        assert tool["inputSchema"]["type"] == tool["outputSchema"]["type"] == "object"
        assert tool["inputSchema"]["additionalProperties"] is False
        assert {"title", "description", "annotations"} <= set(tool)
    query = listed["agora_query"]["inputSchema"]["properties"]
    own = BY_NAME["agora_query"].input["properties"]
    assert {key: query["top_k"][key] for key in ("default", "minimum", "maximum")} == {
        key: own["top_k"][key] for key in ("default", "minimum", "maximum")
    }
    assert (query["mode"]["default"], query["mode"]["enum"]) == ("hybrid", ["hybrid", "semantic", "lexical"])
    assert listed["agora_query"]["annotations"]["readOnlyHint"] is True


@spec("2025-11-25/server/utilities/pagination#error-handling", "2026-07-28/server/utilities/pagination#error-handling")
async def test_a_cursor_that_nobody_gave_is_refused_by_every_list(link: Link) -> None:
    async with link.client() as client:
        for turn in (client.list_tools, client.list_prompts, client.list_resources, client.list_resource_templates):
            with pytest.raises(MCPError) as caught:
                await turn(cursor="page-2")
            assert caught.value.error.code == INVALID_PARAMS


@spec("2025-11-25/server/tools#structured-content", "2026-07-28/server/tools#structured-content")
async def test_a_result_is_structured_and_the_same_in_text(link: Link) -> None:
    async with link.client(name="ann") as client:
        # `ok` holds every result against the tool's schema and its text against the structure.
        saved = await ok(client, "agora_save", content="the port is 8080", namespace=link.space, tags=["net"])
        assert saved["status"] == "created"
        (hit,) = (await ok(client, "agora_query", query="port", namespace=link.space))["results"]
        assert (hit["id"], hit["agent"], hit["client"], hit["tags"]) == (saved["id"], "ann", "ann", ["net"])
        (note,) = (await ok(client, "agora_get", ids=[saved["id"]]))["notes"]
        assert note["content"] == "the port is 8080"
        assert (await ok(client, "agora_crossref", query="port", namespace=link.space))["positions"]
        gone = await ok(client, "agora_forget", ids=[saved["id"]], namespace=link.space, dry_run=False)
        assert gone["count"] == 1
        assert (await ok(client, "agora_restore", ids=[saved["id"]]))["restored"] == [saved["id"]]
        assert (await ok(client, "agora_status"))["health"] == "ok"


@spec("2025-11-25/server/tools#calling-tools", "2026-07-28/server/tools#calling-tools")
async def test_arguments_may_be_left_out_where_none_is_required(link: Link) -> None:
    async with link.raw() as raw:
        status = await raw.result("tools/call", name="agora_status")
        assert not status.get("isError")
        empty = await raw.result("tools/call", name="agora_save")
        assert empty["structuredContent"]["error"]["reason"] == "is required"


BAD: list[tuple[str, dict[str, Any], str, str]] = [
    ("agora_save", {}, "content", "is required"),
    ("agora_save", {"content": " \n\t"}, "content", "must not be blank"),
    ("agora_save", {"content": "a\0b"}, "content", "NUL"),
    ("agora_save", {"content": 7}, "content", "must be of type string"),
    ("agora_save", {"content": "x" * 300_000}, "content", "at most"),
    ("agora_save", {"content": "x", "colour": "red"}, "colour", "unknown argument"),
    ("agora_save", {"content": "x", "contents": "y"}, "contents", "did you mean 'content'?"),
    ("agora_save", {"content": "x", "confidence": 99}, "confidence", "must be between 0 and 1"),
    ("agora_save", {"content": "x", "tags": ["a", 1]}, "tags[1]", "must be of type string"),
    ("agora_save", {"content": "x", "namespace": "no spaces"}, "namespace", "may not contain"),
    ("agora_query", {"query": "x", "top_k": 0}, "top_k", "must be between 1 and 50"),
    ("agora_query", {"query": "x", "top_k": 2.5}, "top_k", "must be of type integer"),
    ("agora_query", {"query": "x", "mode": "telepathy"}, "mode", "must be one of hybrid, semantic, lexical"),
    ("agora_query", {"query": "x", "since": "soon"}, "since", "ISO 8601"),
    ("agora_get", {"ids": "n_1"}, "ids", "must be of type array"),
    ("agora_get", {"ids": [UNKNOWN, "17"]}, "ids[1]", "must be the id of a note"),
    ("agora_forget", {}, "ids", "at least one of"),
    ("agora_crossref", {}, "query", "either query or id"),
    ("agora_status", {"verbose": True}, "verbose", "this tool takes none"),
]


@spec("2025-11-25/server/tools#error-handling", "2026-07-28/server/tools#error-handling")
async def test_a_wrong_argument_is_a_result_that_names_it_the_reason_and_what_was_received(link: Link) -> None:
    async with link.client() as client:
        for tool, given, param, reason in BAD:
            error = await refused(client, tool, **given)
            assert error["param"] == param, given
            assert reason in error["reason"], given
            assert {"code", "message", "received", "retryable"} <= set(error)
        assert (await ok(client, "agora_status"))["health"] == "ok"


@spec("2025-11-25/server/tools#error-handling", "2026-07-28/server/tools#error-handling")
async def test_what_cannot_be_done_is_a_result_too(link: Link) -> None:
    async with link.client() as client:
        error = await refused(client, "agora_restore", ids=[UNKNOWN])
        assert error["code"] == "note_not_found"
        assert error["hint"]


@spec("2025-11-25/server/tools#calling-tools", "2026-07-28/server/tools#calling-tools")
async def test_twenty_calls_at_once_are_all_answered_with_their_own_result(link: Link) -> None:
    ids: dict[int, str] = {}

    async with link.client() as client:

        async def save(n: int) -> None:
            ids[n] = (await ok(client, "agora_save", content=f"ticket {n}", namespace=link.space))["id"]

        async with anyio.create_task_group() as tasks:
            for n in range(20):
                tasks.start_soon(save, n)
        got = await ok(client, "agora_get", ids=[ids[n] for n in range(20)])
        assert [note["content"] for note in got["notes"]] == [f"ticket {n}" for n in range(20)]


TEXTS = ["perché no, città", "数据库连接超时", "ошибка 😀", "e\u0301 is not \u00e9", 'quo"te\\ \u2028 tab\there\r\n']


@spec("2025-11-25/server/tools#text-content", "2026-07-28/server/tools#text-content")
async def test_a_text_comes_back_character_for_character(link: Link) -> None:
    async with link.client() as client:
        for text in (*TEXTS, "line of a log\n" * 2_000 + "end"):
            saved = await ok(client, "agora_save", content=text, namespace=link.space)
            (note,) = (await ok(client, "agora_get", ids=[saved["id"]]))["notes"]
            assert note["content"] == text


@spec("2025-11-25/server/tools#security-considerations", "2026-07-28/server/tools#security-considerations")
async def test_what_one_project_saves_no_other_sees(link: Link) -> None:
    other = f"{link.space}-other"
    async with link.client() as client:
        await ok(client, "agora_save", content="the vault opens at nine", namespace=link.space)
        assert (await ok(client, "agora_query", query="vault", namespace=other))["results"] == []
        assert (await ok(client, "agora_query", query="vault", namespace=link.space))["results"]
