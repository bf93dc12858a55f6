"""A whole server process over streamable HTTP, from its listening socket to its exit status.

    uvicorn ─> counts ─> Host, Origin, path ─> CORS ─> probes ─> token ─> rate ─> size ─> draining ─> session watch
            ─> the SDK's limit ─> well-formed ─> distinct ids ─> the SDK ─> agora.protocol

Only `agora serve --http` imports this module.
"""

from __future__ import annotations

import asyncio
import math
import socket
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from typing import Any

import anyio
import uvicorn
from mcp.server.auth.middleware.bearer_auth import AuthenticatedUser
from mcp.server.auth.provider import AccessToken
from mcp.server.lowlevel import Server
from mcp.server.streamable_http import EventStore
from mcp.server.transport_security import TransportSecuritySettings
from starlette.middleware.cors import CORSMiddleware
from starlette.types import ASGIApp, Receive, Scope, Send

from agora.transport.address import BACKLOG, PATH, Listener
from agora.transport.auth import Token, Tokens
from agora.transport.draining import Draining
from agora.transport.guard import TOKEN_KEY, BearerToken, BodySize, OwnAddress
from agora.transport.in_flight import DistinctIds
from agora.transport.lifetime import Ending, on_signals
from agora.transport.metrics import Metrics
from agora.transport.options import LOG, Log
from agora.transport.probes import HEALTH, METRICS, READY, MetricsPage, Probes, Problems
from agora.transport.rate import RateLimit
from agora.transport.sessions import SESSION_HEADER, Sessions, SessionWatch
from agora.transport.sse import MESSAGES, SSE, LegacySse
from agora.transport.well_formed import WellFormed

_KEEP_ALIVE = 75
"""Seconds that a connection without a request stays open."""

