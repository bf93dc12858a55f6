from __future__ import annotations

import sys
from typing import Annotated

import typer

from agora import __version__
from agora.cli import output
from agora.cli.configuration import config
from agora.cli.demo import demo
from agora.cli.doctor import doctor
from agora.cli.notes import forget, get, query, restore, save, status
from agora.cli.serve import serve

app = typer.Typer(
    name="agora",
    help="The one MCP server your agents share: what one learned, the others find.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
)

for _command in (save, query, get, forget, restore, status, demo, serve, config, doctor):
    app.command(_command.__name__)(_command)


def _show_version(wanted: bool) -> None:
    if wanted:
        print(f"agora {__version__}")
        raise typer.Exit


@app.callback()
def _root(
    version: Annotated[
        bool, typer.Option("--version", callback=_show_version, is_eager=True, help="Show the version.")
    ] = False,
) -> None:
    """The one MCP server your agents share: what one learned, the others find."""
    del version


def run() -> None:
    """Run the command line; never returns."""
    output.utf8_streams()
    try:
        app()
    except KeyboardInterrupt:
        sys.exit(130)
