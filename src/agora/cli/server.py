from __future__ import annotations

import sys
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any

import typer

from agora.cli import output
from agora.cli.session import Config, Home, Json, errors_as_status, settings

FOLLOW_SECONDS = 0.3

server = typer.Typer(
    name="server",
    help="The server that all agents of a data folder share.",
    no_args_is_help=True,
    add_completion=False,
    rich_markup_mode=None,
)


def _home(home: Path | None, config: Path | None) -> tuple[Path, dict[str, str]]:
    options = {"config": str(config)} if config else {}
    return settings(home, config).settings.home, options


@server.command()
def start(json_wanted: Json = False, home: Home = None, config: Config = None) -> None:
    """Start the shared server if it does not run."""
    with errors_as_status(json_wanted=json_wanted):
        from agora.daemon import control  # noqa: PLC0415 - `agora --help` must not pay for it

        folder, options = _home(home, config)
        _show(control.start(folder, options), json_wanted, "runs")


@server.command()
def stop(json_wanted: Json = False, home: Home = None, config: Config = None) -> None:
    """End the shared server; calls under way are answered first."""
    with errors_as_status(json_wanted=json_wanted):
        from agora.daemon import control  # noqa: PLC0415 - as above

        folder, _ = _home(home, config)
        _show(control.stop(folder), json_wanted, "ended; the next message of an agent starts it again")


@server.command()
def restart(json_wanted: Json = False, home: Home = None, config: Config = None) -> None:
    """End the shared server and start it anew, with the settings that it had and the files as they are now."""
    with errors_as_status(json_wanted=json_wanted):
        from agora.daemon import control  # noqa: PLC0415 - as above

        folder, options = _home(home, config)
        found, left_out = control.restart(folder, options)
        if left_out:
            print(
                f"agora: the server keeps the settings that it had, without this shell's {', '.join(left_out)};"
                " `agora server stop` and then `agora server start` takes them.",
                file=sys.stderr,
            )
        _show(found, json_wanted, "runs")


@server.command()
def status(json_wanted: Json = False, home: Home = None, config: Config = None) -> None:
    """Show the shared server and the sessions that it serves."""
    with errors_as_status(json_wanted=json_wanted):
        from agora.daemon import control  # noqa: PLC0415 - as above

        folder, _ = _home(home, config)
        _show(control.ask(folder, "status"), json_wanted, "runs")


@server.command()
def logs(
    lines: Annotated[int, typer.Option("--lines", min=1, help="How many of its last lines.")] = 50,
    follow: Annotated[bool, typer.Option("--follow", "-f", help="Go on as it writes, until Ctrl-C.")] = False,
    home: Home = None,
    config: Config = None,
) -> None:
    """Show what the shared server wrote to its log."""
    with errors_as_status(json_wanted=False):
        from agora.daemon import control  # noqa: PLC0415 - as above

        folder, _ = _home(home, config)
        if not follow:
            for line in control.log(folder, lines):
                output.line(line)
            return
        from agora.daemon.logs import Followed  # noqa: PLC0415 - as above

        followed = Followed(folder, lines)
        while True:
            for line in followed.fresh():
                output.line(line)
            time.sleep(FOLLOW_SECONDS)


def _show(found: Mapping[str, Any] | None, json_wanted: bool, said: str) -> None:
    if json_wanted:
        # `stop` tells of a server that has ended.
        output.as_json({"running": False} if found is None else {"running": said == "runs", **found})
        return
    if found is None:
        output.line("no shared server runs")
        return
    output.line(f"the shared server {said}: process {found['pid']}, release {found['version']}, {found['seconds']:g} s")
    for client in found.get("connections", ()):
        output.line(
            f"  process {client['pid']}, {client['state']}, {client['requests']} requests, {client['namespace']},"
            f" {client['folder']}"
        )
