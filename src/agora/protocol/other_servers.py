"""Other MCP servers, as far as what a session sees in its own lists depends on them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

from agora.errors import AgoraError
from agora.model.caller import Caller
from agora.model.deadline import Deadline
from agora.router.news import look

if TYPE_CHECKING:
    from agora.router.gateway import Gateway


class OtherServers:
    """What there is of other servers for a caller. Thread-safe."""

    def __init__(self, any_: Callable[[Caller], bool], opened: Callable[[Deadline | None], Gateway | None]) -> None:
        """`any_` says whether there are any for a caller.

        `opened` gives the gateway, opened within the deadline; without a deadline None, unless it is open already.
        """
        self._any = any_
        self._opened = opened

    def any(self, caller: Caller) -> bool:
        """Whether there are other servers that the caller may use; quick, and without the store."""
        return self._any(caller)

    def marks(self, caller: Caller) -> Mapping[str, object]:
        """Something for each of `tools` and `backends` that is equal as long as the caller sees the same of it."""
        return {"tools": self.any(caller), "backends": self._backends(caller)}

    def _backends(self, caller: Caller) -> object:
        gateway = self._opened(None)
        if gateway is None:
            return None
        try:
            mine = [each for each in gateway.registry.glance() if caller.scope.grants.may_call(each.table.name)]
        except AgoraError:
            return None
        return look(gateway.registry, mine)
