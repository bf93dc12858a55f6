"""The headers of a message: its revision and session, and in the newest revision also what the message says."""

from __future__ import annotations

import base64
import re
from collections.abc import Iterator
from typing import Any

from agora.backends.http_json import Message

STATELESS = "2026-07-28"
"""The first revision whose requests carry their revision in `_meta`, and which has no sessions."""

_VERSION = "io.modelcontextprotocol/protocolVersion"
_NAMED = {"tools/call": "name", "prompts/get": "name", "resources/read": "uri"}
"""Methods whose header `Mcp-Name` repeats one of their parameters."""

_PLAIN = re.compile(r"[\x21-\x7e]([\x20-\x7e]*[\x21-\x7e])?")
_WRAPPED = re.compile(r"=\?base64\?.*\?=")
_TOKEN = re.compile(r"[!#$%&'*+\-.^_`|~0-9A-Za-z]+")
_PARAM = "x-mcp-header"
_DEEPEST = 20

Path = tuple[str, ...]


class MessageHeaders:
    """What the headers of one session's requests are; learns from what comes."""

    def __init__(self) -> None:
        self.protocol = ""
        """The revision after the handshake; empty before."""
        self.session = ""
        """The id that the server gave; empty if it gave none."""
        self._params: dict[str, dict[Path, str]] = {}

    def stateless(self, message: Message) -> bool:
        """Whether it belongs to the revisions that have no sessions."""
        return (_version(message) or self.protocol) >= STATELESS

    def of(self, message: Message) -> dict[str, str | bytes]:
        """The headers of the request that carries `message`."""
        found: dict[str, str | bytes] = {"accept": "application/json, text/event-stream"}
        found["content-type"] = "application/json"
        method, params = message.get("method"), message.get("params")
        if method == "initialize":
            # It begins the session: neither is known.
            return found
        found |= self.of_session(_version(message))
        if isinstance(method, str) and self.stateless(message):
            found["mcp-method"] = wrapped(method)
            params = params if isinstance(params, dict) else {}
            name = params.get(_NAMED.get(method, ""))
            if isinstance(name, str):
                found["mcp-name"] = wrapped(name)
            if method == "tools/call" and isinstance(name, str):
                found |= dict(_repeated(self._params.get(name, {}), params.get("arguments")))
        return found

    def of_session(self, version: str | None = None) -> dict[str, str | bytes]:
        """The headers of every request of the session; `version` is what a message says of itself."""
        version = version or self.protocol
        found: dict[str, str | bytes] = {}
        if version:
            found["mcp-protocol-version"] = wrapped(version)
        if self.session and version < STATELESS:
            found["mcp-session-id"] = self.session
        return found

    def learn(self, result: object) -> None:
        """Remember from an answer to `tools/list` which arguments the server wants in headers as well."""
        tools = result.get("tools") if isinstance(result, dict) else None
        for tool in tools if isinstance(tools, list) else []:
            if isinstance(tool, dict) and isinstance(tool.get("name"), str):
                self._params[tool["name"]] = dict(_asked(tool.get("inputSchema"), ()))


def wrapped(value: str) -> str:
    """`value` as a header: in base64 where it would not come through as it is."""
    if _PLAIN.fullmatch(value) and not _WRAPPED.fullmatch(value):
        return value
    return f"=?base64?{base64.b64encode(value.encode('utf-8', 'replace')).decode()}?="


def _version(message: Message) -> str | None:
    params = message.get("params")
    meta = params.get("_meta") if isinstance(params, dict) else None
    version = meta.get(_VERSION) if isinstance(meta, dict) else None
    return version if isinstance(version, str) else None


def _asked(schema: object, path: Path) -> Iterator[tuple[Path, str]]:
    """Paths of the properties that are repeated in headers, and the ends of the headers' names."""
    properties = schema.get("properties") if isinstance(schema, dict) else None
    if not isinstance(properties, dict) or len(path) == _DEEPEST:
        return
    for name, inner in properties.items():
        if isinstance(inner, dict):
            end = inner.get(_PARAM)
            if isinstance(end, str) and _TOKEN.fullmatch(end):
                yield (*path, name), end
            yield from _asked(inner, (*path, name))


def _repeated(asked: dict[Path, str], arguments: Any) -> Iterator[tuple[str, str]]:  # noqa: ANN401 - a tool's arguments
    for path, end in asked.items():
        value = arguments
        for name in path:
            value = value.get(name) if isinstance(value, dict) else None
        if isinstance(value, bool):
            yield f"mcp-param-{end}", "true" if value else "false"
        elif isinstance(value, str | int | float):
            yield f"mcp-param-{end}", wrapped(str(value))
