"""Trust in the tools of other MCP servers: given at first sight, and asked for again when a tool changes."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping, Sequence

from agora.errors import AuthorityRequired, ToolNotFound
from agora.model.backend import ToolDefinition
from agora.model.caller import Caller
from agora.model.deadline import Deadline
from agora.model.pins import Pin, Pinned, ToolChange
from agora.ports.clock import Clock
from agora.ports.tool_pins import ToolPins
from agora.router.plain import is_shallow

MOST_TOOLS = 5_000
"""Tools of one backend that are looked at; the others are refused."""

MOST_BYTES = 200_000
"""Bytes of one definition, as JSON."""

MOST_TOGETHER = 20_000_000
"""Bytes of all definitions of one backend."""

LONGEST_NAME = 256
"""Characters of a name, as agora_route takes it."""

_SECONDS = 10.0
"""Seconds that a look or a write may wait for the store."""

_SHOWN = 10


class Pins:
    """The tools of every backend by what was decided of them. Thread-safe, blocking."""

    def __init__(self, store: Callable[[Deadline], ToolPins], clock: Clock) -> None:
        """`store` gives what keeps them, which may have to be opened first."""
        self._store = store
        self._clock = clock

    def known(self, backend: str, identity: str) -> Pinned | None:
        """What is known of that backend's tools; None if it was never seen.

        Raises: StoreUnavailable, StoreCorrupt, StoreVersion.
        """
        pins = self._pins(backend, identity)
        return _pinned(pins) if pins else None

    def seen(self, backend: str, identity: str, definitions: Iterable[ToolDefinition]) -> Pinned:
        """Compare what a backend lists now with what is known of it, and remember it.

        Of two tools of one name the first counts. A new tool is approved; one that has changed is quarantined until
        somebody approves it, or until it is again what it was.

        Raises: as `known`.
        """
        deadline = Deadline(_SECONDS)
        tools, refused = _looked_at(definitions)
        pins = self._store(deadline).seen(backend, identity, tools, self._clock.now(), deadline)
        return _pinned(pins, refused)

    def diff(self, backend: str, identity: str) -> tuple[ToolChange, ...]:
        """What waits for approval, by name.

        Raises: as `known`.
        """
        return tuple(
            ToolChange(tool, pin.approved, pin.seen, pin.seen_digest, pin.seen_at)
            for tool, pin in sorted(self._pins(backend, identity).items())
            if pin.status == "quarantined"
        )

    def approve(
        self,
        backend: str,
        identity: str,
        tools: Sequence[str] | None,
        caller: Caller,
        shown: Mapping[str, str] | None = None,
    ) -> tuple[str, ...]:
        """Approve what these tools say of themselves now, None for all that wait; their names.

        `shown`: the digests of what the caller was shown, by name; one that has changed since is not approved. The
        record of calls tells of each. All of them or none.

        Raises: AuthorityRequired unless the caller is the user; ToolNotFound for a tool that does not wait; Conflict;
        as `known`.
        """
        if caller.origin != "user":
            raise AuthorityRequired(
                "only the user approves what another server's tools say of themselves",
                hint="Run `agora backends approve` on a terminal.",
            )
        waiting = {change.tool: change.digest for change in self.diff(backend, identity)}
        names = sorted(waiting) if tools is None else list(dict.fromkeys(tools))
        if unknown := [name for name in names if name not in waiting]:
            some = ", ".join(sorted(waiting)[:_SHOWN]) or "none"
            raise ToolNotFound(
                f"{backend}: no change of the tool {unknown[0]!r} waits for approval", hint=f"These wait: {some}."
            )
        digests = {name: (shown or {}).get(name, waiting[name]) for name in names}
        if digests:
            deadline = Deadline(_SECONDS)
            self._store(deadline).approve(backend, identity, digests, caller, self._clock.now(), deadline)
        return tuple(names)

    def _pins(self, backend: str, identity: str) -> dict[str, Pin]:
        deadline = Deadline(_SECONDS)
        return self._store(deadline).known(backend, identity, deadline)


def _looked_at(definitions: Iterable[ToolDefinition]) -> tuple[list[ToolDefinition], tuple[str, ...]]:
    tools: dict[str, ToolDefinition] = {}
    refused: list[str] = []
    left = MOST_TOGETHER
    for tool in definitions:
        if tool.name in tools:
            continue
        size = _size(tool)
        if len(tools) >= MOST_TOOLS or size is None or size > left:
            refused.append(tool.name)
        else:
            tools[tool.name] = tool
            left -= size
    return list(tools.values()), tuple(dict.fromkeys(refused))


def _size(tool: ToolDefinition) -> int | None:
    """Bytes of it as JSON; None if nobody could call it or read what it says."""
    name, said = tool.name, tool.details()
    # Half of a surrogate pair in a name cannot be written as UTF-8.
    if len(name) > LONGEST_NAME or any("\ud800" <= character <= "\udfff" for character in name):
        return None
    size = len(json.dumps(said)) if is_shallow(said) else None
    return None if size is None or size > MOST_BYTES else size


def _pinned(pins: Mapping[str, Pin], refused: tuple[str, ...] = ()) -> Pinned:
    return Pinned(
        {name: pin.approved for name, pin in pins.items() if pin.status == "approved"},
        {name: pin.seen for name, pin in pins.items() if pin.status == "quarantined"},
        tuple(sorted(name for name, pin in pins.items() if pin.status == "gone")),
        refused,
    )
