"""Other MCP servers, as far as what a session sees in its own lists depends on them."""

from __future__ import annotations

import threading
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import mcp_types as types

from agora.errors import AgoraError
from agora.model.caller import Caller
from agora.model.deadline import Deadline
from agora.protocol.context import Calling, Connection
from agora.router.news import look

if TYPE_CHECKING:
    from agora.model.route import Called
    from agora.router.gateway import Gateway
    from agora.router.offering import Offered, Rows
    from agora.router.registry import Backend

OPENING = 2.0
"""Seconds that a list waits for the store, where tools of other servers are in it: what they are stands there."""

KINDS: tuple[Offered, ...] = ("resources", "prompts")

_OPENED = 30.0
_KEPT = 16


@dataclass(frozen=True, slots=True)
class Seen:
    """Tools of other servers as a session sees them: their rows, whose each name is, and what they depend on."""

    rows: tuple[types.Tool, ...] = ()
    owners: Mapping[str, tuple[str, str]] | None = None
    mark: object = ()


class OtherServers:
    """What there is of other servers for a session. Thread-safe."""

    def __init__(
        self,
        any_: Callable[[Caller], bool],
        opened: Callable[[Deadline | None], Gateway | None],
        taken: Collection[str] = (),
    ) -> None:
        """`any_` says whether there are any for a caller; `taken` are the names of this server's own tools.

        `opened` gives the gateway, opened within the deadline; without a deadline None, unless it is open already.
        """
        self._any = any_
        self._opened = opened
        self._taken = frozenset(taken)
        self._lock = threading.Lock()
        self._kept: dict[object, Seen] = {}

    def any(self, caller: Caller) -> bool:
        """Whether there are other servers that the caller may use; quick, and without the store."""
        return self._any(caller)

    def marks(self, connection: Connection) -> Mapping[str, object]:
        """Something for every kind of list that is equal as long as this client sees the same of it."""
        caller = connection.listener()
        any_, gateway = self.any(caller), self._opened(None)
        nothing = {"tools": (any_, ()), "backends": None, "resources": (), "prompts": ()}
        if gateway is None:
            return nothing
        try:
            mine = [each for each in gateway.registry.glance() if caller.scope.grants.may_call(each.table.name)]
            backends = self._exposed(gateway, caller, connection) if connection.expose else ()
        except AgoraError:
            return nothing
        found = nothing | {"backends": look(gateway.registry, mine)}
        if not backends:
            return found
        from agora.router.exposing import offers_mark, tools_mark  # noqa: PLC0415 - few sessions see any

        found["tools"] = any_, tools_mark(backends)
        return found | {kind: offers_mark(backends, kind) for kind in KINDS}

    @property
    def open(self) -> bool:
        """Whether the way to them is open."""
        return self._opened(None) is not None

    def open_it(self) -> None:
        """Open the way to them, or leave it closed; blocking."""
        try:
            self._opened(Deadline(_OPENED))
        except AgoraError:
            # The next call tells what stands against it.
            return

    def tools(self, caller: Caller, connection: Connection) -> Seen:
        """The tools of others that this client sees as this server's; blocking, without waiting for any of them.

        Those that were never seen are started, so that the list is another one soon.
        """
        from agora.protocol.tools.exposed import row  # noqa: PLC0415 - few sessions see any
        from agora.router.exposing import shown_tools, tools_mark  # noqa: PLC0415 - as above

        gateway = self._opened(None)
        if gateway is None or not connection.expose or not self.any(caller):
            return Seen()
        backends = self._exposed(gateway, caller, connection)
        gateway.registry.learn_soon(backends)
        mark = tools_mark(backends)
        key = (gateway.registry.version, tuple(each.table.name for each in backends))
        with self._lock:
            kept = self._kept.get(key)
        if kept is None or kept.mark != mark:
            found = shown_tools(backends, self._taken)
            owners = {each.name: (each.tool.backend, each.tool.name) for each in found}
            rows = (row(each) for each in found)
            kept = Seen(tuple(each for each in rows if each is not None), owners, mark)
            with self._lock:
                while len(self._kept) >= _KEPT:
                    del self._kept[next(iter(self._kept))]
                self._kept[key] = kept
        return kept

    def offered(self, kind: Offered, calling: Calling) -> Mapping[str, Rows]:
        """The rows of that list of every backend that this client sees, by its name; blocking, some two seconds.

        Raises: what opening the store raises.
        """
        caller, connection = calling.caller(), calling.connection
        if not connection.expose or not self.any(caller):
            return {}
        gateway = self._gateway(calling)
        return gateway.registry.offered(self._exposed(gateway, caller, connection), kind, calling.deadline)

    def is_exposed(self, backend: str, calling: Calling) -> bool:
        """Whether what that backend has is this client's to see.

        Raises: as `offered`.
        """
        if not calling.connection.expose:
            return False
        seen = self._exposed(self._gateway(calling), calling.caller(), calling.connection)
        return backend in {each.table.name for each in seen}

    def ask(self, backend: str, method: str, params: Mapping[str, Any], calling: Calling) -> Mapping[str, Any]:
        """As `Gateway.ask`."""
        return self._gateway(calling).ask(backend, method, params, calling.caller(), calling.deadline)

    def call(self, owner: tuple[str, str], given: Mapping[str, Any], calling: Calling) -> Called:
        """What that tool of that backend answers. Blocking.

        Raises: as `Gateway.call`, and what opening the store raises.
        """
        return self._gateway(calling).call(*owner, given, calling.caller(), calling.deadline)

    def _gateway(self, calling: Calling) -> Gateway:
        gateway = self._opened(calling.deadline)
        assert gateway is not None, "with a deadline it is opened"
        return gateway

    def _exposed(self, gateway: Gateway, caller: Caller, connection: Connection) -> Sequence[Backend]:
        from agora.router.exposing import exposed  # noqa: PLC0415 - few sessions see any

        return exposed(gateway.registry, connection.expose, caller.scope.grants.may_call)
