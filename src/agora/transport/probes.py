"""`/healthz`, `/readyz` and `/metrics`: what those ask who run a server."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import anyio
import anyio.to_thread
from starlette.responses import JSONResponse, PlainTextResponse, Response
from starlette.types import ASGIApp, Receive, Scope, Send

from agora.transport.auth import Token
from agora.transport.guard import TOKEN_KEY, refusal
from agora.transport.metrics import CONTENT_TYPE, Metrics

HEALTH, READY, METRICS = "/healthz", "/readyz", "/metrics"
_PATIENCE = 5.0
"""Seconds that the answer to `/readyz` may take; a store that answers no faster is not ready."""

Problems = Callable[[], Sequence[dict[str, Any]]]


class Probes:
    """Answers `/healthz` and `/readyz`, without a token: they say that there is a server, and whether it is ready."""

    def __init__(self, app: ASGIApp, problems: Problems, ending: Callable[[], bool]) -> None:
        """`problems` looks whether calls could be answered now, in a worker thread; none means ready."""
        self._app = app
        self._problems = problems
        self._ending = ending

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a probe, or pass the request on."""
        path = scope.get("path")
        if scope["type"] != "http" or path not in {HEALTH, READY}:
            await self._app(scope, receive, send)
        elif scope["method"] not in {"GET", "HEAD"}:
            await _not_allowed(scope, receive, send)
        elif path == HEALTH:
            await PlainTextResponse("ok\n", headers=_FRESH)(scope, receive, send)
        else:
            await (await self._readiness())(scope, receive, send)

    async def _readiness(self) -> Response:
        if self._ending():
            return _ready([{"code": "server_ending"}])
        found: Sequence[dict[str, Any]] = [{"code": "deadline_exceeded"}]
        with anyio.move_on_after(_PATIENCE):
            found = await anyio.to_thread.run_sync(self._problems, abandon_on_cancel=True)
        # The codes alone: messages name paths, and whoever asks has shown no token.
        return _ready([{"code": problem["code"]} for problem in found])


class MetricsPage:
    """Answers `/metrics`; behind the token, as numbers tell of use."""

    def __init__(
        self, app: ASGIApp, metrics: Metrics, may_count: Callable[[Token | None], bool] = lambda _: True
    ) -> None:
        """`may_count` says whether somebody with that token is told the numbers, which are of all clients."""
        self._app = app
        self._metrics = metrics
        self._may_count = may_count

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer with the metrics, or pass the request on."""
        if scope["type"] != "http" or scope["path"] != METRICS:
            await self._app(scope, receive, send)
        elif scope["method"] not in {"GET", "HEAD"}:
            await _not_allowed(scope, receive, send)
        elif not self._may_count(scope.get(TOKEN_KEY)):
            answer = refusal(
                403,
                "access_denied",
                "These numbers tell of all namespaces, and this token may not read all",
                "Use a token that may, by an [[access]] table of agora.toml.",
            )
            await answer(scope, receive, send)
        else:
            page = Response(self._metrics.exposition(), media_type=CONTENT_TYPE, headers=_FRESH)
            await page(scope, receive, send)


_FRESH = {"Cache-Control": "no-store"}


def _ready(problems: Sequence[dict[str, Any]]) -> JSONResponse:
    body = {"ready": not problems, "problems": list(problems)}
    return JSONResponse(body, status_code=503 if problems else 200, headers=_FRESH)


async def _not_allowed(scope: Scope, receive: Receive, send: Send) -> None:
    await Response(status_code=405, headers={"Allow": "GET, HEAD"})(scope, receive, send)
