"""`agora crossref`: what different agents know about a question or a note."""

from __future__ import annotations

from typing import Annotated

import typer

from agora.cli import output
from agora.cli.session import Config, Home, Json, Namespace, run_tool


def crossref(
    query: Annotated[str | None, typer.Argument(help="A question or a few words; or give --id.")] = None,
    id_: Annotated[str | None, typer.Option("--id", help="A note: its key, its anchors and what is near.")] = None,
    agent: Annotated[list[str] | None, typer.Option(help="Only what this agent saved; may be repeated.")] = None,
    since: Annotated[str | None, typer.Option(help="Not before: date, time, today, yesterday, 7d.")] = None,
    namespace: Namespace = None,
    json_wanted: Json = False,
    home: Home = None,
    config: Config = None,
) -> None:
    """Compare what different agents know."""
    given = {"query": query, "id": id_, "agents": agent, "since": since, "namespace": namespace}
    run_tool("agora_crossref", given, _show, json_wanted, home, config)


def _show(data: output.Data) -> None:
    for position in data["positions"]:
        more = f" (and {position['omitted']} more)" if position["omitted"] else ""
        output.line(f"{output.named(position['agent'])}{more}")
        for note in position["notes"]:
            echo = f", repeats {note['echo_of']}" if "echo_of" in note else ""
            saver = f"{note['client']}, {note['origin']}"
            contests = f", contests {note['contests']}" if "contests" in note else ""
            output.line(f"  {note['score']:.2f} {note['id']} {note['saved_at'][:10]} {saver}{echo}{contests}")
            output.suspected(note)
            print(output.indented(note["content"]))
    if not data["positions"]:
        print("nothing found")
    for verdict in data["verdicts"]:
        output.line(
            f"{verdict['verdict']}: {verdict['kind']} {verdict['value']} ({verdict['independent']} independent)"
        )
        output.suspected(verdict, "  ")
        for held in verdict.get("values", ()):
            name = f"{held['attribute']}: " if "attribute" in held else ""
            output.line(f"  {name}{held['value']} — {', '.join(map(output.named, held['agents']))}, {held['at'][:10]}")
            output.suspected(held, "    ")
    for anchor in data["anchors"]:
        output.line(
            f"shared {anchor['kind']} {anchor['value']}: {anchor['notes']} notes,"
            f" {', '.join(map(output.named, anchor['agents']))}"
        )
        output.suspected(anchor, "  ")
    changed = data["changed_by_others"]
    output.line(f"changed by others since {changed['last_read'] or 'ever'}: {changed['count']}")
    for change in changed["changes"]:
        output.line(
            f"  {change['at'][:16]} {output.named(change['agent'])}, {change['origin']}"
            f" {change['change']} {change['id']} {change.get('title', '')}"
        )
        output.suspected(change, "    ")
