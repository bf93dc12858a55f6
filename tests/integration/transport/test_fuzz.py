"""Whatever bytes come: the process lives, and says nothing that is not JSON-RPC."""

from __future__ import annotations

import json
import os
from typing import TYPE_CHECKING

from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st
from tests.integration.fuzzing import JSON, mutated, swapped

if TYPE_CHECKING:
    from tests.integration.transport.conftest import RawClient

META = {
    "io.modelcontextprotocol/protocolVersion": "2026-07-28",
    "io.modelcontextprotocol/clientCapabilities": {},
}
VALID = [
    json.dumps({"jsonrpc": "2.0", **message}).encode()
    for message in (
        {"id": 1, "method": "ping"},
        {"id": "a", "method": "tools/list", "params": {}},
        {"id": 2, "method": "tools/list", "params": {"_meta": META}},
        {"id": 3, "method": "server/discover", "params": {"_meta": META}},
        {"id": 4, "method": "tools/call", "params": {"name": "echo", "arguments": {"text": "è 😀 \u0000"}}},
        {
            "id": 5,
            "method": "initialize",
            "params": {
                "protocolVersion": "2025-06-18",
                "capabilities": {},
                "clientInfo": {"name": "x", "version": "1"},
            },
        },
        {"id": 6, "method": "tools/call", "params": {"name": "echo", "arguments": {}, "_meta": META}},
        {"method": "notifications/cancelled", "params": {"requestId": 4}},
        {"method": "notifications/progress", "params": {"progressToken": 1, "progress": 0.5}},
        {"id": 7, "result": {}},
        {"id": 8, "error": {"code": -1, "message": "no"}},
    )
]

LINES = st.one_of(
    st.binary(max_size=200),
    mutated(VALID),
    swapped(VALID),
    JSON.map(lambda value: json.dumps(value).encode()),
    st.builds(lambda line, end: line[:end], st.sampled_from(VALID), st.integers(0, 200)),
)


# The server process is shared by all examples on purpose: that it outlives each of them is what is tested.
@settings(
    max_examples=200,
    deadline=None,
    derandomize="CI" in os.environ,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
@example(b'{"jsonrpc":"2.0","id":1,"method":"ping"}\n' * 3)
@given(LINES)
def test_any_bytes_leave_the_server_able_to_answer(shared_client: RawClient, line: bytes) -> None:
    shared_client.send(line)
    probe = f"probe-{len(shared_client.lines)}"
    shared_client.send({"jsonrpc": "2.0", "id": probe, "method": "ping"})
    while True:
        found = shared_client.next()
        assert found is not None, shared_client.log()
        if found.get("id") == probe:
            assert found["result"] == {}
            break
