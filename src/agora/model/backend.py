"""Other MCP servers, as they describe themselves."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

NOTHING: Mapping[str, Any] = {}


@dataclass(frozen=True, slots=True)
class ServerInfo:
    """What a backend said of itself in the handshake."""

    name: str
    version: str
    protocol: str
    """Revision of the protocol that both speak."""
    capabilities: Mapping[str, Any] = field(default_factory=dict)
    instructions: str = ""


@dataclass(frozen=True, slots=True)
class ToolDefinition:
    """One tool of a backend, word for word as the backend gave it. Nothing in it is trusted."""

    backend: str
    name: str
    description: str = ""
    title: str | None = None
    input: Mapping[str, Any] = field(default_factory=lambda: {"type": "object"})
    output: Mapping[str, Any] | None = None
    annotations: Mapping[str, Any] = field(default_factory=dict)

    @classmethod
    def read(cls, backend: str, listed: Mapping[str, Any]) -> ToolDefinition | None:
        """A row of `tools/list`; None if it has no name or no schema that could be a tool's."""
        name, given = listed.get("name"), listed.get("inputSchema", {"type": "object"})
        if not isinstance(name, str) or not name or not isinstance(given, dict):
            return None
        return cls(
            backend,
            name,
            _text(listed.get("description")) or "",
            _text(listed.get("title")),
            given,
            _table(listed.get("outputSchema")),
            _table(listed.get("annotations")) or {},
        )

    def digest(self) -> str:
        """SHA-256 of what an agent sees and what a decision rests on, in hexadecimal: a change shows in it."""
        seen = [self.name, self.title, self.description, self.input, self.output, self.annotations]
        return hashlib.sha256(
            json.dumps(seen, sort_keys=True, ensure_ascii=False, separators=(",", ":")).encode("utf-8", "surrogatepass")
        ).hexdigest()

    def details(self) -> dict[str, Any]:
        """As plain data, in the words of `tools/list`."""
        found: dict[str, Any] = {"name": self.name, "description": self.description, "inputSchema": self.input}
        if self.title is not None:
            found["title"] = self.title
        if self.output is not None:
            found["outputSchema"] = self.output
        if self.annotations:
            found["annotations"] = self.annotations
        return found


def _text(value: object) -> str | None:
    return value if isinstance(value, str) else None


def _table(value: object) -> dict[str, Any] | None:
    return value if isinstance(value, dict) else None
