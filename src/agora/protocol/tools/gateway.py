"""From a checked call of a gateway tool to the router and back to plain data."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from agora.model.caller import Caller
from agora.model.deadline import Deadline
from agora.model.route import Block, Called, RouteRequest
from agora.protocol.times import written
from agora.protocol.tools.shapes import filled, opening
from agora.router.plain import plain

if TYPE_CHECKING:
    from agora.errors import AgoraError
    from agora.router.gateway import Described, Gateway
    from agora.router.registry import Backend

MEDIA = "_media"
"""Member of a result with the pictures and sounds, which travel as blocks of their own beside it."""

_SCHEMAS = 5
"""Candidates that come with their schemas."""

_QUERIED = 10
_LISTED = 100
"""Tools of one backend that are listed at once; an intent finds the others."""

_TOKEN = 4
"""Bytes of JSON that count as one token."""

_SHOWN = 300
"""Characters of a stranger's description."""

_FORM = 100
"""Characters of what a stranger calls the form of a picture."""


class GatewayTools:
    """Answers the tools of the gateway. Blocking: run it in a worker thread."""

    def __init__(self, gateway: Gateway) -> None:
        self._gateway = gateway

    def route(self, given: Mapping[str, Any], caller: Caller, deadline: Deadline) -> dict[str, Any]:
        """The result of `agora_route`."""
        request = RouteRequest(
            given["target"],
            given.get("tool"),
            given.get("arguments", {}),
            given.get("intent"),
            given.get("dry_run", False),
        )
        routed = self._gateway.route(request, caller, deadline)
        found: dict[str, Any] = {"routed": routed.called is not None, "matched_by": routed.matched_by}
        if routed.chosen is not None:
            candidate = routed.chosen.candidate
            found |= filled({"score": candidate.score, "margin": candidate.margin})
        if routed.called is not None:
            found |= called(routed.called)
        elif routed.chosen is not None:
            found |= {"dry_run": True, "backend": routed.chosen.candidate.backend, "tool": routed.chosen.tool.name}
        if routed.called is None:
            schemas = len(routed.candidates) <= _SCHEMAS
            found["candidates"] = [described(each, schema=schemas) for each in routed.candidates[:_LISTED]]
            found |= filled({"more_candidates": max(0, len(routed.candidates) - _LISTED) or None})
        return found | _missing(routed.not_searched) | _degraded(routed.degraded)

    def broadcast(self, given: Mapping[str, Any], caller: Caller, deadline: Deadline) -> dict[str, Any]:
        """The result of `agora_broadcast`."""
        heard = self._gateway.broadcast(
            given["tool"], given.get("arguments", {}), given.get("backends"), caller, deadline
        )
        rows, media = [], []
        for each in heard.heard:
            row: dict[str, Any] = {"backend": each.backend, "seconds": round(each.seconds, 3)}
            if each.called is not None:
                row |= called(each.called)
                media += row.pop(MEDIA, [])
            elif each.error is not None:
                row["error"] = each.error.details()
            rows.append(row)
        found: dict[str, Any] = {"results": rows, "seconds": round(heard.seconds, 3)}
        if heard.not_asked:
            found["not_asked"] = [_failed(name, error) for name, error in heard.not_asked.items()]
        if media:
            found[MEDIA] = media
        return found

    def backends(self, given: Mapping[str, Any], caller: Caller, deadline: Deadline) -> dict[str, Any]:
        """The result of `agora_backends`."""
        registry = self._gateway.registry
        rows = [backend(each) for each in registry.usable(caller.scope.grants.may_call)]
        found: dict[str, Any] = {"backends": rows}
        if (trouble := registry.trouble) is not None:
            found["configuration"] = trouble
        if (query := given.get("query")) is not None:
            searched = self._gateway.search(query, caller, deadline, _QUERIED)
            found["tools"] = [described(each, schema=False) for each in searched.candidates]
            found |= _missing(searched.not_searched) | _degraded(searched.degraded)
        return found

    def rest(self, id_: str, caller: Caller, deadline: Deadline) -> dict[str, Any] | None:
        """A piece of a long result, by its id with or without `#` and the byte to begin at; None if it is not kept."""
        name, _, start = id_.partition("#")
        found = self._gateway.rest(name, int(start or 0), caller, deadline)
        if found is None:
            return None
        kept = found.kept
        row = {
            "id": kept.id,
            "backend": kept.backend,
            "tool": kept.tool,
            "from": found.start,
            "bytes": len(kept.content),
            "text": found.text,
            "next": None if found.after is None else f"{kept.id}#{found.after}",
            "expires_at": written(kept.expires_at),
        }
        return filled(row)

    def summary(self, caller: Caller) -> tuple[dict[str, Any], list[dict[str, Any]]]:
        """What the status says of backends: counts, and what is amiss."""
        registry = self._gateway.registry
        mine = registry.usable(caller.scope.grants.may_call)
        problems = [] if registry.trouble is None else [registry.trouble]
        quarantined = sum(len(each.tools.quarantined) for each in mine if each.tools is not None)
        states = [each.link.details() for each in mine]
        dead = [each.table.name for each, state in zip(mine, states, strict=True) if state["health"] == "dead"]
        counts: dict[str, Any] = {
            "configured": len(mine),
            "running": sum(state["state"] == "running" for state in states),
            "tools": sum(len(each.tools.approved) for each in mine if each.tools is not None),
        }
        return counts | filled({"dead": dead or None, "quarantined_tools": quarantined or None}), problems


