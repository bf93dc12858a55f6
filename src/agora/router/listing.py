"""The lists of a backend, read to their end."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import Any, Literal

from agora.errors import BackendProtocolError, BackendRefused
from agora.model.backend import ToolDefinition
from agora.ports.backends import Session

Kind = Literal["tools", "resources", "resourceTemplates", "prompts"]

_METHODS: Mapping[Kind, tuple[str, str]] = {
    "tools": ("tools", "tools/list"),
    "resources": ("resources", "resources/list"),
    "resourceTemplates": ("resources", "resources/templates/list"),
    "prompts": ("prompts", "prompts/list"),
}
"""The capability that a server must have, and the method."""

_MOST = 10_000
"""Rows of one list; a backend that has more, or that turns its pages in a circle, is not read further."""

_PAGES = 1_000
"""Pages of one list: they may be empty."""

_TIMES = 4
"""All pages together may take so many times as long as one."""

_NOT_FOUND = -32601


async def tools(backend: str, session: Session, seconds: float) -> list[ToolDefinition]:
    """The tools of a backend in its own order, each name once; rows that are no tool are left out.

    Raises: BackendError.
    """
    found: dict[str, ToolDefinition] = {}
    for row in await rows(backend, session, "tools", seconds):
        tool = ToolDefinition.read(backend, row)
        if tool is not None:
            # Which of two with one name would be called is the backend's secret: the first is what was looked at.
            found.setdefault(tool.name, tool)
    return list(found.values())


async def rows(backend: str, session: Session, kind: Kind, seconds: float) -> list[dict[str, Any]]:
    """Every row of one list; empty where the backend does not have that kind. A page may take `seconds`.

    Raises: BackendError; BackendProtocolError for a list that has no end.
    """
    capability, method = _METHODS[kind]
    if session.server.capabilities.get(capability) is None:
        return []
    found: list[dict[str, Any]] = []
    cursors: set[str] = set()
    cursor: str | None = None
    now = asyncio.get_running_loop().time
    ends = now() + _TIMES * seconds
    while True:
        try:
            left = min(seconds, max(0.001, ends - now()))
            page = await session.request(method, {} if cursor is None else {"cursor": cursor}, seconds=left)
        except BackendRefused as error:
            if error.number == _NOT_FOUND and not found:
                return []
            raise
        listed = page.get(kind)
        found += [row for row in listed if isinstance(row, dict)] if isinstance(listed, list) else []
        cursor = page.get("nextCursor")
        if not isinstance(cursor, str):
            return found
        if cursor in cursors or len(found) > _MOST or len(cursors) >= _PAGES:
            raise BackendProtocolError(backend, f"its list of {capability} has no end", hint="Its authors should know.")
        cursors.add(cursor)
