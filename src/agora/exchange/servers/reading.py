"""The servers in a client's configuration file, whichever client wrote it."""

from __future__ import annotations

import tomllib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from agora.errors import InvalidInput
from agora.exchange.servers import jsonc

Dialect = Literal["braces", "dollar", "none"]
"""How a client writes variables: `${NAME}`, `${NAME:-default}`, `${env:NAME}`; `$NAME` too; or it knows none."""

_LARGEST = 64_000_000
"""Bytes; the largest file of a client that holds servers, with histories in it, has some millions."""

_HINT = "Name a file with `mcpServers`, as ~/.claude.json, .mcp.json, ~/.cursor/mcp.json, or Codex's config.toml."


@dataclass(frozen=True, slots=True)
class Offered:
    """One server as its file has it. `given` was checked for nothing but that it is a table."""

    name: str
    given: Mapping[str, Any]
    project: str | None = None
    """The project that it belongs to, for a file that holds those of several."""
    disabled: bool = False
    twice: bool = False
    """Whether the file has the name twice."""


@dataclass(frozen=True, slots=True)
class ClientFile:
    """What a client's file holds, and how it is to be understood."""

    path: Path
    kind: str
    """The client or format, in words."""
    dialect: Dialect
    servers: tuple[Offered, ...]


def read_client_file(path: Path) -> ClientFile:
    """The servers in the file at `path`.

    Raises: InvalidInput if it cannot be read, is neither JSON nor TOML, or has no place for servers.
    """
    text = _text(path)
    data = _tables(path, text)
    kind, dialect = _kind(path, data)
    servers = tuple(_servers(data))
    if not servers and not _places(data):
        raise InvalidInput("file", "holds no MCP servers", str(path), hint=_HINT)
    return ClientFile(path, kind, dialect, servers)


def _text(path: Path) -> str:
    try:
        if path.stat().st_size > _LARGEST:
            raise InvalidInput("file", f"is larger than {_LARGEST // 1_000_000} MB", str(path), hint=_HINT)
        raw = path.read_bytes()
    except OSError as error:
        raise InvalidInput("file", f"cannot be read: {error.strerror or error}", str(path), hint=_HINT) from error
    # PowerShell writes UTF-16.
    encoding = "utf-16" if raw[:2] in {b"\xff\xfe", b"\xfe\xff"} else "utf-8-sig"
    try:
        return raw.decode(encoding)
    except UnicodeDecodeError as error:
        raise InvalidInput("file", "is not UTF-8 text", str(path), hint=_HINT) from error


def _tables(path: Path, text: str) -> Mapping[str, Any]:
    is_toml = path.suffix.lower() == ".toml"
    try:
        found = tomllib.loads(text) if is_toml else jsonc.loads(text)
    except (ValueError, RecursionError) as error:
        said = str(error) or "nested too deep"
        raise InvalidInput("file", f"is no {'TOML' if is_toml else 'JSON'}: {said}", str(path), hint=_HINT) from None
    if not isinstance(found, Mapping):
        raise InvalidInput("file", "holds no MCP servers", str(path), hint=_HINT)
    return found


def _kind(path: Path, data: Mapping[str, Any]) -> tuple[str, Dialect]:
    """Which client's file it is: by its form, else by its place."""
    folder, name = path.parent.name, path.name
    kinds: tuple[tuple[bool, str, Dialect], ...] = (
        ("mcp_servers" in data, "Codex", "none"),
        (name == "claude_desktop_config.json", "Claude Desktop", "none"),
        (folder == ".gemini" or any("httpUrl" in each.given for each in _servers(data)), "Gemini CLI", "dollar"),
        (folder == ".cursor", "Cursor", "braces"),
        (folder == "windsurf", "Windsurf", "braces"),
        (folder == ".vscode" or "servers" in data or "mcp" in data, "VS Code", "braces"),
        ("projects" in data or name == ".mcp.json", "Claude Code", "braces"),
    )
    # What many clients write: variables in each of their ways are understood.
    return next(((kind, dialect) for holds, kind, dialect in kinds if holds), ("mcpServers", "braces"))


def _places(data: Mapping[str, Any]) -> list[tuple[str | None, Mapping[str, Any]]]:
    """Every table of servers, with the project that it is for."""
    own = [data.get(key) for key in ("mcpServers", "servers", "mcp_servers")]
    found: list[tuple[str | None, Mapping[str, Any]]] = [(None, each) for each in own if isinstance(each, Mapping)]
    inner = data.get("mcp")
    if isinstance(inner, Mapping) and isinstance(inner.get("servers"), Mapping):
        # VS Code's settings.json.
        found.append((None, inner["servers"]))
    projects = data.get("projects")
    if isinstance(projects, Mapping):
        for project, its in projects.items():
            if isinstance(its, Mapping) and isinstance(its.get("mcpServers"), Mapping):
                found.append((project, its["mcpServers"]))
    return found


def _servers(data: Mapping[str, Any]) -> Iterator[Offered]:
    rules = data.get("mcp")
    rules = rules if isinstance(rules, Mapping) else {}
    excluded, allowed = _names(rules.get("excluded")) or set(), _names(rules.get("allowed"))
    for project, servers in _places(data):
        twice = servers.twice if isinstance(servers, jsonc.Pairs) else frozenset()
        for name, given in servers.items():
            table = given if isinstance(given, Mapping) else {}
            off = table.get("disabled") is True or table.get("enabled") is False or table.get("isActive") is False
            off = off or name in excluded or (allowed is not None and name not in allowed)
            yield Offered(name, table, project, off, name in twice)


def _names(value: object) -> set[str] | None:
    return {each for each in value if isinstance(each, str)} if isinstance(value, list) else None
