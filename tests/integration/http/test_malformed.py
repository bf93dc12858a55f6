"""Bodies that are no request: each is answered at once, and the server goes on."""

from __future__ import annotations

import json
import socket
from contextlib import closing, suppress
from typing import Any

import httpx2
import pytest
from tests.integration.clients import PATIENCE, HttpServer
from tests.integration.http.wire import ACCEPT, MODERN, call_modern, handshake, message, modern, open_session, post

MODERN_HEADERS = {"MCP-Protocol-Version": MODERN, "Mcp-Method": "tools/call", "Mcp-Name": "agora_status"}

NOT_JSON = [b"", b"{", b"not json", b"\xff\xfe", b'{"jsonrpc": "2.0"', b"[" * 100_000, b'{"a":' * 50_000, b"\0" * 100]
NO_REQUEST: list[object] = [
    [],
    [handshake()],
    [handshake(), handshake()],
    "text",
    7,
    None,
    {},
    {"jsonrpc": "1.0", "id": 1, "method": "ping"},
    {"jsonrpc": "2.0", "id": 1, "method": 7},
    {"jsonrpc": "2.0", "id": 1, "method": "ping", "params": "x"},
]


@pytest.fixture(scope="module")
def session(server: HttpServer) -> str:
    with server.http() as http:
        return open_session(http)


@pytest.mark.parametrize("era", ["new", "session", "modern"])
@pytest.mark.parametrize("body", NOT_JSON, ids=range(len(NOT_JSON)))
def test_what_is_not_json_is_a_parse_error(
    server: HttpServer, http: httpx2.Client, session: str, body: bytes, era: str
) -> None:
    headers = {"new": {}, "session": {"Mcp-Session-Id": session}, "modern": MODERN_HEADERS}[era]
    answer = post(http, body, headers)
    assert answer.status_code == 400
    found = message(answer)
    assert (found["id"], found["error"]["code"]) == (None, -32700)
    assert server.process.poll() is None


@pytest.mark.parametrize("era", ["new", "session", "modern"])
@pytest.mark.parametrize("body", NO_REQUEST, ids=range(len(NO_REQUEST)))
def test_json_that_is_no_request_is_refused(http: httpx2.Client, session: str, body: object, era: str) -> None:
    headers = {"new": {}, "session": {"Mcp-Session-Id": session}, "modern": MODERN_HEADERS}[era]
    answer = post(http, body, headers)
    assert answer.status_code == 400
    assert "error" in message(answer)


@pytest.mark.parametrize("request_id", [None, {"a": 1}, True, 1.5])
def test_an_id_of_a_wrong_type_is_refused_or_counts_as_none(
    http: httpx2.Client, session: str, request_id: object
) -> None:
    body = {"jsonrpc": "2.0", "id": request_id, "method": "ping"}
    assert post(http, body).status_code == 400
    assert post(http, body, MODERN_HEADERS).status_code == 400
    # In a session the SDK takes it for a notification.
    assert post(http, body, {"Mcp-Session-Id": session}).status_code in {202, 400}


@pytest.mark.parametrize("kind", ["text/plain", "application/x-www-form-urlencoded", "multipart/form-data", ""])
def test_a_body_that_a_web_form_can_send_is_refused(http: httpx2.Client, kind: str) -> None:
    answer = http.post("/mcp", content=json.dumps(handshake()), headers=ACCEPT | {"Content-Type": kind})
    assert answer.status_code == 400


def test_a_method_that_does_not_exist_is_told_apart(http: httpx2.Client, session: str) -> None:
    answer = post(http, *modern("tools/teleport"))
    assert (answer.status_code, message(answer)["error"]["code"]) == (404, -32601)
    request = {"jsonrpc": "2.0", "id": "a", "method": "tools/teleport"}
    found = message(post(http, request, {"Mcp-Session-Id": session}))
    assert (found["id"], found["error"]["code"]) == ("a", -32601)


def test_headers_that_contradict_the_body_are_refused(http: httpx2.Client) -> None:
    body, headers = modern("tools/call", name="agora_status", arguments={})
    for wrong in ({"Mcp-Method": "tools/list"}, {"Mcp-Name": "agora_save"}, {"MCP-Protocol-Version": "2099-01-01"}):
        answer = post(http, body, headers | wrong)
        assert answer.status_code == 400, wrong
        assert message(answer)["error"]["code"] in {-32020, -32022}


ODD: list[tuple[str, str]] = [
    ("content", '"a \\ud800 b"'),
    ("confidence", "NaN"),
    ("confidence", "Infinity"),
    ("confidence", "1e999"),
    ("confidence", "1" * 5_000),
    ("tags", "[[[[]]]]"),
    ("metadata", '{"a":' * 150 + "1" + "}" * 150),
]


@pytest.mark.parametrize(("name", "value"), ODD, ids=range(len(ODD)))
def test_an_odd_value_is_refused_and_nothing_is_kept(http: httpx2.Client, session: str, name: str, value: str) -> None:
    before = call_modern(http, "agora_status")["store"]["sequence"]
    body, headers = modern("tools/call", name="agora_save", arguments={"content": "odd", name: "VALUE"})
    text = json.dumps(body).replace('"VALUE"', value).encode()
    for extra in (headers, {"Mcp-Session-Id": session}):
        answer = post(http, text, extra)
        found = message(answer)
        assert "error" in found or found["result"]["isError"], found
    assert call_modern(http, "agora_status")["store"]["sequence"] == before


@pytest.mark.parametrize(
    "raw",
    [
        b"\r\n\r\n",
        b"GET\r\n\r\n",
        b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03",
        b"POST /mcp HTTP/1.1\r\nHost: x\r\nHost: y\r\n\r\n",
        b"POST /mcp HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: -1\r\n\r\n",
        b"POST /mcp HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\n",
        b"POST /mcp HTTP/1.1\r\nHost: 127.0.0.1\r\nX: " + b"x" * 200_000 + b"\r\n\r\n",
        b"POST http://[ HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n",
    ],
    ids=range(8),
)
def test_what_is_no_http_is_answered_with_400_or_not_at_all(
    server: HttpServer, http: httpx2.Client, raw: bytes
) -> None:
    with closing(socket.create_connection(("127.0.0.1", server.port), PATIENCE)) as connection:
        # The server may refuse and close before it has read it all.
        with suppress(OSError):
            connection.sendall(raw)
            connection.shutdown(socket.SHUT_WR)
        answer = _rest(connection)
    assert answer[:13] in {b"", b"HTTP/1.1 400 ", b"HTTP/1.1 403 "}
    assert call_modern(http, "agora_status")["health"] == "ok"


def _rest(connection: socket.socket) -> bytes:
    found = bytearray()
    # A reset means that the server closed with some of it unread.
    with suppress(ConnectionResetError):
        while part := connection.recv(65_536):
            found += part
    return bytes(found)


def test_anybody_can_send_nonsense_without_filling_the_log(server: HttpServer, http: httpx2.Client) -> None:
    before = server.log
    post(http, b"not json")
    with closing(socket.create_connection(("127.0.0.1", server.port), PATIENCE)) as connection:
        connection.sendall(b"nonsense\r\n\r\n")
        _rest(connection)
    call_modern(http, "agora_status")
    assert server.log == before


def test_an_answer_holds_no_word_of_an_exception(http: httpx2.Client) -> None:
    found: list[Any] = [post(http, body).text for body in (b"{", b"[1]", b'{"jsonrpc":"2.0","id":1}')]
    assert not any(word in text for text in found for word in ("Traceback", "File ", "/site-packages/"))