def called(made: Called) -> dict[str, Any]:
    """A call that was made, as plain data."""
    result = made.result
    content = [dict(block) for block in result.content] + [outline(block) for block in result.media]
    found: dict[str, Any] = {
        "backend": made.backend,
        "tool": made.tool,
        "access": made.access,
        "rule": made.rule,
        "is_error": result.is_error,
        "content": content,
        "seconds": round(made.seconds, 3),
        "cached": made.cached,
    }
    if made.age is not None:
        found["age_seconds"] = round(made.age, 1)
    if result.media:
        found[MEDIA] = [dict(block) for block in result.media]
    return found | filled(
        {
            "structured": None if result.structured is None else dict(result.structured),
            "cut": None if result.cut is None else dict(result.cut),
            "attempts": made.attempts if made.attempts > 1 else None,
            "note": None if made.note is None else dict(made.note),
            "degraded": list(made.warnings) or None,
        }
    )


def described(each: Described, *, schema: bool) -> dict[str, Any]:
    """A tool that may be meant, as plain data; `tokens` is what its schema costs to read."""
    tool, candidate = each.tool, each.candidate
    written = json.dumps(tool.input, ensure_ascii=False, separators=(",", ":"))
    row: dict[str, Any] = {
        "backend": candidate.backend,
        "tool": tool.name,
        **filled({"score": candidate.score, "margin": candidate.margin}),
        "description": opening(tool.description.encode("utf-8", "replace").decode(), _SHOWN),
        "access": each.access,
        "tokens": -(-len(written.encode("utf-8", "backslashreplace")) // _TOKEN),
    }
    if not each.allowed:
        row["allowed"] = False
    if schema:
        row["input_schema"] = plain(dict(tool.input))
    return row


def backend(each: Backend) -> dict[str, Any]:
    """One backend and how it is, as plain data."""
    table, tools = each.table, each.tools
    details = each.link.details()
    return filled(
        {
            "name": table.name,
            "description": table.description or None,
            "transport": table.transport,
            "read_only": table.read_only,
            **details,
            "tools": None if tools is None else len(tools.approved),
            "quarantined": None if tools is None else sorted(tools.quarantined) or None,
            "refused_tools": None if tools is None else len(tools.refused) or None,
            "list_error": each.trouble or each.offers.trouble,
        }
    )


def outline(block: Block) -> dict[str, Any]:
    """What the text says of a picture or a sound: it travels beside it."""
    form, data = block.get("mimeType"), block.get("data")
    shown = opening(form, _FORM) if isinstance(form, str) else None
    return {"type": block.get("type"), "mimeType": shown, "bytes": len(data) if isinstance(data, str) else 0}


def _missing(failed: Mapping[str, AgoraError] | None) -> dict[str, Any]:
    return {"not_searched": [_failed(name, error) for name, error in failed.items()]} if failed else {}


def _degraded(words: tuple[str, ...]) -> dict[str, Any]:
    return {"degraded": list(words)} if words else {}


def _failed(name: str, error: AgoraError) -> dict[str, Any]:
    return {"backend": name, **error.details()}
