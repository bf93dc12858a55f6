from __future__ import annotations

from typing import Annotated

import typer

from agora.cli import output
from agora.cli.session import Config, Home, Json, errors_as_status, settings


def cache(
    clear: Annotated[bool, typer.Option("--clear", help="Delete every entry; nothing but speed is lost.")] = False,
    json_wanted: Json = False,
    home: Home = None,
    config: Config = None,
) -> None:
    """Show what the cache on disk holds, or delete it."""
    with errors_as_status(json_wanted=json_wanted):
        from agora.app.administration import cache_of  # noqa: PLC0415 - `agora --help` must not pay for it

        found = cache_of(settings(home, config), clear=clear)
    if json_wanted:
        output.as_json(found)
        return
    if found["off"]:
        print(f"the cache is off: {found['off']}")
        return
    if clear:
        print(f"deleted {found['deleted']} entries")
    print(f"{found['path']}: {found['answers']} answers, {found['embeddings']} vectors, {found['bytes']:,} bytes")
