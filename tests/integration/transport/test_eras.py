"""Both protocol eras on one pipe."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from tests.integration.transport.conftest import RawClient

ENVELOPE = {
    "io.modelcontextprotocol/protocolVersion": "2026-07-28",
    "io.modelcontextprotocol/clientCapabilities": {},
}


def modern_call(client: RawClient, request_id: object, tool: str, **arguments: Any) -> None:
    client.request(request_id, "tools/call", name=tool, arguments=arguments, _meta=ENVELOPE)


@pytest.mark.parametrize("version", ["2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25"])
def test_every_handshake_version_is_spoken(client: RawClient, version: str) -> None:
    assert client.initialize(version)["result"]["protocolVersion"] == version
    client.call(2, "echo", text="ciao")
    result = client.answer(2)["result"]
    assert result["content"] == [{"type": "text", "text": "echo done"}]
    assert "resultType" not in result


def test_a_version_without_handshake_is_negotiated_down_to_one_with(client: RawClient) -> None:
    assert client.initialize("2026-07-28")["result"]["protocolVersion"] == "2025-11-25"


def test_the_stateless_version_is_spoken_without_a_handshake(client: RawClient) -> None:
    client.request(1, "server/discover", _meta=ENVELOPE)
    assert "2026-07-28" in client.answer(1)["result"]["supportedVersions"]
    modern_call(client, 2, "echo", text="ciao")
    result = client.answer(2)["result"]
    assert result["resultType"] == "complete"
    assert result["structuredContent"] == {"got": {"text": "ciao"}}


def test_a_handshake_sent_before_the_probe_is_answered_is_served(client: RawClient) -> None:
    client.request("probe", "server/discover", _meta=ENVELOPE)
    client.request(
        0,
        "initialize",
        protocolVersion="2025-06-18",
        capabilities={},
        clientInfo={"name": "impatient", "version": "1"},
    )
    client.send({"jsonrpc": "2.0", "method": "notifications/initialized"})
    client.call(1, "echo")
    frames = [client.next() for _ in range(3)]
    answers = {answer["id"]: answer for answer in frames if answer is not None}
    assert "supportedVersions" in answers["probe"]["result"]
    assert answers[0]["result"]["protocolVersion"] == "2025-06-18"
    assert answers[1]["result"]["structuredContent"] == {"got": {}}


def test_stateless_requests_are_served_beside_a_handshake(client: RawClient) -> None:
    client.initialize()
    modern_call(client, 1, "echo")
    assert client.answer(1)["result"]["resultType"] == "complete"
    client.call(2, "echo")
    assert "resultType" not in client.answer(2)["result"]


def test_a_version_that_nobody_speaks_is_refused_with_those_that_are(client: RawClient) -> None:
    meta = ENVELOPE | {"io.modelcontextprotocol/protocolVersion": "2031-01-01"}
    client.request(1, "tools/list", _meta=meta)
    problem = client.answer(1)["error"]
    assert problem["code"] == -32022
    assert problem["data"] == {"supported": ["2026-07-28"], "requested": "2031-01-01"}


def test_an_envelope_without_capabilities_is_refused(client: RawClient) -> None:
    client.request(1, "tools/list", _meta={"io.modelcontextprotocol/protocolVersion": "2026-07-28"})
    problem = client.answer(1)["error"]
    assert problem["code"] == -32602
    assert "clientCapabilities" in problem["message"]


def test_a_request_with_neither_envelope_nor_handshake_is_refused(client: RawClient) -> None:
    for method in ("tools/list", "tools/call", "server/discover", "subscriptions/listen"):
        client.request(method, method, name="echo")
        problem = client.answer(method)["error"]
        assert problem["code"] == -32602
        assert "_meta" in problem["message"]


def test_an_unknown_method_is_unknown_before_and_after_the_handshake(client: RawClient) -> None:
    client.request(1, "no/such")
    assert client.answer(1)["error"]["code"] == -32601
    client.initialize()
    client.request(2, "no/such")
    assert client.answer(2)["error"]["code"] == -32601
    client.request(3, "no/such", _meta=ENVELOPE)
    assert client.answer(3)["error"]["code"] == -32601


def test_a_ping_is_answered_before_the_handshake_and_does_not_stand_for_it(client: RawClient) -> None:
    client.ping()
    client.send({"jsonrpc": "2.0", "method": "notifications/initialized"})
    client.call(1, "echo")
    assert client.answer(1)["error"]["code"] == -32602
    client.initialize()
    client.call(2, "echo")
    assert "result" in client.answer(2)


def test_calls_right_behind_an_unanswered_handshake_are_served(client: RawClient) -> None:
    client.request(
        1,
        "initialize",
        protocolVersion="2025-06-18",
        capabilities={},
        clientInfo={"name": "x", "version": "1"},
    )
    client.call(2, "echo")
    assert "result" in client.answer(1)
    assert "result" in client.answer(2)


def test_the_server_can_ask_its_client_in_the_handshake_era(client: RawClient) -> None:
    client.initialize()
    client.call(1, "roots")
    asked = client.next()
    assert asked is not None
    assert asked["method"] == "roots/list"
    # An answer that cannot be used must not leave the call waiting, one to nobody must not matter.
    client.send({"jsonrpc": "2.0", "id": 4711, "result": {}})
    client.send({"jsonrpc": "2.0", "id": asked["id"], "result": {"roots": [{"uri": "file:///a"}]}})
    assert client.answer(1)["result"]["structuredContent"] == {"got": {"roots": ["file:///a"]}}
    client.call(2, "roots")
    asked = client.next()
    assert asked is not None
    client.send({"jsonrpc": "2.0", "id": asked["id"], "result": "nonsense"})
    assert client.answer(2)["error"]["code"] == -32600


def test_a_subscription_acknowledges_and_ends_with_a_cancellation(client: RawClient) -> None:
    client.request("s", "subscriptions/listen", notifications={"toolsListChanged": True}, _meta=ENVELOPE)
    acknowledged = client.next()
    assert acknowledged is not None
    assert acknowledged["method"] == "notifications/subscriptions/acknowledged"
    client.send({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": "s"}})
    client.ping()
