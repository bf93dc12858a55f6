"""What has changed of backends, for those who watch."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING

from agora.errors import AgoraError

if TYPE_CHECKING:
    from agora.router.gateway import Gateway
    from agora.router.registry import Backend, Registry


WORDS = ("backends", "tools", "offers")


class News:
    """Answers, each time, what has become another since the time before: `backends`, `tools`, `offers`, or nothing.

    `tools` covers their tools and which of them there are, `offers` their lists of resources and prompts, `backends`
    how they are.
    """

    def __init__(self, gateway: Callable[[], Gateway | None]) -> None:
        """`gateway` gives the way to them, or None as long as it is not open."""
        self._gateway = gateway
        self._last: tuple[object, ...] = (None, None, None)

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
        offers = tuple(tuple(each.offers.versions.values()) for each in backends)
        before, self._last = self._last, (look(registry, backends), registry.version, offers)
        return frozenset(word for word, was, now in zip(WORDS, before, self._last, strict=True) if was != now)


def look(registry: Registry, backends: Iterable[Backend]) -> object:
    """Something that is equal as long as these backends are as they were: names, tables, states, health and tools."""
    trouble = registry.trouble
    return (
        None if trouble is None else str(trouble),
        tuple(
            (
                *(each.table, each.link.state, each.link.health.state, each.link.health.last_error),
                *(each.tools, each.trouble, each.offers.trouble),
            )
            for each in backends
        ),
    )
