from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from datetime import datetime
from pathlib import Path
from typing import Annotated, Any

import typer

from agora.cli import output
from agora.cli.session import (
    CLIENT,
    Config,
    Home,
    Json,
    errors_as_status,
    is_interactive,
    opened_agora,
    origin,
    require_known,
)
from agora.errors import InvalidInput
from agora.model.deadline import Deadline
from agora.model.purge import Condemned, Purged, Unwanted

_SECONDS = 86_400.0
"""A large store takes as long as it takes to be written anew."""

_LISTED = 20

_NOT_REACHED = (
    "not reached: copies (agora export, agora backup, agora.db.before-*, snapshots of the disk), what agents hold in"
    " their contexts, memory of running servers until they let it go"
)

Ids = Annotated[list[str] | None, typer.Argument(help="Ids of forgotten notes, as n_…. Default: all forgotten ones.")]
Scopes = Annotated[
    list[str] | None,
    typer.Option("--namespace", "-n", help="Only this scope; may be given again. Default: this project."),
]


def purge(
    ids: Ids = None,
    namespace: Scopes = None,
    all_namespaces: Annotated[bool, typer.Option("--all-namespaces", help="In every scope of the store.")] = False,
    before: Annotated[
        str | None, typer.Option(help="Only what was forgotten, or expired, before: date, time, 30d.")
    ] = None,
    expired: Annotated[
        bool, typer.Option("--expired", help="What has expired too, not only what was forgotten.")
    ] = False,
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Purge without asking.")] = False,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Say what would go, and change nothing.")] = False,
    json_wanted: Json = False,
    home: Home = None,
    config: Config = None,
) -> None:
    """Delete forgotten notes from every byte, for good."""
    with errors_as_status(json_wanted=json_wanted):
        if namespace and all_namespaces:
            raise InvalidInput("namespace", "must not be given together with --all-namespaces", namespace)
        with opened_agora(home, config) as agora:
            deadline = Deadline(_SECONDS)
            connection = agora.connection(origin=origin(), folder=Path.cwd(), door="command")
            namespaces = _namespaces(agora, connection, namespace, deadline, everywhere=all_namespaces, named=bool(ids))
            wanted = Unwanted(namespaces, tuple(ids or ()), _instant(agora, before), expired, origin())
            condemned = agora.purger.condemn(wanted, deadline)
            unfinished = agora.purger.unfinished(deadline) is not None
            if not json_wanted:
                _show_condemned(condemned, namespaces, unfinished=unfinished)
            done = None
            if not dry_run and (condemned.groups or unfinished):
                if not yes:
                    _ask(can_ask=is_interactive() and not json_wanted)
                done = agora.purger.purge(condemned, connection.caller(CLIENT), deadline, _told())
        if json_wanted:
            output.as_json(_data(condemned, done, dry_run=dry_run, unfinished=unfinished))
        elif done is not None:
            _show_purged(done, condemned)
        elif dry_run and (condemned.groups or unfinished):
            print("nothing has changed: this was a dry run", file=sys.stderr)
    if done is not None and done.unfinished:
        raise typer.Exit(1)


def _namespaces(
    agora: Any,  # noqa: ANN401 - Agora, without importing it here
    connection: Any,  # noqa: ANN401 - as above
    namespace: Sequence[str] | None,
    deadline: Deadline,
    *,
    everywhere: bool,
    named: bool,
) -> tuple[str, ...]:
    known: tuple[str, ...] = agora.transfer.namespaces(deadline)
    if everywhere:
        return known
    if not namespace:
        scope = connection.caller(CLIENT).scope
        # Ids say exactly what is meant, as in `agora forget`.
        return scope.visible() if named else (scope.own,)
    found = tuple(dict.fromkeys(connection.caller(CLIENT, namespace=name).scope.own for name in namespace))
    require_known(found, known)
    return found


def _instant(agora: Any, before: str | None) -> datetime | None:  # noqa: ANN401 - as above
    from agora.protocol.times import instant  # noqa: PLC0415 - `agora --help` must not pay for it

    return None if before is None else instant("before", before, agora.clock.now())


