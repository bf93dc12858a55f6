"""How a connection begins, what it may be asked before and after, and how that is seen."""

from __future__ import annotations

import warnings

import pytest
from mcp import MCPDeprecationWarning
from tests.protocol.links import ENVELOPE, HANDSHAKES, LINKS, Link, Site, line, ok
from tests.protocol.spec import spec
from tests.protocol.wires import HttpWire

from agora import __version__
from agora.protocol.server import INSTRUCTIONS

pytestmark = pytest.mark.anyio


@spec("2025-11-25/basic/lifecycle#initialization", "2026-07-28/server/discover#response")
async def test_a_client_learns_the_name_the_version_and_the_instructions(link: Link) -> None:
    async with link.client() as client:
        assert client.protocol_version == link.version
        assert client.server_info is not None
        assert (client.server_info.name, client.server_info.version) == ("agora", __version__)
        assert client.instructions == INSTRUCTIONS


@spec("2025-11-25/basic/lifecycle#capability-negotiation", "2026-07-28/server/discover#discoverresult")
async def test_the_capabilities_are_those_that_there_are(link: Link) -> None:
    async with link.client() as client:
        offered = client.server_capabilities.model_dump(exclude_none=True)
    assert {"tools", "resources", "prompts", "completions"} <= set(offered)
    assert offered["resources"] == {"subscribe": True, "list_changed": True}
    assert offered["prompts"] == offered["tools"] == {"list_changed": True}


@spec("2025-11-25/basic/lifecycle#version-negotiation")
@pytest.mark.parametrize("version", HANDSHAKES)
async def test_each_version_with_a_handshake_is_spoken(legacy: Link, version: str) -> None:
    async with legacy.raw(version=version) as raw:
        assert raw.greeting["protocolVersion"] == version
        assert raw.greeting["serverInfo"]["name"] == "agora"
        result = await raw.result("tools/call", name="agora_status", arguments={})
        assert result["structuredContent"]["connection"]["protocol"] == version
        assert "resultType" not in result


@spec("2025-11-25/basic/lifecycle#version-negotiation")
async def test_a_version_without_handshake_is_answered_with_the_newest_that_has_one(legacy: Link) -> None:
    for version in ("2031-01-01", "2026-07-28", "nonsense"):
        async with legacy.raw(version=version) as raw:
            assert raw.greeting["protocolVersion"] == "2025-11-25"


@spec("2026-07-28/basic/versioning#protocol-version-negotiation", "2026-07-28/basic#error-codes")
async def test_an_unknown_version_is_refused_with_those_that_are_known(modern: Link) -> None:
    async with modern.raw() as raw:
        meta = ENVELOPE | {"io.modelcontextprotocol/protocolVersion": "2031-01-01"}
        error = await raw.error("tools/list", _meta=meta)
        assert error["code"] == -32022
        assert error["data"]["requested"] == "2031-01-01"
        assert "2026-07-28" in error["data"]["supported"]


@spec("2026-07-28/server/discover#request", "2026-07-28/server/discover#response")
async def test_discover_tells_versions_capabilities_and_how_long_that_holds(modern: Link) -> None:
    async with modern.raw() as raw:
        found = await raw.result("server/discover")
        assert "2026-07-28" in found["supportedVersions"]
        assert {"tools", "resources", "prompts"} <= set(found["capabilities"])
        assert found["instructions"] == INSTRUCTIONS
        assert found["resultType"] == "complete"
        assert found["ttlMs"] >= 0
        assert found["cacheScope"] in {"public", "private"}


@spec("2026-07-28/basic/versioning#backward-compatibility-with-initialization-based-versions")
async def test_a_handshake_after_a_probe_on_the_same_connection_is_served(legacy: Link) -> None:
    async with legacy.bare() as wire:
        if isinstance(wire, HttpWire):
            wire.headers = {"MCP-Protocol-Version": "2026-07-28", "Mcp-Method": "server/discover"}
        answer = await wire.say(line(id=1, method="server/discover", params={"_meta": ENVELOPE}))
        assert answer is not None
        assert "2026-07-28" in answer["result"]["supportedVersions"]
        if isinstance(wire, HttpWire):
            wire.headers = {}
        given = {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "x", "version": "1"}}
        answer = await wire.say(line(id=2, method="initialize", params=given))
        assert answer is not None
        assert answer["result"]["protocolVersion"] == "2025-06-18"
        assert await wire.say(line(method="notifications/initialized")) is None
        answer = await wire.say(line(id=3, method="tools/list"))
        assert answer is not None
        assert "resultType" not in answer["result"]


@spec("2025-11-25/basic/lifecycle#initialization")
async def test_a_request_before_the_handshake_is_refused(legacy: Link) -> None:
    async with legacy.bare() as wire:
        answer = await wire.say(line(id=1, method="tools/list", params={}))
        assert answer is not None
        # Over HTTP it is the session that is missing.
        assert answer["error"]["code"] == (-32600 if legacy.transport == "http" else -32602)


@spec("2026-07-28/basic#meta")
async def test_an_envelope_without_capabilities_is_refused(modern: Link) -> None:
    async with modern.raw() as raw:
        meta = {"io.modelcontextprotocol/protocolVersion": "2026-07-28"}
        error = await raw.error("tools/list", _meta=meta)
        assert error["code"] == -32602
        assert "clientCapabilities" in error["message"]


@spec("2025-11-25/basic/utilities/ping#behavior-requirements")
async def test_a_ping_is_answered_with_nothing(legacy: Link) -> None:
    async with legacy.client() as client:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", MCPDeprecationWarning)
            await client.send_ping()
    async with legacy.raw() as raw:
        assert await raw.result("ping") == {}


@spec("2025-11-25/basic/lifecycle#operation", "2026-07-28/basic#statelessness")
async def test_the_status_shows_the_state_of_the_connection_that_asks(link: Link) -> None:
    async with link.client(fresh=True) as client:
        shown = (await ok(client, "agora_status"))["connection"]
        assert (shown["state"], shown["transport"], shown["protocol"]) == ("processing", link.transport, link.version)
        assert shown["running"] >= 1
        before = shown["requests"]
        assert (await ok(client, "agora_status"))["connection"]["requests"] > before


@spec("2026-07-28/basic#statelessness")
@pytest.mark.parametrize("name", [name for name in LINKS if name.endswith("legacy") and not name.startswith("http")])
async def test_requests_of_both_eras_share_a_connection_of_lines(name: str, site: Site) -> None:
    async with Link(name, site).raw() as raw:
        answer = await raw.result("tools/call", name="agora_status", arguments={}, _meta=ENVELOPE)
        assert answer["resultType"] == "complete"
        assert answer["structuredContent"]["connection"]["protocol"] == "2026-07-28"
        assert "resultType" not in await raw.result("tools/list")
