"""`agora backends`: other MCP servers that agents reach through Agora."""

from __future__ import annotations

import difflib
import json
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from agora.cli import output
from agora.cli.gateway import asked
from agora.cli.session import CLIENT, Config, Home, Json, errors_as_status, opened_agora, origin, settings
from agora.config.backends import identity
from agora.errors import BackendNotFound

if TYPE_CHECKING:
    from agora.config.backends import BackendTable
    from agora.exchange.servers.importing import Plan, Row

backends = typer.Typer(
    name="backends",
    help="Other MCP servers that agents reach through Agora.",
    no_args_is_help=True,
    add_completion=False,
    rich_markup_mode=None,
)


@backends.callback()
def _group() -> None:
    """Other MCP servers that agents reach through Agora."""


@backends.command("list")
def list_(
    query: Annotated[str | None, typer.Argument(help="What a tool should do: the best ones are shown too.")] = None,
    json_wanted: Json = False,
    home: Home = None,
    config: Config = None,
) -> None:
    """Show the backends, and how they are.

    State and health are those of the shared server's sessions, if it runs.
    """
    with errors_as_status(json_wanted=json_wanted):
        found = asked("agora_backends", {"query": query}, home, config)
    if json_wanted:
        output.as_json(found)
        return
    for row in found["backends"]:
        tools = "" if "tools" not in row else f", {row['tools']} tools"
        speed = f", {row['latency_ms']:g} ms" if "latency_ms" in row else ""
        access = ", read-only" if row["read_only"] else ""
        output.line(f"{row['name']}  {row['transport']}, {row['state']}, {row['health']}{tools}{speed}{access}")
        if "last_error" in row:
            output.line(f"  last error: {row['last_error']}")
        for tool in row.get("quarantined", ()):
            output.line(f"  quarantined: {tool} (see `agora backends diff`)")
    if not found["backends"]:
        print("no backends: docs/gateway.md says how to add some, `agora backends import` takes them from a file")
    for row in found.get("tools", ()):
        output.line(f"{row['score']:.2f}  {row['backend']}  {row['tool']}  ({row['access']})  {row['description']}")
    if "configuration" in found:
        print(f"agora: {output.printable(found['configuration']['message'])}", file=sys.stderr)


@backends.command()
def diff(
    backend: Annotated[str | None, typer.Argument(help="Only this backend.")] = None,
    json_wanted: Json = False,
    home: Home = None,
    config: Config = None,
) -> None:
    """Show tools that have changed, before and after."""
    with errors_as_status(json_wanted=json_wanted), opened_agora(home, config) as agora:
        from agora.app.approving import pins_of  # noqa: PLC0415 - `agora --help` must not pay for it

        pins, tables = pins_of(agora), _tables(agora, backend)
        changes = [(each.name, change) for each in tables for change in pins.diff(each.name, identity(each))]
    if json_wanted:
        rows = [
            {
                "backend": name,
                "tool": change.tool,
                "digest": change.digest,
                "seen_at": change.seen_at.isoformat(),
                "before": change.before.details(),
                "after": change.after.details(),
            }
            for name, change in changes
        ]
        output.as_json({"changes": rows})
        return
    for name, change in changes:
        output.line(f"{name}  {change.tool}")
        before, after = (_written(each.details()) for each in (change.before, change.after))
        for line in difflib.unified_diff(before, after, "approved", "now", lineterm="", n=2):
            output.line(f"  {line}")
    if not changes:
        print("no tool waits for approval")


@backends.command()
def approve(
    backend: Annotated[str, typer.Argument(help="Which backend.")],
    tools: Annotated[
        list[str] | None, typer.Argument(help="Which of its tools; all that wait, if none is named.")
    ] = None,
    json_wanted: Json = False,
    home: Home = None,
    config: Config = None,
) -> None:
    """Accept what changed tools say of themselves.

    For a person at a terminal: look at `agora backends diff` first. A server that runs takes it up by itself.
    """
    with errors_as_status(json_wanted=json_wanted), opened_agora(home, config) as agora:
        [table] = _tables(agora, backend)
        connection = agora.connection(origin=origin(), folder=Path.cwd(), door="command")
        from agora.app.approving import pins_of  # noqa: PLC0415 - as above

        caller = connection.caller(CLIENT)
        approved = pins_of(agora).approve(table.name, identity(table), tools or None, caller)
    if json_wanted:
        output.as_json({"backend": backend, "approved": list(approved)})
    else:
        output.line(f"approved: {', '.join(approved) or 'nothing waited for it'}")


