"""How many requests a token may make: a bucket of tokens each, refilled evenly."""

from __future__ import annotations

import math
import time
from collections.abc import Callable

from starlette.types import ASGIApp, Receive, Scope, Send

from agora.transport.guard import TOKEN_KEY, refusal
from agora.transport.options import Log

_BURST_SECONDS = 10.0
"""So many seconds' worth of requests may come at once."""


class RateLimit:
    """Lets a request pass while its token has made no more than `per_second`; else 429 says when to come again.

    Requests without a token share one bucket. Used by the event loop alone; there are as many buckets as tokens.
    """

    def __init__(self, app: ASGIApp, per_second: float, log: Log, now: Callable[[], float] = time.monotonic) -> None:
        self._app = app
        self._per_second = per_second
        self._most = max(1.0, per_second * _BURST_SECONDS)
        self._log = log
        self._now = now
        self._buckets: dict[str, tuple[float, float]] = {}

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve or refuse one request."""
        wait = 0.0 if scope["type"] != "http" else self._taken(scope)
        if wait <= 0:
            await self._app(scope, receive, send)
            return
        self._log.debug("refused a request with 429")
        answer = refusal(
            429,
            "too_many_requests",
            f"This token makes more than {self._per_second:g} requests a second",
            "Wait as long as Retry-After says, or raise http.rate in agora.toml.",
            headers={"Retry-After": str(math.ceil(wait))},
        )
        await answer(scope, receive, send)

    def _taken(self, scope: Scope) -> float:
        """Take one request out of the bucket; seconds to wait if it is empty."""
        token = scope[TOKEN_KEY]
        name = "" if token is None else token.name
        now = self._now()
        left, at = self._buckets.get(name, (self._most, now))
        left = min(self._most, left + (now - at) * self._per_second)
        if left < 1.0:
            self._buckets[name] = (left, now)
            return (1.0 - left) / self._per_second
        self._buckets[name] = (left - 1.0, now)
        return 0.0
