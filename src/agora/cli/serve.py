from __future__ import annotations

import asyncio
import gc
import sys
from pathlib import Path
from typing import Annotated

import typer

from agora.cli.session import Config, Home, errors_as_status
from agora.errors import ConfigError


def serve(
    namespace: Annotated[
        str | None,
        typer.Option("--namespace", "-n", help="Scope of calls that name none. Default: the project."),
    ] = None,
    agent: Annotated[str | None, typer.Option(help="Agent name of calls that give none.")] = None,
    http: Annotated[
        str | None,
        typer.Option(metavar="HOST:PORT", help="Serve many clients over HTTP instead; port 0 takes a free one."),
    ] = None,
    no_auth: Annotated[
        bool, typer.Option("--no-auth", help="With --http: ask for no token. Loopback addresses alone.")
    ] = False,
    home: Home = None,
    config: Config = None,
) -> None:
    """Serve one MCP client over stdio, or many over HTTP."""
    with errors_as_status(json_wanted=False):
        if http is not None:
            from agora.cli.serve_http import serve_http  # noqa: PLC0415 - stdio must not pay for it

            raise typer.Exit(serve_http(http, _options(namespace, agent, home, config), authenticate=not no_auth))
        if no_auth:
            raise ConfigError("--no-auth goes with --http", hint="Over standard input and output there is no token.")
        # Before anything else is imported: what prints on import must not reach the protocol's stream.
        from agora.transport.stdio import claim_stdio  # noqa: PLC0415 - not at the top, as said

        claim_stdio()
        # The imports make a hundred thousand objects that stay: collecting among them costs an eighth of the start.
        gc.disable()
        _fewer_arenas()
        raise typer.Exit(_serve(namespace, agent, home, config))


def _options(namespace: str | None, agent: str | None, home: Path | None, config: Path | None) -> dict[str, str]:
    given = {"home": home, "config": config, "namespace.default": namespace, "agent": agent}
    return {name: str(value) for name, value in given.items() if value is not None}


def _fewer_arenas() -> None:
    """Let glibc keep two heaps and not eight for each core: calls run in many threads, each rarely."""
    if sys.platform != "linux":
        return
    import ctypes  # noqa: PLC0415 - nothing else at the start needs it

    mallopt = getattr(ctypes.CDLL(None), "mallopt", None)
    if mallopt is not None:
        mallopt(_M_ARENA_MAX, 2)


_M_ARENA_MAX = -8
"""From glibc's malloc.h."""


def _serve(namespace: str | None, agent: str | None, home: Path | None, config: Path | None) -> int:
    from agora.app.agora import Agora  # noqa: PLC0415 - after the streams are claimed
    from agora.config.load import load_settings  # noqa: PLC0415 - as above
    from agora.config.logs import configure_logging, get_logger  # noqa: PLC0415 - as above
    from agora.protocol.lifecycle import Lifecycle, State  # noqa: PLC0415 - as above
    from agora.protocol.server import make_server  # noqa: PLC0415 - as above
    from agora.transport.options import ConnectionOptions  # noqa: PLC0415 - as above
    from agora.transport.serve import run_stdio  # noqa: PLC0415 - as above

    loaded = load_settings(_options(namespace, agent, home, config))
    configure_logging(loaded.settings)
    agora = Agora(loaded)
    lifecycle = Lifecycle(agora.log, "stdio")
    connection = agora.connection(folder=Path.cwd(), lifecycle=lifecycle)
    log = get_logger("agora.serve")

    def on_ready() -> None:
        lifecycle.move(State.LISTENING)
        gc.freeze()
        gc.enable()
        log.info("ready", home=str(loaded.settings.home), namespace=connection.namespace, rule=connection.rule)
        # A moment later: the client's first messages are answered before the imports of the model compete.
        asyncio.get_running_loop().call_later(0.05, agora.encoder.warm_up)
        agora.start_maintenance()

    def on_stop() -> None:
        lifecycle.move(State.SHUTDOWN)
        agora.close()

    return run_stdio(
        lambda: make_server(agora.services(), connection, agora.log),
        on_ready=on_ready,
        on_stop=on_stop,
        options=ConnectionOptions(drain_seconds=loaded.settings.server.drain),
        max_line_bytes=loaded.settings.limits.line_bytes,
    )
