"""HTTP for many clients, by a process of its own or beside the sessions of the shared server."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

import anyio

from agora.app.agora import Agora
from agora.config.access import names_of
from agora.config.logs import get_logger
from agora.errors import ConfigError
from agora.protocol.lifecycle import Lifecycle, State
from agora.protocol.peer import Peer
from agora.protocol.server import make_server
from agora.protocol.services import Services
from agora.transport.address import Listener, listen, require_loopback
from agora.transport.auth import Token, load_tokens
from agora.transport.http import HttpApp, HttpOptions, Observed, http_app, run_http, serve_http
from agora.transport.metrics import Metrics
from agora.transport.sessions import Sessions


def listener_at(address: str, *, authenticate: bool) -> Listener:
    """A listening socket at `HOST:PORT`.

    Raises: ListenError; ConfigError for one that other machines reach if no token is asked for.
    """
    listener = listen(address)
    if not authenticate:
        try:
            require_loopback(listener.host, address)
        except ConfigError:
            listener.sock.close()
            raise
    return listener


@dataclass(frozen=True, slots=True)
class OverHttp:
    """An Agora at one address."""

    listener: Listener
    app: HttpApp
    options: HttpOptions

    @property
    def url(self) -> str:
        """What clients are configured with."""
        return self.listener.url

    @property
    def address(self) -> str:
        """Host and port in numbers."""
        return self.listener.authority

    def run(self, on_ready: Callable[[], None], on_stop: Callable[[], None]) -> int:
        """Serve until a signal, as the last thing that this process does; its exit status."""
        return run_http(self.app, self.listener, on_ready=on_ready, on_stop=on_stop, options=self.options)

    async def serve(self, stop: anyio.Event, on_ready: Callable[[], None]) -> None:
        """Serve in the running event loop until `stop` is set."""
        await serve_http(self.app, self.listener, stop, on_ready=on_ready, options=self.options)


def over_http(agora: Agora, listener: Listener, *, authenticate: bool, services: Services | None = None) -> OverHttp:
    """`agora` at the address of `listener`; `services` are those that the process has already.

    Raises: ConfigError for a file of tokens that cannot be used.
    """
    settings = agora.settings
    tokens = load_tokens(settings.home) if authenticate else None

    def peer(token: Token | None) -> Peer:
        # Never the server's own folder: it says nothing about a client that may be anywhere.
        lifecycle = Lifecycle(agora.log, "http")
        lifecycle.move(State.LISTENING)
        # Where other machines connect, a folder that a client declares is none of this one's to be looked into.
        make = partial(agora.connection, lifecycle=lifecycle, door="http", near=listener.loopback)
        if token is None:
            return Peer(make(), agora.log)
        return Peer(make(origin=token.origin, token=token.name, namespace=token.namespace), agora.log)

    def may_count(token: Token | None) -> bool:
        # Numbers of all calls tell what others do: they are for those who may see everything.
        return agora.policy.grants("http", token.name if token else "", (), "").whole

    if tokens is not None:
        for name in sorted(names_of(settings.access) - tokens.names()):
            agora.log.warning("an access table names a token that there is not", token=name)

    sessions = Sessions(peer, settings.http.idle_seconds)
    options = HttpOptions(
        hosts=settings.http.hosts,
        origins=settings.http.origins,
        max_sessions=settings.http.sessions,
        idle_seconds=settings.http.idle_seconds,
        body_bytes=settings.limits.line_bytes,
        drain_seconds=settings.server.drain,
        rate=settings.http.rate,
        sse=settings.http.sse,
        log=get_logger("agora.transport"),
    )
    metrics = Metrics(lambda: len(sessions))
    server = make_server(services or agora.services(), sessions.find, agora.log, done=metrics.called)
    app = http_app(server, listener, tokens, sessions, options, Observed(metrics, agora.unready, may_count))
    return OverHttp(listener, app, options)