def _tables(agora: Any, name: str | None) -> list[BackendTable]:  # noqa: ANN401 - Agora, without importing it here
    tables = [table for table in agora.settings.backends if name is None or table.name.casefold() == name.casefold()]
    if name is not None and not tables:
        raise BackendNotFound(f"there is no backend {name!r}", hint="`agora backends list` shows what there is.")
    return tables


def _written(details: Mapping[str, Any]) -> list[str]:
    return json.dumps(details, ensure_ascii=False, indent=2, sort_keys=True).splitlines()


@backends.command("import")
def import_(
    file: Annotated[
        Path,
        typer.Argument(help="Configuration file of Claude, Cursor, Windsurf, VS Code, Gemini CLI or Codex."),
    ],
    only: Annotated[
        list[str] | None, typer.Option("--only", metavar="NAME", help="Only this server; may be given several times.")
    ] = None,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Show what would be added, and write nothing.")] = False,
    with_secrets: Annotated[
        bool,
        typer.Option("--with-secrets", help="Copy secrets as they stand. Without it variables take their place."),
    ] = False,
    json_wanted: Json = False,
    home: Home = None,
    config: Config = None,
) -> None:
    """Add the MCP servers of another client's file to agora.toml.

    What agora.toml holds stays as it is; a server that runs takes the new backends up by itself.
    """
    with errors_as_status(json_wanted=json_wanted):
        from agora.exchange.servers.importing import plan  # noqa: PLC0415 - `agora --help` must not pay for it
        from agora.exchange.servers.reading import read_client_file  # noqa: PLC0415 - as above
        from agora.exchange.servers.writing import appended, checked, put  # noqa: PLC0415 - as above

        loaded = settings(home, config)
        found = read_client_file(file.expanduser())
        there = loaded.settings.backends
        done = plan(found, loaded.place, there, only=only or (), with_secrets=with_secrets)
        places: dict[str, str] = {}
        if done.text:
            old = loaded.place.read_bytes() if loaded.file else None
            new = appended(old or b"", done.text)
            places = {table.name: table.place for table in checked(loaded.place, old or b"", new)}
            if not dry_run:
                put(loaded.place, old, new)
    if json_wanted:
        output.as_json(_data(done, found.kind, loaded.place, places, dry_run=dry_run))
    else:
        _show(done, found.kind, loaded.place, places, dry_run=dry_run)


def _data(done: Plan, kind: str, place: Path, places: Mapping[str, str], *, dry_run: bool) -> dict[str, Any]:
    return {
        "dry_run": dry_run,
        "format": kind,
        "file": str(place),
        "servers": [_row(row, places) for row in done.rows],
        "set": [{"variable": each[0], "backend": each[1], "key": each[2]} for each in done.wanted],
        **({"text": done.text} if dry_run else {}),
    }


def _row(row: Row, places: Mapping[str, str]) -> dict[str, Any]:
    found: dict[str, Any] = {"name": row.name, "fate": row.fate, "backend": row.backend, "transport": row.transport}
    found |= {"place": places.get(row.backend), "project": row.project}
    found |= {"reason": row.reason, "remarks": list(row.remarks)}
    return {name: value for name, value in found.items() if value}


def _show(done: Plan, kind: str, place: Path, places: Mapping[str, str], *, dry_run: bool) -> None:
    words = {"imported": "would import" if dry_run else "imported", "skipped": "skipped", "refused": "refused"}
    wide = max((len(words[row.fate]) for row in done.rows), default=0)
    long = max((len(output.printable(row.name)) for row in done.rows), default=0)
    for row in done.rows:
        said = [f"{row.transport} ({places[row.backend]})"] if row.backend else []
        said += [row.reason] if row.reason else []
        said += [f"of {row.project}"] if row.project else []
        said += row.remarks
        output.line(f"{words[row.fate]:<{wide}}  {row.name:<{long}}  {'; '.join(said)}")
    if not done.rows:
        print(f"no servers in this file ({kind})")
    if done.wanted:
        print("set these where Agora starts:")
        for variable, backend, key in done.wanted:
            output.line(f"  {variable}  for {key} of {backend}")
    if dry_run and done.text:
        print(f"what would be added to {output.printable(str(place))}:")
        for line in done.text.strip("\n").splitlines():
            output.line(f"  {line}")
        print("nothing was written: leave out --dry-run to write", file=sys.stderr)
    elif done.text:
        output.line(f"written to {place}")
