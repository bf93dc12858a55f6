"""What is wrong with a message itself is an error of JSON-RPC, and the connection goes on."""

from __future__ import annotations

import json
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from tests.protocol.links import ENVELOPE, LINKS, Link, Site, line
from tests.protocol.minded import Minded
from tests.protocol.spec import spec
from tests.protocol.wires import HttpWire

pytestmark = pytest.mark.anyio

NOT_JSON = [b"hello", b'{"jsonrpc": "2.0", "id": 1, "method": "pi', b"\xff\xfe{}", b"[" * 100_000]
NO_REQUEST = [
    b'[{"jsonrpc": "2.0", "id": 1, "method": "ping"}]',
    b"[]",
    b"17",
    b"{}",
    b'{"jsonrpc": "1.0", "id": 4, "method": "ping"}',
    b'{"jsonrpc": "2.0", "id": 4, "method": 7}',
    b'{"jsonrpc": "2.0", "id": 4}',
]


@spec("2025-11-25/basic#error-responses", "2026-07-28/basic#error-codes")
async def test_what_is_not_json_is_a_parse_error(link: Link) -> None:
    async with link.raw() as raw:
        for body in NOT_JSON:
            answer = await raw.wire.say(body)
            assert answer is not None
            assert (answer["id"], answer["error"]["code"]) == (None, -32700)
        await raw.result("tools/list")


@spec("2025-11-25/basic#error-responses", "2026-07-28/basic#error-codes")
async def test_a_number_that_json_does_not_have_is_a_parse_error(link: Link) -> None:
    async with link.raw() as raw:
        answer = await raw.wire.say(b'{"jsonrpc": "2.0", "id": 4, "method": "ping", "params": {"x": NaN}}')
        assert answer is not None
        assert (answer["id"], answer.get("error", {}).get("code")) == (None, -32700)


@spec("2025-11-25/basic#requests", "2026-07-28/basic#requests")
@pytest.mark.parametrize("body", NO_REQUEST, ids=range(len(NO_REQUEST)))
async def test_json_that_is_no_request_is_an_invalid_request(link: Link, body: bytes) -> None:
    async with link.raw() as raw:
        answer = await raw.wire.say(body)
        assert answer is not None
        assert answer["error"]["code"] == -32600
        assert not any(word in json.dumps(answer) for word in ("Traceback", "pydantic", "input_value"))
        await raw.result("tools/list")


@spec("2025-11-25/basic#error-responses", "2026-07-28/basic#error-codes")
async def test_a_method_that_does_not_exist_is_not_found(link: Link) -> None:
    async with link.raw() as raw:
        for method in ("no/such", "tools/teleport", "tasks/list"):
            assert (await raw.error(method))["code"] == -32601
        await raw.result("tools/list")


@spec("2026-07-28/basic#error-codes")
@pytest.mark.parametrize("method", ["logging/setLevel", "resources/subscribe", "resources/unsubscribe"])
async def test_what_the_stateless_revision_has_no_more_is_not_found_in_it(modern: Link, method: str) -> None:
    async with modern.raw() as raw:
        assert (await raw.error(method, level="info", uri="agora://status"))["code"] == -32601


@spec("2025-11-25/server/tools#error-handling", "2026-07-28/server/tools#error-handling")
async def test_an_unknown_tool_is_a_protocol_error_that_names_it(link: Link) -> None:
    async with link.raw() as raw:
        for name in ("agora_teleport", "AGORA_SAVE"):
            error = await raw.error("tools/call", name=name, arguments={"content": "x"})
            assert (error["code"], error["message"]) == (-32602, f"Unknown tool: {name}")
        error = await raw.error("tools/call", name="n" * 10_000, arguments={})
        assert (error["code"], len(error["message"]) < 300) == (-32602, True)


@spec("2025-11-25/server/prompts#error-handling", "2026-07-28/server/prompts#error-handling")
async def test_an_unknown_prompt_and_a_missing_argument_are_invalid_params(link: Link) -> None:
    async with link.raw() as raw:
        unknown = await raw.error("prompts/get", name="no_such_prompt", arguments={})
        assert (unknown["code"], unknown["data"]["code"]) == (-32602, "prompt_not_found")
        missing = await raw.error("prompts/get", name="code_review", arguments={"code": "x"})
        assert (missing["code"], missing["data"]["param"]) == (-32602, "language")
        assert {"param", "reason", "received"} <= set(missing["data"])


