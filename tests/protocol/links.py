"""Real clients over every transport, in both protocol eras. `WAYS` is the table of transports.

A new transport is one entry in `WAYS`; one that is another `agora serve` over pipes differs by its environment alone.
"""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from itertools import count
from pathlib import Path
from typing import Any, Literal

from mcp import Client
from mcp_types import Implementation
from tests.protocol.bench import checked, error_of
from tests.protocol.pipes import InMemory, OverLines, Pipes, SharedPipes
from tests.protocol.wires import OverHttp, Place, Way, Wire

Era = Literal["legacy", "modern"]
ERAS: tuple[Era, ...] = ("legacy", "modern")
VERSIONS: dict[Era, str] = {"legacy": "2025-11-25", "modern": "2026-07-28"}
HANDSHAKES = ("2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25")
ENVELOPE = {
    "io.modelcontextprotocol/protocolVersion": "2026-07-28",
    "io.modelcontextprotocol/clientCapabilities": {},
    "io.modelcontextprotocol/clientInfo": {"name": "raw", "version": "1"},
}

WAYS: dict[str, Callable[[Place], Way]] = {
    "memory": lambda place: OverLines(InMemory(place)),
    "stdio": lambda place: OverLines(Pipes(place, environment={})),
    "shared": lambda place: OverLines(SharedPipes(place)),
    "http": OverHttp,
}
"""Every transport, by the name that `agora_status` gives it: from a data folder and settings to a way to connect."""

LINKS = [f"{way}-{era}" for way in WAYS for era in ERAS]


class Site:
    """One data folder and whatever serves it; a way is opened by its first client, and all of them share the store."""

    def __init__(self, home: Path, settings: Mapping[str, object]) -> None:
        self.place = Place(home, dict(settings))
        self._ways: dict[str, Way] = {}

    def way(self, name: str) -> Way:
        if name not in self._ways:
            self._ways[name] = WAYS[name](self.place)
        return self._ways[name]

    def close(self) -> None:
        for way in self._ways.values():
            way.close()


_numbers = count(1)


class Link:
    """One transport and one era: clients of that kind, and a namespace that no other test uses."""

    def __init__(self, name: str, site: Site) -> None:
        """`name` is one of `LINKS`."""
        self.transport, _, era = name.partition("-")
        self.era: Era = "legacy" if era == "legacy" else "modern"
        self.site = site
        self.space = f"acme/space-{next(_numbers)}"

    @property
    def way(self) -> Way:
        return self.site.way(self.transport)

    @property
    def version(self) -> str:
        return VERSIONS[self.era]

    @property
    def missing(self) -> int:
        """The code for a resource that is not there."""
        return -32002 if self.era == "legacy" else -32602

    def client(self, *, name: str = "tester", fresh: bool = False, **given: Any) -> Client:
        """The official SDK's client; `fresh` for a connection that no other client has used."""
        mode = "legacy" if self.era == "legacy" else "auto"
        info = Implementation(name=name, version="1.2")
        # The cache of the client would answer in the server's place.
        return Client(self.way.transport(fresh=fresh), mode=mode, client_info=info, cache=None, **given)

    def elsewhere(self, name: str = "bob") -> Client:
        """A client of another process with the same store."""
        info = Implementation(name=name, version="1")
        return Client(self.site.way("stdio").transport(fresh=False), client_info=info, cache=None)

    @asynccontextmanager
    async def raw(self, *, version: str | None = None, fresh: bool = False) -> AsyncIterator[Raw]:
        """A client that sends any bytes; it has shaken hands if its era does so, by `version` if that is given."""
        async with self.way.wire(self.era, fresh=fresh) as wire:
            raw = Raw(wire, self.era)
            if self.era == "legacy":
                await raw.shake_hands(version or self.version)
            yield raw

    def bare(self, *, fresh: bool = True) -> AbstractAsyncContextManager[Wire]:
        """As `raw`, before anything was said."""
        return self.way.wire(self.era, fresh=fresh)


class Raw:
    """Requests written by hand."""

    def __init__(self, wire: Wire, era: Era) -> None:
        self.wire = wire
        self.era = era
        self.greeting: dict[str, Any] = {}
        """The result of the handshake, if there was one."""

    async def shake_hands(self, version: str) -> None:
        given = {"protocolVersion": version, "capabilities": {}, "clientInfo": {"name": "raw", "version": "1"}}
        answer = await self.wire.say(line(method="initialize", id=f"hands-{next(_numbers)}", params=given))
        assert answer is not None
        self.greeting = answer["result"]
        assert await self.wire.say(line(method="notifications/initialized")) is None

    async def request(self, method: str, /, **params: Any) -> dict[str, Any]:
        """The whole answer to a request, with the envelope of its era."""
        if self.era == "modern":
            params = {"_meta": ENVELOPE, **params}
        number = next(_numbers)
        answer = await self.wire.say(line(id=number, method=method, params=params))
        assert answer is not None
        assert (answer["jsonrpc"], answer["id"]) == ("2.0", number)
        assert ("result" in answer) != ("error" in answer)
        return answer

    async def result(self, method: str, /, **params: Any) -> dict[str, Any]:
        answer = await self.request(method, **params)
        assert "result" in answer, answer
        found: dict[str, Any] = answer["result"]
        return found

    async def error(self, method: str, /, **params: Any) -> dict[str, Any]:
        answer = await self.request(method, **params)
        assert "error" in answer, answer
        found: dict[str, Any] = answer["error"]
        return found


def line(**message: Any) -> bytes:
    return json.dumps({"jsonrpc": "2.0", **message}).encode()


async def ok(client: Client, tool: str, **arguments: Any) -> dict[str, Any]:
    """The structured result of a call that works, checked against the tool's own schema and its text copy."""
    result = await client.call_tool(tool, arguments)
    assert not result.is_error, result.structured_content
    return checked(tool, result)


async def refused(client: Client, tool: str, **arguments: Any) -> dict[str, Any]:
    """The error of a call that does not work, checked for its form."""
    result = await client.call_tool(tool, arguments)
    assert result.is_error, result.structured_content
    return error_of(tool, result)
