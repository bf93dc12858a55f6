from __future__ import annotations

import os
import sys
from typing import Annotated

import typer

from agora import __version__
from agora.cli import output
from agora.cli.access import access
from agora.cli.audit import audit, revert
from agora.cli.backends import backends
from agora.cli.backup import backup, restore_backup
from agora.cli.cache import cache
from agora.cli.configuration import config
from agora.cli.conversations import session
from agora.cli.crossref import crossref
from agora.cli.demo import demo
from agora.cli.doctor import doctor
from agora.cli.exchange import export, import_
from agora.cli.facts import recall, remember, remember_from
from agora.cli.gateway import broadcast, route
from agora.cli.indexing import reindex
from agora.cli.maintenance import compact
from agora.cli.notes import forget, get, pin, query, restore, save, status, unpin
from agora.cli.purge import purge
from agora.cli.reembed import reembed
from agora.cli.serve import serve
from agora.cli.server import server
from agora.cli.token import token

app = typer.Typer(
    name="agora",
    help="The one MCP server your agents share: what one learned, the others find.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
)

for _command in (
    save,
    query,
    get,
    crossref,
    remember,
    recall,
    remember_from,
    forget,
    restore,
    pin,
    unpin,
    purge,
    status,
    route,
    broadcast,
    demo,
    serve,
    token,
    export,
    import_,
    backup,
    restore_backup,
    audit,
    revert,
    compact,
    reindex,
    cache,
    config,
    access,
    doctor,
    reembed,
):
    app.command(_command.__name__.rstrip("_").replace("_", "-"))(_command)
app.add_typer(server)
app.add_typer(backends)
app.add_typer(session)


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
    # Notes are the user's alone: every file made from here on is readable by nobody else.
    os.umask(0o077)
    output.utf8_streams(sys.stderr)
    if sys.argv[1:2] != ["serve"]:
        # It writes out what was printed before, which for the server must not reach the client.
        output.utf8_streams(sys.stdout)
    try:
        app()
    except KeyboardInterrupt:
        sys.exit(130)
    finally:
        _flush()


def _flush() -> None:
    """Write out what is left while a failure can still be told from success."""
    try:
        if sys.stdout is not None:
            sys.stdout.flush()
    except BrokenPipeError:
        # The reader is gone, as `head` goes; the interpreter would complain when it flushes once more.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        sys.exit(1)