@spec("2025-11-25/server/resources#error-handling", "2026-07-28/server/resources#error-handling")
async def test_an_unknown_resource_has_the_code_of_its_revision_and_its_uri(link: Link) -> None:
    async with link.raw() as raw:
        for uri in ("agora://nothing", "agora://notes/n_01KF0RDQG00A59TGN08RKYGRWD", "https://example.com/x"):
            error = await raw.error("resources/read", uri=uri)
            assert (error["code"], error["data"]["uri"]) == (link.missing, uri)


@spec("2025-11-25/basic#error-responses", "2026-07-28/basic#error-codes")
async def test_params_of_a_wrong_form_are_invalid(link: Link) -> None:
    wrong: list[tuple[str, dict[str, Any]]] = [
        ("prompts/get", {"name": 7}),
        ("resources/read", {"uri": 7}),
        ("tools/call", {"name": 7}),
        ("completion/complete", {"ref": {"type": "ref/none"}, "argument": {"name": "a", "value": ""}}),
    ]
    async with link.raw() as raw:
        for method, params in wrong:
            # A name that is no text is in no header: it is the first thing that a server over HTTP sees.
            headers = link.transport == "http" and link.era == "modern" and {"name", "uri"} & set(params)
            assert (await raw.error(method, **params))["code"] == (-32020 if headers else -32602), method
        await raw.result("tools/list")


@spec("2025-11-25/basic#error-responses", "2026-07-28/basic#error-codes")
@pytest.mark.parametrize("name", LINKS)
async def test_a_store_that_fails_is_an_internal_error_without_an_exception(
    name: str, minded: Minded, tmp_path: Path
) -> None:
    site = Site(tmp_path, minded.settings)
    try:
        link = Link(name, site)
        async with link.raw() as raw:
            await raw.result("resources/list")
            # As a newer Agora leaves it: this one reads and writes it no more.
            with closing(sqlite3.connect(tmp_path / "agora.db", timeout=10)) as other:
                other.execute("PRAGMA user_version = 9999")
            error = await raw.error("resources/list")
            assert error["code"] == -32603
            assert error["data"]["code"]
            assert not any(word in json.dumps(error) for word in ("Traceback", "sqlite3", ".py"))
    finally:
        site.close()


@spec("2025-11-25/basic#requests", "2026-07-28/basic#requests")
async def test_an_id_comes_back_as_it_was_sent(link: Link) -> None:
    async with link.raw() as raw:
        params: dict[str, Any] = {"_meta": ENVELOPE} if link.era == "modern" else {}
        for given in ("a text", "7", "", 7, 0, -5, 10**15):
            answer = await raw.wire.say(line(id=given, method="tools/list", params=params))
            assert answer is not None
            assert (answer["id"], type(answer["id"])) == (given, type(given))


@spec("2025-11-25/basic#notifications", "2026-07-28/basic#notifications")
async def test_a_notification_is_never_answered(link: Link) -> None:
    async with link.raw() as raw:
        for method in ("notifications/no_such", "notifications/cancelled"):
            params: dict[str, Any] = {"requestId": "never-sent"}
            if link.era == "modern":
                params["_meta"] = ENVELOPE
            assert await raw.wire.say(line(method=method, params=params)) is None
        await raw.result("tools/list")


@spec(
    "2026-07-28/basic/transports/streamable-http#standard-request-headers",
    "2026-07-28/basic/transports/streamable-http#server-validation",
)
async def test_headers_that_contradict_the_body_are_refused(site: Site) -> None:
    async with Link("http-modern", site).raw() as raw:
        assert isinstance(raw.wire, HttpWire)
        for wrong in ({"Mcp-Method": "tools/list"}, {"Mcp-Name": "agora_save"}):
            raw.wire.headers = wrong
            error = await raw.error("tools/call", name="agora_status", arguments={})
            assert (error["code"], raw.wire.status) == (-32020, 400)
        raw.wire.headers = {}
        assert (await raw.error("no/such"))["code"] == -32601
        assert raw.wire.status == 404
