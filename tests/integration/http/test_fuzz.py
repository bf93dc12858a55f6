"""Whatever bytes come over HTTP: the process lives, refuses in JSON-RPC, and goes on."""

from __future__ import annotations

import json
import os
import socket
from contextlib import closing, suppress
from typing import TYPE_CHECKING

import httpx2
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.integration.clients import PATIENCE
from tests.integration.fuzzing import JSON, mutated, swapped
from tests.integration.http.wire import handshake, modern, post, rpc

if TYPE_CHECKING:
    from tests.integration.clients import HttpServer

BODIES = [
    json.dumps(body).encode()
    for body in (
        handshake(),
        rpc("tools/list"),
        modern("tools/list")[0],
        modern("server/discover")[0],
        modern("resources/read", uri="agora://status")[0],
        modern("prompts/get", name="session_handoff")[0],
        modern("tools/call", name="agora_query", arguments={"query": "è 😀"})[0],
        modern("subscriptions/listen", notifications={"resourceSubscriptions": ["agora://status"]})[0],
        {"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": 1}},
        {"jsonrpc": "2.0", "id": 1, "result": {}},
    )
]
METHODS = ("tools/list", "tools/call", "server/discover", "resources/read", "prompts/get", "made/up", "")


ANY_BODY = st.one_of(
    st.binary(max_size=200),
    mutated(BODIES),
    swapped(BODIES),
    JSON.map(lambda value: json.dumps(value).encode()),
)
HEADERS = st.fixed_dictionaries(
    {},
    optional={
        "MCP-Protocol-Version": st.sampled_from(["2026-07-28", "2025-06-18", "1999-01-01", "", "x" * 300]),
        "Mcp-Method": st.sampled_from(METHODS),
        "Mcp-Name": st.sampled_from(["agora_query", "other", "é"]).map(lambda name: name.encode().decode("latin-1")),
        "Mcp-Session-Id": st.text(st.characters(min_codepoint=33, max_codepoint=126), max_size=40),
        "Last-Event-ID": st.sampled_from(["1", "x"]),
    },
)
FUZZ = settings(
    max_examples=150,
    deadline=None,
    derandomize="CI" in os.environ,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)


def goes_on(http: httpx2.Client) -> None:
    answer = post(http, *modern("tools/list"))
    assert answer.status_code == 200
    assert "agora_save" in answer.text


# The server process is shared by all examples on purpose: that it outlives each of them is what is tested.
@FUZZ
@given(ANY_BODY, HEADERS)
def test_any_body_and_headers_are_answered_and_the_server_goes_on(
    http: httpx2.Client, body: bytes, headers: dict[str, str]
) -> None:
    raw = {name.encode(): value.encode("latin-1") for name, value in headers.items()}
    sent = {b"Accept": b"application/json, text/event-stream", b"Content-Type": b"application/json", **raw}
    with http.stream("POST", "/mcp", content=body, headers=list(sent.items())) as answer:
        assert answer.status_code < 500 or answer.status_code == 503, answer.read()
        if answer.headers.get("content-type", "").startswith("application/json"):
            found = json.loads(answer.read())
            assert found.get("jsonrpc") == "2.0"
            assert "Traceback" not in json.dumps(found)
    goes_on(http)


@FUZZ
@given(st.binary(max_size=120), st.sampled_from([b"", b"POST /mcp HTTP/1.1\r\n", b"GET /readyz HTTP/1.1\r\nHost: "]))
def test_any_bytes_on_the_socket_leave_the_server_alive(
    server: HttpServer, http: httpx2.Client, raw: bytes, start: bytes
) -> None:
    with closing(socket.create_connection(("127.0.0.1", server.port), PATIENCE)) as connection, suppress(OSError):
        connection.sendall(start + raw)
        connection.shutdown(socket.SHUT_WR)
        while connection.recv(65_536):
            pass
    goes_on(http)
