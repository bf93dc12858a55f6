from __future__ import annotations

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
    in_process: Annotated[
        bool, typer.Option("--in-process", help="Serve from this process alone, without the shared server.")
    ] = False,
    home: Home = None,
    config: Config = None,
) -> None:
    """Serve one MCP client over stdio, or many over HTTP."""
    with errors_as_status(json_wanted=False):
        if http is not None:
            from agora.cli.serve_http import serve_http  # noqa: PLC0415 - stdio must not pay for it

            raise typer.Exit(
                serve_http(
                    http, _options(namespace, agent, home, config), authenticate=not no_auth, in_process=in_process
                )
            )
        if no_auth:
            raise ConfigError("--no-auth goes with --http", hint="Over standard input and output there is no token.")
        from agora.cli.quick import quick_serve  # noqa: PLC0415 - the other commands must not pay for it

        quick_serve(_options(namespace, agent, home, config), in_process=in_process)


def _options(namespace: str | None, agent: str | None, home: Path | None, config: Path | None) -> dict[str, str]:
    given = {"home": home, "config": config, "namespace.default": namespace, "agent": agent}
    return {name: str(value) for name, value in given.items() if value is not None}
