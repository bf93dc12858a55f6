"""What `/metrics` tells, in the format of Prometheus."""

from __future__ import annotations

from collections.abc import Callable

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, generate_latest
from prometheus_client.exposition import CONTENT_TYPE_LATEST
from prometheus_client.platform_collector import PlatformCollector
from prometheus_client.process_collector import ProcessCollector
from starlette.types import ASGIApp, Message, Receive, Scope, Send

CONTENT_TYPE = CONTENT_TYPE_LATEST
_SECONDS = (0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60)


class Metrics:
    """The numbers of one server. Labels are names of ours alone: no client, token or namespace is ever one."""

    def __init__(self, sessions: Callable[[], int]) -> None:
        """`sessions` counts the open ones."""
        self._registry = CollectorRegistry()
        made = self._registry
        ProcessCollector(registry=made)
        PlatformCollector(registry=made)
        self._requests = Counter(
            "agora_http_requests", "HTTP requests by method and status.", ["method", "status"], registry=made
        )
        self._running = Gauge("agora_http_requests_in_flight", "HTTP requests under way.", registry=made)
        self._calls = Counter(
            "agora_calls",
            "Requests that did work, by outcome.",
            ["name", "outcome"],
            registry=made,
        )
        self._seconds = Histogram(
            "agora_call_seconds", "How long these took.", ["name"], registry=made, buckets=_SECONDS
        )
        Gauge("agora_http_sessions", "Open sessions of the handshake era.", registry=made).set_function(sessions)

    def called(self, name: str, seconds: float, outcome: str) -> None:
        """Count one call; `name` is one of ours, `outcome` is `ok` or the code of an error."""
        self._calls.labels(name, outcome).inc()
        self._seconds.labels(name).observe(seconds)

    def exposition(self) -> bytes:
        """Everything, as Prometheus reads it."""
        return generate_latest(self._registry)

    def counting(self, app: ASGIApp) -> ASGIApp:
        """`app`, with its requests counted."""
        return _Counting(app, self._requests, self._running)


class _Counting:
    def __init__(self, app: ASGIApp, requests: Counter, running: Gauge) -> None:
        self._app = app
        self._requests = requests
        self._running = running

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        status = 0

        async def watched(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
            await send(message)

        self._running.inc()
        try:
            await self._app(scope, receive, watched)
        finally:
            self._running.dec()
            # Methods that nobody uses but to count up labels are counted together.
            method = scope["method"] if scope["method"] in {"GET", "POST", "DELETE", "OPTIONS"} else "other"
            self._requests.labels(method, str(status)).inc()
