"""What every transport offers a test, and how HTTP offers it."""

from __future__ import annotations

import json
import ssl
from collections.abc import AsyncIterator
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NoReturn, Protocol

import httpx2
from mcp.client.streamable_http import streamable_http_client
from tests.integration.clients import PATIENCE, HttpServer
from tests.integration.http.wire import ACCEPT, MODERN, message


@dataclass(frozen=True)
class Place:
    """A data folder and the settings, by dotted name, of every server on it."""

    home: Path
    settings: dict[str, object]


class Wire(Protocol):
    """A connection for any bytes."""

    async def say(self, message: bytes) -> dict[str, Any] | None:
        """The answer to one message; None if there is none, which is known as soon as the next would be answered."""
        ...


class Way(Protocol):
    """One transport to servers on one data folder. Servers start when they are needed and are shared by clients."""

    def transport(self, *, fresh: bool) -> AbstractAsyncContextManager[Any]:
        """A connection for the SDK's client; `fresh` for one that nobody has used."""
        ...

    def wire(self, era: str, *, fresh: bool) -> AbstractAsyncContextManager[Wire]:
        """A connection for bytes of a client of that era."""
        ...

    def close(self) -> None:
        """End every server."""
        ...


class OverHttp:
    """One `agora serve --http` for all clients."""

    def __init__(self, place: Place) -> None:
        self._server = HttpServer(place.home, settings=place.settings | {"http.rate": 100_000})
        self._server.__enter__()

    @asynccontextmanager
    async def transport(self, *, fresh: bool) -> AsyncIterator[Any]:
        # Each client has a session of its own, or none at all.
        del fresh
        async with self._http() as http, streamable_http_client(self._server.url, http_client=http) as streams:
            yield streams

    @asynccontextmanager
    async def wire(self, era: str, *, fresh: bool) -> AsyncIterator[HttpWire]:
        del fresh
        async with self._http() as http:
            yield HttpWire(http, modern=era == "modern")

    def _http(self) -> httpx2.AsyncClient:
        return httpx2.AsyncClient(
            base_url=self._server.origin,
            headers={"Authorization": f"Bearer {self._server.token}"},
            timeout=PATIENCE,
            # Without TLS: no 25 ms for reading the system's certificates.
            verify=ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT),
        )

    def close(self) -> None:
        self._server.__exit__()


class HttpWire:
    """Posts bytes with the headers that go with them."""

    def __init__(self, http: httpx2.AsyncClient, *, modern: bool) -> None:
        self._http = http
        self._modern = modern
        self._session: str | None = None
        self.headers: dict[str, str] = {}
        """What a test sends in the place of the right headers."""
        self.status = 0

    async def say(self, message_: bytes) -> dict[str, Any] | None:
        headers = ACCEPT | (modern_headers(message_) if self._modern else {}) | self.headers
        if self._session is not None:
            headers |= {"Mcp-Session-Id": self._session}
        answer = await self._http.post("/mcp", content=message_, headers=headers)
        self.status = answer.status_code
        self._session = answer.headers.get("mcp-session-id", self._session)
        return None if answer.status_code == 202 else message(answer)


def _refuse(name: str) -> NoReturn:
    raise ValueError(name)


def members(message_: bytes) -> dict[str, Any]:
    """What is in a message that is a JSON object; nothing of any other."""
    try:
        said = json.loads(message_, parse_constant=_refuse)
    except (ValueError, RecursionError):
        return {}
    return said if isinstance(said, dict) else {}


def modern_headers(body: bytes) -> dict[str, str]:
    """The headers of a stateless request, which repeat its body; what is no request says nothing that fits."""
    said = members(body)
    params = said.get("params")
    params = params if isinstance(params, dict) else {}
    meta = params.get("_meta")
    meta = meta if isinstance(meta, dict) else {}
    version = meta.get("io.modelcontextprotocol/protocolVersion", MODERN)
    found = {"MCP-Protocol-Version": str(version), "Mcp-Method": str(said.get("method", "tools/list"))}
    for key in ("name", "uri"):
        if key in params:
            found["Mcp-Name"] = str(params[key])
    return found
