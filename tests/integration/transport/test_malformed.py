"""Each malformed line gets the answer that the protocol names, and the next line is served."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from tests.integration.transport.conftest import RawClient

PARSE, REQUEST, METHOD, PARAMS = -32700, -32600, -32601, -32602

MALFORMED: dict[str, tuple[bytes, int, object]] = {
    "text that is not JSON": (b"hello", PARSE, None),
    "half an object": (b'{"jsonrpc": "2.0", "id": 1, "method": "pi', PARSE, None),
    "two objects on one line": (b'{"a": 1} {"b": 2}', PARSE, None),
    "a comment": (b'{"jsonrpc": "2.0", "id": 1} // why', PARSE, None),
    "single quotes": (b"{'jsonrpc': '2.0'}", PARSE, None),
    "a trailing comma": (b'{"jsonrpc": "2.0",}', PARSE, None),
    "a raw control character in a string": (
        b'{"jsonrpc": "2.0", "id": 1, "method": "pi\x01ng"}',
        PARSE,
        None,
    ),
    "a NUL byte": (b'\x00{"jsonrpc": "2.0", "id": 1, "method": "ping"}', PARSE, None),
    "invalid UTF-8": (b'{"jsonrpc": "2.0", "id": 1, "method": "\xff"}', PARSE, None),
    "a surrogate as UTF-8 bytes": (b'{"jsonrpc": "2.0", "id": 1, "method": "\xed\xa0\x80"}', PARSE, None),
    "UTF-16": ('{"jsonrpc": "2.0", "id": 1, "method": "ping"}'.encode("utf-16-le"), PARSE, None),
    "a byte order mark in the middle": (b"\xef\xbb\xbf{}", PARSE, None),
    "NaN": (b'{"jsonrpc": "2.0", "id": 1, "method": "ping", "params": {"x": NaN}}', PARSE, None),
    "minus Infinity": (
        b'{"jsonrpc": "2.0", "id": 1, "method": "ping", "params": {"x": -Infinity}}',
        PARSE,
        None,
    ),
    "a key that appears twice": (b'{"jsonrpc": "2.0", "id": 1, "id": 2, "method": "ping"}', PARSE, None),
    "a key that appears twice inside": (
        b'{"jsonrpc": "2.0", "id": 1, "method": "ping", "params": {"a": 1, "a": 1}}',
        PARSE,
        None,
    ),
    "very deep nesting": (b"[" * 40_000 + b"]" * 40_000, PARSE, None),
    "nesting just too deep": (
        b'{"jsonrpc": "2.0", "id": 1, "method": "ping", "params": {"x": ' + b"[" * 199 + b"]" * 199 + b"}}",
        PARSE,
        None,
    ),
    "an integer beyond what is converted": (b'{"jsonrpc": "2.0", "id": ' + b"9" * 5000 + b"}", PARSE, None),
    "a batch": (b'[{"jsonrpc": "2.0", "id": 1, "method": "ping"}]', REQUEST, None),
    "an empty batch": (b"[]", REQUEST, None),
    "a number": (b"17", REQUEST, None),
    "a string": (b'"ping"', REQUEST, None),
    "null": (b"null", REQUEST, None),
    "an empty object": (b"{}", REQUEST, None),
    "no version": (b'{"id": 1, "method": "ping"}', REQUEST, 1),
    "another version": (b'{"jsonrpc": "1.0", "id": "a", "method": "ping"}', REQUEST, "a"),
    "a version that is a number": (b'{"jsonrpc": 2.0, "id": 1, "method": "ping"}', REQUEST, 1),
    "a notification without a version": (b'{"method": "notifications/initialized"}', REQUEST, None),
    "no method": (b'{"jsonrpc": "2.0", "id": 5}', REQUEST, 5),
    "a method that is a number": (b'{"jsonrpc": "2.0", "id": 5, "method": 1}', REQUEST, 5),
    "a method that is null": (b'{"jsonrpc": "2.0", "id": 5, "method": null}', REQUEST, 5),
    "an id that is null": (b'{"jsonrpc": "2.0", "id": null, "method": "ping"}', REQUEST, None),
    "an id that is a boolean": (b'{"jsonrpc": "2.0", "id": true, "method": "ping"}', REQUEST, None),
    "an id that is a fraction": (b'{"jsonrpc": "2.0", "id": 1.5, "method": "ping"}', REQUEST, None),
    "an id that is an object": (b'{"jsonrpc": "2.0", "id": {}, "method": "ping"}', REQUEST, None),
    "an id that is a list": (b'{"jsonrpc": "2.0", "id": [1], "method": "ping"}', REQUEST, None),
    "an id with a lone surrogate": (b'{"jsonrpc": "2.0", "id": "\\ud800", "method": "ping"}', REQUEST, None),
    "params that are a string": (b'{"jsonrpc": "2.0", "id": 6, "method": "ping", "params": "x"}', REQUEST, 6),
    "params that are a number": (b'{"jsonrpc": "2.0", "id": 6, "method": "ping", "params": 0}', REQUEST, 6),
    "params that are a list": (b'{"jsonrpc": "2.0", "id": 6, "method": "ping", "params": []}', PARAMS, 6),
    "a method with a lone surrogate": (b'{"jsonrpc": "2.0", "id": 7, "method": "\\udfff"}', PARAMS, 7),
    "a lone surrogate in params": (
        b'{"jsonrpc": "2.0", "id": 7, "method": "tools/list", "params": {"cursor": "a\\uD83D"}}',
        PARAMS,
        7,
    ),
    "a lone surrogate in a tool's name": (
        b'{"jsonrpc": "2.0", "id": 7, "method": "tools/call", "params": {"name": "\\ud800"}}',
        PARAMS,
        7,
    ),
    "an unknown method": (b'{"jsonrpc": "2.0", "id": 8, "method": "no/such"}', METHOD, 8),
    "a method without a name": (b'{"jsonrpc": "2.0", "id": 8, "method": ""}', METHOD, 8),
    "a notification's name with an id": (
        b'{"jsonrpc": "2.0", "id": 8, "method": "notifications/initialized"}',
        METHOD,
        8,
    ),
    "a line above the limit": (b'{"jsonrpc": "2.0", "id": 9, "method": "' + b"x" * 100_000, REQUEST, None),
}


@pytest.mark.parametrize("name", MALFORMED)
def test_a_malformed_line_gets_its_code_and_the_connection_lives(shared_client: RawClient, name: str) -> None:
    line, code, request_id = MALFORMED[name]
    shared_client.send(line)
    answer = shared_client.answer(request_id)
    assert answer["error"]["code"] == code, answer
    assert answer["error"]["message"]
    shared_client.ping()


SILENT: dict[str, bytes] = {
    "a blank line": b"",
    "white space": b" \t \r",
    "a notification of an unknown kind": b'{"jsonrpc": "2.0", "method": "notifications/no_such"}',
    "a notification with bad params": b'{"jsonrpc": "2.0", "method": "notifications/progress", "params": 3}',
    "a notification with a request's name": b'{"jsonrpc": "2.0", "method": "tools/list"}',
    "a notification with a lone surrogate": b'{"jsonrpc": "2.0", "method": "x", "params": {"a": "\\ud800"}}',
    "a cancellation of nothing": (
        b'{"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": 99}}'
    ),
    "a cancellation without an id": b'{"jsonrpc": "2.0", "method": "notifications/cancelled"}',
    "a cancellation of a boolean": (
        b'{"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": true}}'
    ),
    "a response that nobody asked for": b'{"jsonrpc": "2.0", "id": 99, "result": {}}',
    "an error that nobody asked for": b'{"jsonrpc": "2.0", "id": null, "error": {"code": 1, "message": "x"}}',
    "a response with a wrong version": b'{"id": 99, "result": {}}',
}


@pytest.mark.parametrize("name", SILENT)
def test_what_needs_no_answer_gets_none(shared_client: RawClient, name: str) -> None:
    shared_client.send(SILENT[name])
    shared_client.ping()


ACCEPTED: dict[str, tuple[bytes, object]] = {
    "an id of forty digits": (
        b'{"jsonrpc": "2.0", "id": ' + b"7" * 40 + b', "method": "ping"}',
        int("7" * 40),
    ),
    "a negative id": (b'{"jsonrpc": "2.0", "id": -1, "method": "ping"}', -1),
    "an empty id": (b'{"jsonrpc": "2.0", "id": "", "method": "ping"}', ""),
    "params that are null": (b'{"jsonrpc": "2.0", "id": 1, "method": "ping", "params": null}', 1),
    "a carriage return at the end": (b'{"jsonrpc": "2.0", "id": 1, "method": "ping"}\r', 1),
    "white space around": (b'  {"jsonrpc" : "2.0", "id": 1, "method": "ping"}  ', 1),
    "unknown members": (b'{"jsonrpc": "2.0", "id": 1, "method": "ping", "extra": [1e999]}', 1),
    "a surrogate pair": (b'{"jsonrpc": "2.0", "id": "\\ud83d\\ude00", "method": "ping"}', "😀"),
    "a backslash before ud800": (rb'{"jsonrpc": "2.0", "id": "\\ud800", "method": "ping"}', "\\ud800"),
}


@pytest.mark.parametrize("name", ACCEPTED)
def test_what_is_unusual_and_valid_is_served(shared_client: RawClient, name: str) -> None:
    line, request_id = ACCEPTED[name]
    shared_client.send(line)
    assert shared_client.answer(request_id)["result"] == {}


def test_the_deepest_nesting_that_is_read_also_comes_back(shared_client: RawClient) -> None:
    nested: Any = "deep"
    for _ in range(197):
        nested = [nested]
    shared_client.call(1, "echo", x=nested)
    assert shared_client.answer(1)["result"]["structuredContent"] == {"got": {"x": nested}}


def test_a_huge_integer_comes_back_digit_by_digit(shared_client: RawClient) -> None:
    shared_client.call(1, "echo", x=10**4000 + 1)
    assert shared_client.answer(1)["result"]["structuredContent"]["got"]["x"] == 10**4000 + 1


ENVELOPE = {
    "io.modelcontextprotocol/protocolVersion": "2026-07-28",
    "io.modelcontextprotocol/clientCapabilities": {},
}


@pytest.mark.parametrize(
    ("arguments", "param"),
    [
        ({"content": "a\ud800"}, "content"),
        ({"ok": "ok", "tags": ["ok", "\udc00"]}, "tags[1]"),
        ({"metadata": {"a": {"b": "\ud83d!"}}}, "metadata.a.b"),
        ({"\ud800": 1}, "\\ud800"),
    ],
)
@pytest.mark.parametrize("meta", [{}, ENVELOPE], ids=["handshake", "stateless"])
def test_a_lone_surrogate_in_a_tools_arguments_is_that_calls_result(
    shared_client: RawClient, arguments: dict[str, Any], param: str, meta: dict[str, Any]
) -> None:
    shared_client.request(3, "tools/call", name="echo", arguments=arguments, _meta=meta)
    result = shared_client.answer(3)["result"]
    assert result["isError"] is True
    problem = result["structuredContent"]["error"]
    assert problem["code"] == "invalid_input"
    assert problem["param"] == param
    assert "surrogate" in problem["reason"]
    assert "\\ud" in problem["received"]
    assert param in result["content"][0]["text"]
    assert result.get("resultType") == ("complete" if meta else None)
    shared_client.ping()


def test_the_limit_is_named_to_whom_exceeds_it(shared_client: RawClient) -> None:
    message = {"jsonrpc": "2.0", "id": 1, "method": "ping", "params": {"x": ""}}
    room = 100_000 - len(json.dumps(message))
    message["params"] = {"x": "y" * room}
    shared_client.send(message)
    assert shared_client.answer(1)["result"] == {}
    message["params"] = {"x": "y" * (room + 1)}
    shared_client.send(message)
    assert "100000 bytes" in shared_client.answer(None)["error"]["message"]
