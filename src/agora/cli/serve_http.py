from __future__ import annotations

import sys
from collections.abc import Mapping
from typing import Any

from agora.errors import ConfigError


def serve_http(address: str, options: Mapping[str, Any], *, authenticate: bool) -> int:
    """The exit status of a server at `HOST:PORT`; says on stderr where it listens, once it does.

    Raises: ListenError, ConfigError, and what opening the store and the model raises.
    """
    from agora.transport.address import listen  # noqa: PLC0415 - stdio and the other commands must not pay for HTTP

    # First of all: a wrong address is told at once, and clients of a right one wait instead of failing.
    listener = listen(address)
    if not (authenticate or listener.loopback):
        raise ConfigError(
            f"--no-auth is refused at {address}, which other machines can reach",
            hint="Leave it out, or listen at 127.0.0.1.",
        )
    from agora.app.agora import Agora  # noqa: PLC0415 - as above
    from agora.config.load import load_settings  # noqa: PLC0415 - as above
    from agora.config.logs import configure_logging, get_logger  # noqa: PLC0415 - as above
    from agora.protocol.lifecycle import Lifecycle, State  # noqa: PLC0415 - as above
    from agora.protocol.peer import Peer  # noqa: PLC0415 - as above
    from agora.protocol.server import make_server  # noqa: PLC0415 - as above
    from agora.transport.auth import Token, load_tokens  # noqa: PLC0415 - as above
    from agora.transport.http import HttpOptions, Observed, http_app, run_http  # noqa: PLC0415 - as above
    from agora.transport.metrics import Metrics  # noqa: PLC0415 - as above
    from agora.transport.sessions import Sessions  # noqa: PLC0415 - as above

    loaded = load_settings(options)
    settings = loaded.settings
    configure_logging(settings)
    tokens = load_tokens(settings.home) if authenticate else None
    agora = Agora(loaded)
    log = get_logger("agora.serve")

    def peer(token: Token | None) -> Peer:
        # Never the server's own folder: it says nothing about a client that may be anywhere.
        lifecycle = Lifecycle(agora.log, "http")
        lifecycle.move(State.LISTENING)
        if token is None:
            return Peer(agora.connection(lifecycle=lifecycle), agora.log)
        given = agora.connection(origin=token.origin, token=token.name, namespace=token.namespace, lifecycle=lifecycle)
        return Peer(given, agora.log)

    def on_ready() -> None:
        log.info("ready", home=str(settings.home), url=listener.url, token_needed=authenticate)
        # A line that scripts can wait for and read: the port may have been 0.
        print(f"listening on {listener.url}", file=sys.stderr, flush=True)
        agora.encoder.warm_up()
        agora.start_maintenance()

    sessions = Sessions(peer, settings.http.idle_seconds)
    terms = HttpOptions(
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
    server = make_server(agora.services(), sessions.find, agora.log, done=metrics.called)
    app = http_app(server, listener, tokens, sessions, terms, Observed(metrics, agora.unready))
    return run_http(app, listener, on_ready=on_ready, on_stop=agora.close, options=terms)
