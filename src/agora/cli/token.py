from __future__ import annotations

from typing import Annotated

import typer

from agora.cli import output
from agora.cli.session import Config, Home, Json, errors_as_status, settings


def token(
    name: Annotated[str | None, typer.Argument(help="Name of the token. Default: the first.")] = None,
    json_wanted: Json = False,
    home: Home = None,
    config: Config = None,
) -> None:
    """Print the token that HTTP clients need; makes one at need."""
    with errors_as_status(json_wanted=json_wanted):
        from agora.transport.auth import TOKEN_FILE, load_tokens  # noqa: PLC0415 - `agora --help` must not pay for it

        folder = settings(home, config).settings.home
        found = load_tokens(folder).named(name)
    if json_wanted:
        output.as_json({"name": found.name, "token": found.secret, "file": str(folder / TOKEN_FILE)})
    else:
        print(found.secret)
