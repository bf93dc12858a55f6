"""What is not there is refused at once and by name, over stdio and HTTP alike, in both protocol eras.

2026-07-28: a method behind a capability that the server has not is -32601 (schema: MethodNotFoundError), status 404
(basic/transports/streamable-http); what needs a capability of the client's that it has not declared is -32021 (basic,
"Per-request protocol fields"), and Agora needs none. Before that: -32601, whatever the method (basic/lifecycle,
"Operation"); a task that was asked for is ignored (2025-11-25, basic/utilities/tasks).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.integration.clients import HttpServer
from tests.integration.http.wire import handshake, message, modern, open_session, post, rpc
from tests.integration.processes import Served

SECONDS = 10.0
Found = dict[str, Any]
Ask = Callable[..., Found]
TASK = {"ttl": 1_000}


@pytest.fixture(scope="module")
def pipes(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    """A server over stdio with a client that shook hands."""
    home = tmp_path_factory.mktemp("pipes")
    served = Served(home, home / "stderr.txt", home)
    served.initialize()
    yield served
    served.process.kill()
    served.process.communicate(timeout=SECONDS)


@pytest.fixture(params=["stdio", "http"])
def legacy(request: pytest.FixtureRequest, pipes: Served, server: HttpServer) -> Iterator[Ask]:
    """Asks after a handshake; what comes back is the whole answer."""
    if request.param == "stdio":
        yield lambda method, **params: pipes.answer(pipes.post(method, params), SECONDS)
        return
    with server.http() as http:
        session = {"Mcp-Session-Id": open_session(http)}
        yield lambda method, **params: message(post(http, rpc(method, **params), session))


@pytest.fixture(params=["stdio", "http"])
def stateless(request: pytest.FixtureRequest, pipes: Served, server: HttpServer) -> Iterator[Ask]:
    """Asks with an envelope, whose capabilities may be given; over HTTP the answer has its `status` beside it."""
    declared = "io.modelcontextprotocol/clientCapabilities"
    if request.param == "stdio":

        def over_stdio(method: str, capabilities: object = None, **params: Any) -> Found:
            body, _ = modern(method, **params)
            body["params"]["_meta"][declared] = {} if capabilities is None else capabilities
            return pipes.answer(pipes.post(method, body["params"]), SECONDS)

        yield over_stdio
        return
    with server.http() as http:

        def over_http(method: str, capabilities: object = None, **params: Any) -> Found:
            body, headers = modern(method, **params)
            body["params"]["_meta"][declared] = {} if capabilities is None else capabilities
            if "uri" in params:
                headers["Mcp-Name"] = params["uri"]
            answer = post(http, body, headers)
            return message(answer) | {"status": answer.status_code}

        yield over_http


GONE: list[tuple[str, dict[str, Any]]] = [
    ("tasks/list", {}),
    ("tasks/get", {"taskId": "x"}),
    ("tasks/cancel", {"taskId": "x"}),
    ("tasks/result", {"taskId": "x"}),
    ("subscriptions/listen", {"notifications": {}}),
    ("elicitation/create", {"message": "?", "requestedSchema": {}}),
    ("sampling/createMessage", {"messages": [], "maxTokens": 1}),
    ("roots/list", {}),
    ("acme/teleport", {}),
]


@pytest.mark.parametrize(("method", "params"), GONE, ids=[method for method, _ in GONE])
def test_a_method_that_is_not_offered_after_a_handshake_is_unknown(
    legacy: Ask, method: str, params: dict[str, Any]
) -> None:
    error = legacy(method, **params)["error"]
    assert error["code"] == -32601
    assert error["data"]["method"] == method
    assert error["message"] == f"Method not found: {method}: {error['data']['reason']}"


NOT_STATELESS = [
    *(case for case in GONE if case[0] != "subscriptions/listen"),
    ("resources/subscribe", {"uri": "agora://status"}),
    ("resources/unsubscribe", {"uri": "agora://status"}),
    ("logging/setLevel", {"level": "info"}),
    ("ping", {}),
]


@pytest.mark.parametrize(("method", "params"), NOT_STATELESS, ids=[method for method, _ in NOT_STATELESS])
def test_a_method_that_is_not_offered_without_a_handshake_is_unknown(
    stateless: Ask, method: str, params: dict[str, Any]
) -> None:
    answer = stateless(method, **params)
    error = answer["error"]
    assert error["code"] == -32601
    assert error["data"]["method"] == method
    assert error["message"] == f"Method not found: {method}: {error['data']['reason']}"
    assert answer.get("status", 404) == 404


READS: list[tuple[str, dict[str, Any]]] = [
    ("server/discover", {}),
    ("tools/list", {}),
    ("tools/call", {"name": "agora_save", "arguments": {"content": "Asked of nobody but the server."}}),
    ("tools/call", {"name": "agora_query", "arguments": {"query": "asked of nobody"}}),
    ("tools/call", {"name": "agora_status", "arguments": {}}),
    ("prompts/get", {"name": "session_handoff"}),
    ("resources/read", {"uri": "agora://status"}),
]


@pytest.mark.parametrize(("method", "params"), READS, ids=range(len(READS)))
def test_nothing_that_is_offered_needs_a_capability_of_the_client(
    stateless: Ask, method: str, params: dict[str, Any]
) -> None:
    answer = stateless(method, {}, **params)
    assert "error" not in answer, answer
    assert answer["result"]["resultType"] == "complete"
    assert not answer["result"].get("isError")


UNKNOWN: list[dict[str, Any]] = [
    {"teleport": {}},
    {"experimental": {"x": {}}},
    {"extensions": {"io.modelcontextprotocol/tasks": {}}},
    {"tasks": {"requests": {"tools": {"call": {}}}}},
]


@pytest.mark.parametrize("capabilities", UNKNOWN, ids=range(len(UNKNOWN)))
def test_what_a_client_could_do_besides_is_not_held_against_it_and_not_relied_on(
    stateless: Ask, capabilities: dict[str, Any]
) -> None:
    answer = stateless("tools/call", capabilities, name="agora_status", arguments={}, task=TASK)
    # A task would be another kind of result.
    assert answer["result"]["resultType"] == "complete"
    assert answer["result"]["structuredContent"]["health"] == "ok"
    offered = stateless("server/discover", capabilities)["result"]["capabilities"]
    assert not {"tasks", "extensions", "experimental"} & {name for name, value in offered.items() if value}


def test_a_task_that_is_asked_for_after_a_handshake_is_an_ordinary_call(legacy: Ask) -> None:
    result = legacy("tools/call", name="agora_status", arguments={}, task=TASK)["result"]
    assert "task" not in result
    assert result["structuredContent"]["health"] == "ok"


MALFORMED: list[object] = [[], "all", 7, {"sampling": 7}, {"roots": "x"}, {"extensions": 7}, {"elicitation": []}]


@pytest.mark.parametrize("capabilities", MALFORMED, ids=range(len(MALFORMED)))
def test_capabilities_that_are_none_are_refused(stateless: Ask, capabilities: object) -> None:
    answer = stateless("tools/call", capabilities, name="agora_status", arguments={})
    error = answer["error"]
    assert error["code"] == -32602
    assert error["message"] == f"Invalid params: {error['data']['param']}: must be an object"
    assert error["data"]["param"].startswith("params._meta.io.modelcontextprotocol/clientCapabilities")
    assert answer.get("status", 400) == 400


@pytest.mark.parametrize("capabilities", [None, *MALFORMED], ids=range(len(MALFORMED) + 1))
def test_a_handshake_with_malformed_capabilities_is_refused_and_opens_no_session(
    server: HttpServer, pipes: Served, capabilities: object
) -> None:
    opening = handshake()
    if capabilities is None:
        del opening["params"]["capabilities"]
    else:
        opening["params"]["capabilities"] = capabilities
    with server.http() as http:
        error = message(post(http, opening))["error"]
    assert error == pipes.answer(pipes.post("initialize", opening["params"]), SECONDS)["error"]
    assert error["code"] == -32602
    assert error["data"]["param"].startswith("params.capabilities")
    assert error["data"]["reason"] in {"is missing", "must be an object"}
    # The one that was made before still stands.
    assert pipes.answer(pipes.post("ping"), SECONDS)["result"] == {}


def test_a_client_that_shakes_hands_is_told_what_there_is(server: HttpServer, tmp_path: Path) -> None:
    served = Served(tmp_path, tmp_path / "stderr.txt", tmp_path)
    opening = handshake()
    opening["params"]["capabilities"] = {"tasks": {"list": {}}, "teleport": {}, "roots": {}}
    try:
        over_stdio = served.request("initialize", opening["params"])["result"]["capabilities"]
    finally:
        served.process.kill()
        served.process.communicate(timeout=SECONDS)
    with server.http() as http:
        over_http = message(post(http, opening))["result"]["capabilities"]
    assert over_stdio == over_http
    assert set(over_http) == {"tools", "resources", "prompts", "completions", "logging"}
    assert over_http["resources"] == {"listChanged": True, "subscribe": True}