_METHODS = ("GET", "POST", "DELETE")
_SENT_BY_PAGES = (
    *("Authorization", "Content-Type", "Last-Event-ID", "Mcp-Method", "Mcp-Name", "MCP-Protocol-Version"),
    SESSION_HEADER,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class HttpOptions:
    """The terms of one HTTP server; see the settings of the same names.

    `rate`: requests a second for each token. `sse`: serves HTTP+SSE too. `events`: keeps what was sent on a stream, for
    clients that lost it and ask again after `retry_ms`. `log`: never receives a token, nor contents above DEBUG.
    """

    hosts: tuple[str, ...] = ()
    origins: tuple[str, ...] = ()
    max_sessions: int = 1000
    idle_seconds: float = 1800.0
    body_bytes: int = 16 * 1024 * 1024
    drain_seconds: float = 1.0
    rate: float | None = None
    sse: bool = False
    events: EventStore | None = None
    retry_ms: int | None = None
    log: Log = LOG


@dataclass(frozen=True, slots=True)
class Observed:
    """What those are told who run the server: `problems` looks, in a worker thread, why calls could not be answered.

    `may_count` says whether somebody with that token is told the numbers of `metrics`.
    """

    metrics: Metrics
    problems: Problems = list
    may_count: Callable[[Token | None], bool] = lambda _: True


@dataclass(frozen=True, slots=True)
class HttpApp:
    """An ASGI application, and the part of it that brings requests in flight to their end."""

    asgi: ASGIApp
    draining: Draining


def http_app(
    server: Server[Any],
    listener: Listener,
    tokens: Tokens | None,
    sessions: Sessions,
    options: HttpOptions,
    observed: Observed,
) -> HttpApp:
    """`server` over HTTP at `PATH`, in both protocol eras; `tokens` None lets everybody in who can connect."""
    app: ASGIApp = server.streamable_http_app(
        streamable_http_path=PATH,
        event_store=options.events,
        retry_interval=options.retry_ms,
        max_request_body_size=options.body_bytes,
        session_idle_timeout=options.idle_seconds,
        max_sessions=options.max_sessions,
        # `OwnAddress` checks Host and Origin, before the token.
        transport_security=TransportSecuritySettings(enable_dns_rebinding_protection=False),
    )
    # Behind the SDK's own limit on bodies, which holds a body whole: it is not held a second time.
    limit = server.session_manager.asgi_app
    ids = DistinctIds(limit.app)
    limit.app = WellFormed(ids)
    server.middleware.append(ids.watch)
    app = SessionWatch(app, sessions)
    if options.sse:
        app = LegacySse(app, server, options.body_bytes)
    # In front of both: sessions over HTTP+SSE have an owner too.
    draining = Draining(_Owner(app))
    app = MetricsPage(BodySize(draining, options.body_bytes), observed.metrics, observed.may_count)
    if options.rate is not None:
        app = RateLimit(app, options.rate, options.log)
    app = BearerToken(app, tokens, options.log)
    app = Probes(app, observed.problems, lambda: draining.closed)
    if options.origins:
        app = CORSMiddleware(
            app,
            allow_origins=options.origins,
            allow_methods=_METHODS,
            allow_headers=_SENT_BY_PAGES,
            expose_headers=(SESSION_HEADER, "WWW-Authenticate"),
        )
    own = OwnAddress(
        app,
        listener,
        hosts=options.hosts,
        origins=options.origins,
        log=options.log,
        paths=(PATH, HEALTH, READY, METRICS, *((SSE, MESSAGES) if options.sse else ())),
    )
    return HttpApp(observed.metrics.counting(own), draining)


class _Owner:
    """Tells the SDK whose request it is, in its own form: a session belongs to the token that opened it."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        token = scope.get(TOKEN_KEY)
        if token is not None:
            # The name is enough to tell owners apart; the secret stays where it was.
            scope = {**scope, "user": AuthenticatedUser(AccessToken(token="", client_id=token.name, scopes=[]))}
        await self._app(scope, receive, send)


def run_http(
    app: HttpApp,
    listener: Listener,
    *,
    on_ready: Callable[[], None],
    on_stop: Callable[[], None],
    options: HttpOptions,
) -> int:
    """Serve `app` on `listener` until a signal asks for the end; returns the process's exit status.

    `on_ready` is called in the event loop when requests are answered. `on_stop` is called once at the end, in a
    thread of its own. SIGTERM, SIGINT, SIGHUP and Ctrl-Break stop it: no new requests, calls in flight have
    `options.drain_seconds` to answer, and the process is gone 0.35 s after that at the latest (see `Ending`),
    so this is the last thing that a process does. The status is 0, or 1 if `on_stop` failed. Main thread only.
    """
    ending = Ending(on_stop, options.drain_seconds, options.log)

    async def serve() -> None:
        loop = asyncio.get_running_loop()
        stop = anyio.Event()

        def end(reason: str) -> None:
            ending.begin(reason)
            # The loop may be closed already: then there is nothing left to stop.
            with suppress(RuntimeError):
                loop.call_soon_threadsafe(stop.set)

        on_signals(end)
        await serve_http(app, listener, stop, on_ready=on_ready, options=options)

    try:
        anyio.run(serve)
    finally:
        status = ending.finish()
    return status


async def serve_http(
    app: HttpApp, listener: Listener, stop: anyio.Event, *, on_ready: Callable[[], None], options: HttpOptions
) -> None:
    """Serve `app` on `listener` in the running event loop until `stop` is set; then drain as `run_http` does."""
    server = _Uvicorn(_config(app.asgi, options), on_ready)

    async def drain_when_stopped() -> None:
        await stop.wait()
        server.should_exit = True
        await app.draining.drain(options.drain_seconds)

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(drain_when_stopped)
        await server.serve(sockets=[listener.sock])
        tasks.cancel_scope.cancel()


class _Uvicorn(uvicorn.Server):
    """uvicorn, which leaves the signals to us and says when it is ready."""

    def __init__(self, config: uvicorn.Config, on_ready: Callable[[], None]) -> None:
        super().__init__(config)
        self._on_ready = on_ready

    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        """Capture none: uvicorn would raise them again at its end, and kill the process while it flushes."""
        yield

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """Start as uvicorn does, then tell."""
        await super().startup(sockets)
        self._on_ready()


def _config(app: ASGIApp, options: HttpOptions) -> uvicorn.Config:
    return uvicorn.Config(
        app,
        # One parser and one loop on every machine, whatever else is installed.
        http="h11",
        loop="asyncio",
        ws="none",
        lifespan="on",
        backlog=BACKLOG,
        # Its log goes where all logs go, and only what an operator must see: anybody can send nonsense.
        log_config=None,
        log_level="error",
        access_log=False,
        proxy_headers=False,
        server_header=False,
        # Longer than clients keep one (httpx 5 s, browsers up to 60): who closes first cuts off no request.
        timeout_keep_alive=_KEEP_ALIVE,
        # `Draining` has ended every request by then; a client that reads nothing is not waited for.
        timeout_graceful_shutdown=math.ceil(options.drain_seconds),
    )
