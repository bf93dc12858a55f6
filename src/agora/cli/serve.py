from __future__ import annotations

import asyncio
import gc
from pathlib import Path
from typing import Annotated

import typer

from agora.cli.session import Config, Home, errors_as_status


def serve(
    namespace: Annotated[
        str | None,
        typer.Option("--namespace", "-n", help="Scope of calls that name none. Default: the project."),
    ] = None,
    agent: Annotated[str | None, typer.Option(help="Agent name of calls that give none.")] = None,
    home: Home = None,
    config: Config = None,
) -> None:
    """Serve one client over standard input and output (what MCP clients start)."""
    with errors_as_status(json_wanted=False):
        # Before anything else is imported: what prints on import must not reach the protocol's stream.
        from agora.transport.stdio import claim_stdio  # noqa: PLC0415

        claim_stdio()
        # The imports make a hundred thousand objects that stay: collecting among them costs an eighth of the start.
        gc.disable()
        raise typer.Exit(_serve(namespace, agent, home, config))


def _serve(namespace: str | None, agent: str | None, home: Path | None, config: Path | None) -> int:
    from agora.app import Agora  # noqa: PLC0415 - after the streams are claimed
    from agora.config.load import load_settings  # noqa: PLC0415 - as above
    from agora.config.logs import configure_logging, get_logger  # noqa: PLC0415 - as above
    from agora.protocol.server import make_server  # noqa: PLC0415 - as above
    from agora.transport.options import ConnectionOptions  # noqa: PLC0415 - as above
    from agora.transport.serve import run_stdio  # noqa: PLC0415 - as above

    options = {"home": home, "config": config, "namespace.default": namespace, "agent": agent}
    loaded = load_settings({name: str(value) for name, value in options.items() if value is not None})
    configure_logging(loaded.settings)
    agora = Agora(loaded)
    connection = agora.connection(folder=Path.cwd())
    log = get_logger("agora.serve")

    def on_ready() -> None:
        gc.freeze()
        gc.enable()
        log.info("ready", home=str(loaded.settings.home), namespace=connection.rule)
        # A moment later: the client's first messages are answered before the imports of the model compete.
        asyncio.get_running_loop().call_later(0.05, agora.encoder.warm_up)

    return run_stdio(
        lambda: make_server(agora.tools, connection, agora.log),
        on_ready=on_ready,
        on_stop=agora.close,
        options=ConnectionOptions(drain_seconds=loaded.settings.server.drain),
        max_line_bytes=loaded.settings.limits.line_bytes,
    )
