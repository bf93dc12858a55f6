"""`agora access`: who may do what in which namespaces, by the tables of `agora.toml`."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any

import typer

from agora.cli import output
from agora.cli.session import Config, Home, Json, errors_as_status, settings


def access(
    namespace: Annotated[
        list[str] | None, typer.Argument(help="Scopes to ask about. Default: the project, `shared`, all of the store.")
    ] = None,
    token: Annotated[str | None, typer.Option(help="As somebody over HTTP with the token of this name.")] = None,
    http: Annotated[bool, typer.Option("--http", help="As somebody over HTTP without a token (--no-auth).")] = False,
    client: Annotated[str | None, typer.Option(help="As a program that calls itself so.")] = None,
    folder: Annotated[Path | None, typer.Option(help="As a session in this folder. Default: this one.")] = None,
    json_wanted: Json = False,
    home: Home = None,
    config: Config = None,
) -> None:
    """Show who may do what in which namespaces."""
    with errors_as_status(json_wanted=json_wanted):
        from agora.app.rights import Somebody, rights_of  # noqa: PLC0415 - `agora --help` must not pay for it

        who = Somebody(folder or Path.cwd(), http=http, token=token or "", client=client or "")
        found = rights_of(settings(home, config), who, namespace or ())
    if json_wanted:
        output.as_json(found)
    else:
        _show(found)


def _show(found: Mapping[str, Any]) -> None:
    rights = found["access"]
    output.line(f"{rights['who']}, project {found['project']} ({found['project_rule']})")
    if "rule" in rights:
        output.line(f"  {rights['rule']}")
    for said, tables in (("given by", rights.get("given_by", ())), ("limited by", rights.get("limited_by", ()))):
        for table in tables:
            patterns = ", ".join(table["namespaces"])
            backends = f"; backends {', '.join(table['backends'])}" if "backends" in table else ""
            output.line(
                f"  {said} table {table['table']} ({table['place']}): {table['rights']} in {patterns}{backends}"
            )
    if not rights.get("given_by", ("open",)):
        output.line(f"  none of the {found['tables']} tables gives it anything")
    width = max(len(row["namespace"]) for row in found["namespaces"])
    for row in found["namespaces"]:
        once_named = ", once it is named" if row["named_first"] else ""
        output.line(f"{row['namespace']:<{width}}  {row['rights'] or 'nothing'}{once_named}")
    if found["backends"]:
        output.line(f"backends: {', '.join(found['backends'])}")
    for name in found["unknown_tokens"]:
        output.line(f"note: there is no token named {name}, of which a table speaks")
