"""MCP requests over HTTP written out by hand, for what no client library would send."""

from __future__ import annotations

import json
import re
import threading
import time
from collections.abc import Callable
from typing import Any

import httpx2
from tests.integration.clients import PATIENCE

ACCEPT = {"Accept": "application/json, text/event-stream", "Content-Type": "application/json"}
MODERN = "2026-07-28"


def rpc(method: str, request_id: object = 1, **params: Any) -> dict[str, Any]:
    """A request of the handshake era."""
    return {"jsonrpc": "2.0", "id": request_id, "method": method, "params": params}


def handshake(name: str = "raw", version: str = "2025-06-18") -> dict[str, Any]:
    """The request that opens a session."""
    info = {"name": name, "version": "1"}
    return rpc("initialize", protocolVersion=version, capabilities={}, clientInfo=info)


def post(http: httpx2.Client, body: object, headers: dict[str, str] | None = None) -> httpx2.Response:
    """The answer to a body, which is JSON unless it is bytes."""
    content = body if isinstance(body, bytes) else json.dumps(body).encode()
    return http.post("/mcp", content=content, headers=ACCEPT | (headers or {}))


def open_session(http: httpx2.Client, name: str = "raw") -> str:
    """The id of a new session that is ready for calls."""
    answer = post(http, handshake(name))
    assert answer.status_code == 200, answer.text
    session = answer.headers["mcp-session-id"]
    ready = {"jsonrpc": "2.0", "method": "notifications/initialized"}
    assert post(http, ready, {"Mcp-Session-Id": session}).status_code == 202
    return session


def call(http: httpx2.Client, session: str, tool: str, **arguments: Any) -> dict[str, Any]:
    """The structured result of a tool call in a session."""
    answer = post(http, rpc("tools/call", name=tool, arguments=arguments), {"Mcp-Session-Id": session})
    assert answer.status_code == 200, answer.text
    found: dict[str, Any] = message(answer)["result"]["structuredContent"]
    return found


def modern(method: str, request_id: object = 1, **params: Any) -> tuple[dict[str, Any], dict[str, str]]:
    """A request of the stateless era and the headers that go with it."""
    meta = {
        "io.modelcontextprotocol/protocolVersion": MODERN,
        "io.modelcontextprotocol/clientCapabilities": {},
        "io.modelcontextprotocol/clientInfo": {"name": "raw", "version": "1"},
    }
    headers = {"MCP-Protocol-Version": MODERN, "Mcp-Method": method}
    if "name" in params:
        headers["Mcp-Name"] = params["name"]
    return rpc(method, request_id, **params, _meta=meta), headers


def call_modern(http: httpx2.Client, tool: str, **arguments: Any) -> dict[str, Any]:
    """The structured result of a stateless tool call."""
    answer = post(http, *modern("tools/call", name=tool, arguments=arguments))
    assert answer.status_code == 200, answer.text
    found: dict[str, Any] = message(answer)["result"]["structuredContent"]
    return found


def message(answer: httpx2.Response) -> dict[str, Any]:
    """The JSON-RPC message in an answer: its body, or the last event of its stream."""
    if answer.headers["content-type"].startswith("text/event-stream"):
        events = re.findall(r"^data: ?(\{.*\})\r?$", answer.text, re.MULTILINE)
        assert events, answer.text
        text = events[-1]
    else:
        text = answer.text
    found: dict[str, Any] = json.loads(text)
    assert found["jsonrpc"] == "2.0", text
    return found


def value(page: str, name: str) -> float:
    """The value of one line of the metrics, labels and all; 0 if there is none."""
    found = re.search(rf"^{re.escape(name)} (\S+)$", page, re.MULTILINE)
    return float(found[1]) if found else 0.0


def until(attempt: Callable[[], Any], seconds: float = PATIENCE) -> Any:
    """What `attempt` returns as soon as it is something."""
    deadline = time.monotonic() + seconds
    pause = threading.Event()
    while (found := attempt()) is None:
        assert time.monotonic() < deadline
        pause.wait(0.05)
    return found
