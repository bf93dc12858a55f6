"""What has changed of backends, for those who watch."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING

from agora.errors import AgoraError

if TYPE_CHECKING:
    from agora.router.gateway import Gateway
    from agora.router.registry import Backend, Registry


class News:
    """Answers, each time, what has become another since the time before: `backends`, `tools`, or nothing.

    `tools` covers everything that a session can see of a backend in its own lists; `backends` how they are.
    """

    def __init__(self, gateway: Callable[[], Gateway | None]) -> None:
        """`gateway` gives the way to them, or None as long as it is not open."""
        self._gateway = gateway
        self._last: tuple[object, object] = (None, None)

    def __call__(self) -> frozenset[str]:
        """The words; blocking, some microseconds a backend."""
        gateway = self._gateway()
        if gateway is None:
            return frozenset()
        registry = gateway.registry
        try:
            backends = registry.glance()
        except AgoraError:
            # The store does not answer, or the server ends: the next look sees what has changed until then.
            return frozenset()
        before, self._last = self._last, (look(registry, backends), registry.version)
        words = (word for word, was, now in zip(("backends", "tools"), before, self._last, strict=True) if was != now)
        return frozenset(words)


def look(registry: Registry, backends: Iterable[Backend]) -> object:
    """Something that is equal as long as these backends are as they were: names, tables, states, health and tools."""
    trouble = registry.trouble
    return (
        None if trouble is None else str(trouble),
        tuple(
            (each.table, each.link.state, each.link.health.state, each.link.health.last_error, each.tools, each.trouble)
            for each in backends
        ),
    )