def _ask(*, can_ask: bool) -> None:
    """Return if the person at the terminal agrees.

    Raises: InvalidInput if nobody can be asked.
    """
    if not can_ask:
        hint = "Nothing was purged. Add --yes, or --dry-run to only look."
        raise InvalidInput("yes", "is required where nobody can be asked", None, hint=hint)
    if not typer.confirm("Purge? This cannot be undone.", default=False):
        print("nothing was purged", file=sys.stderr)
        raise typer.Exit(1)


def _told() -> Callable[[str], None]:
    """Names on stderr what is being emptied, if somebody looks."""
    if not sys.stderr.isatty():
        return lambda place: None  # noqa: ARG005 - nobody looks
    return lambda place: print(f"  {place} ...", file=sys.stderr)


def _show_condemned(condemned: Condemned, namespaces: Sequence[str], *, unfinished: bool) -> None:
    if unfinished:
        print("an earlier purge did not come to its end: its places are emptied once more")
    if condemned.gone:
        print(f"purged before: {', '.join(condemned.gone)}")
    if condemned.protected:
        more = "" if len(condemned.protected) <= _LISTED else f" and {len(condemned.protected) - _LISTED} more"
        print(f"protected, of higher origin than yours, and stay: {', '.join(condemned.protected[:_LISTED])}{more}")
    if not condemned.groups:
        print(f"nothing to purge in {', '.join(namespaces)}")
        return
    print(f"to purge: {_counted(len(condemned.groups), condemned.versions)}")
    for each in condemned.shown:
        versions = f", {each.versions} versions" if each.versions > 1 else ""
        gone = f"{each.state} {each.since:%Y-%m-%d}"
        output.line(f"  {each.id} {output.named(each.agent)} ({each.origin}), {gone}{versions}: {each.title}")
    if len(condemned.groups) > len(condemned.shown):
        print(f"  ... and {len(condemned.groups) - len(condemned.shown)} more")
    if condemned.repeated_by:
        more = "" if len(condemned.repeated_by) <= _LISTED else f" and {len(condemned.repeated_by) - _LISTED} more"
        print(f"notes that repeat them, and stay: {', '.join(condemned.repeated_by[:_LISTED])}{more}")


def _show_purged(done: Purged, condemned: Condemned) -> None:
    print(f"purged {_counted(done.notes, done.versions)}; {_freed(done):,} bytes given back")
    if done.kept:
        print(f"kept, since they were restored or purged meanwhile: {done.kept} of {len(condemned.groups)}")
    clean = [each.place for each in done.places if each.problem is None]
    print(f"clean: {', '.join(clean)}")
    for each in done.places:
        if each.problem is not None:
            output.line(f"NOT CLEAN: {each.place}: {each.problem}")
    print(_NOT_REACHED)


def _counted(notes: int, versions: int) -> str:
    return f"{notes} note{'' if notes == 1 else 's'} ({versions} version{'' if versions == 1 else 's'})"


def _freed(done: Purged) -> int:
    return max(0, done.bytes_before - done.bytes_after)


def _data(condemned: Condemned, done: Purged | None, *, dry_run: bool, unfinished: bool) -> dict[str, Any]:
    """As plain data; of a dry run what would go. No places where nothing was done."""
    found: dict[str, Any] = {
        "dry_run": dry_run,
        "notes": len(condemned.groups) if done is None else done.notes,
        "versions": condemned.versions if done is None else done.versions,
        "unfinished": unfinished if done is None else done.unfinished,
        "listed": [
            {
                "id": each.id,
                "namespace": each.namespace,
                "title": each.title,
                "agent": each.agent,
                "origin": each.origin,
                "state": each.state,
                "since": each.since.isoformat().replace("+00:00", "Z"),
                "versions": each.versions,
            }
            for each in condemned.shown
        ],
        "purged_before": list(condemned.gone),
        "repeated_by": list(condemned.repeated_by),
        "protected": list(condemned.protected),
    }
    if done is None:
        return found
    places = [
        {"place": each.place, "clean": each.problem is None, **({"problem": each.problem} if each.problem else {})}
        for each in done.places
    ]
    return found | {
        "kept": done.kept,
        "bytes_freed": _freed(done),
        "samples": done.samples,
        "places": places,
        "not_reached": _NOT_REACHED,
    }
