from __future__ import annotations

import sys
from typing import Annotated, Any

import typer

from agora.cli import output, progress
from agora.cli.session import CLIENT, Config, Home, Json, errors_as_status, origin, quiet, settings
from agora.errors import InvalidInput
from agora.model.audit import ORDER, Entries, Entry, Head, Left, Step, Verified, Wanted, Writer
from agora.model.deadline import Deadline

_SECONDS = 86_400.0
"""A writer's changes take as long as they take, a batch at a time."""

_SHOWN = 20

_OPERATIONS = (
    *("save", "merge", "withdraw", "supersede", "contest", "settle", "pin", "unpin"),
    *("forget", "restore", "expire", "purge", "reembed", "repair"),
)

_COUNTED = {
    "withdraw": "to withdraw the writer's name from",
    "give back": "to give others' names back to",
    "forget": "to forget",
    "take back": "to take back",
    "restore": "to restore",
}
_DONE = {
    "withdraw": "withdrew the writer's name from",
    "give back": "gave others' names back to",
    "forget": "forgot",
    "take back": "took back",
    "restore": "restored",
}

Agent = Annotated[str | None, typer.Option("--agent", "-a", help="Only changes of this agent.")]
Session = Annotated[str | None, typer.Option("--session", "-s", help="Only changes of this session.")]
Client = Annotated[str | None, typer.Option("--client", help="Only changes through this program, as it names itself.")]
Token = Annotated[
    str | None, typer.Option("--token-name", help="Only changes by the token of this name; never the secret.")
]
Scope = Annotated[str | None, typer.Option("--namespace", "-n", help="Only changes in this scope. Default: all.")]
Since = Annotated[str | None, typer.Option(help="Only changes since then: a date, a time, 7d.")]


def audit(
    agent: Agent = None,
    session: Session = None,
    client: Client = None,
    token_name: Token = None,
    namespace: Scope = None,
    since: Since = None,
    until: Annotated[str | None, typer.Option(help="Only changes before then; a date counts as a whole.")] = None,
    operation: Annotated[str | None, typer.Option(help=f"Only changes of this kind: {', '.join(_OPERATIONS)}.")] = None,
    limit: Annotated[int, typer.Option(min=1, max=1_000_000, help="Show so many, the newest.")] = 100,
    verify: Annotated[
        bool, typer.Option("--verify", help="Check that no row of the journal was changed, taken out or moved.")
    ] = False,
    head: Annotated[
        str | None,
        typer.Option("--head", metavar="N:HASH", help="With --verify: what it printed before, and must still find."),
    ] = None,
    json_wanted: Json = False,
    home: Home = None,
    config: Config = None,
) -> None:
    """List who changed what, or verify that the record is whole.

    Servers may run meanwhile. With --verify every row is looked at, and the exit status is 1 if one is wrong.
    """
    with errors_as_status(json_wanted=json_wanted):
        given = {"agent": agent, "session": session, "client": client, "token-name": token_name}
        given |= {"namespace": namespace, "since": since, "until": until, "operation": operation}
        if verify and (named := [name for name, value in given.items() if value]):
            raise InvalidInput(named[0], "must not be given with --verify, which looks at every row", named[0])
        known = _head(head, verify=verify)
        if operation is not None and operation not in _OPERATIONS:
            raise InvalidInput("operation", f"must be one of {', '.join(_OPERATIONS)}", operation)
        loaded = settings(home, config)
        if verify:
            _verify(loaded, known, json_wanted=json_wanted)
            return
        from agora.app.auditing import listed  # noqa: PLC0415 - `agora --help` must not pay for it

        writer = _writer(agent, session, client, token_name, namespace, since)
        found = listed(loaded, Wanted(writer, _instant("until", until, "end"), operation, limit))
    if json_wanted:
        output.as_json({"total": found.total, "rows": [_entry(each) for each in found.rows]})
    else:
        _list(found)


def revert(
    agent: Annotated[str | None, typer.Option("--agent", "-a", help="Undo changes of this agent.")] = None,
    session: Annotated[str | None, typer.Option("--session", "-s", help="Undo changes of this session.")] = None,
    client: Client = None,
    token_name: Token = None,
    namespace: Scope = None,
    since: Since = None,
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Undo. Without it, only say what would be undone.")] = False,
    json_wanted: Json = False,
    home: Home = None,
    config: Config = None,
) -> None:
    """Undo what one agent or session changed.

    Without --yes it only says what would be undone. One of --agent, --session, --client and --token-name is required;
    all that are given hold. What somebody else changed since is listed and left. Servers may run meanwhile.
    """
    with errors_as_status(json_wanted=json_wanted):
        if not (agent or session or client or token_name):
            shown = "`agora audit` shows who changed what."
            raise InvalidInput("agent", "is required, or --session, --client, --token-name", agent, hint=shown)
        from agora.app.auditing import reverting  # noqa: PLC0415 - `agora --help` must not pay for it
        from agora.config.logs import configure_logging  # noqa: PLC0415 - as above

        loaded = settings(home, config)
        configure_logging(quiet(loaded))
        writer, deadline = _writer(agent, session, client, token_name, namespace, since), Deadline(_SECONDS)
        with reverting(loaded, writer, CLIENT, origin()) as (reverter, caller):
            if yes:
                with progress.shown("reverting") as told:
                    done = reverter.revert(writer, caller, deadline, lambda number, of: told("reverting", number, of))
                steps, left = done.done, done.left
            else:
                planned = reverter.plan(writer, deadline)
                steps, left = planned.steps, planned.left
    if json_wanted:
        output.as_json(
            {
                "dry_run": not yes,
                "counts": {name.replace(" ", "_"): _count(steps, name) for name in ORDER},
                "steps": [_step(each) for each in steps],
                "left": [{"id": each.id, "namespace": each.namespace, "reason": each.reason} for each in left],
                **({"sequence": done.sequence, "session": caller.session} if yes else {}),
            }
        )
    else:
        _show(steps, left, yes=yes)


def _writer(*named: str | None) -> Writer:
    """Of agent, session, client, token name, namespace and time, as they were given."""
    from agora.protocol.context import namespace_argument  # noqa: PLC0415 - `agora --help` must not pay for it

    *names, namespace, since = named
    scope = None if namespace is None else namespace_argument(namespace)
    agent, session, client, token = (name or None for name in names)
    return Writer(agent, session, client, token, scope, _instant("since", since, "start"))


def _instant(param: str, text: str | None, edge: Any) -> Any:  # noqa: ANN401 - an edge and an instant, imported late
    from datetime import UTC, datetime  # noqa: PLC0415 - as above

    from agora.protocol.times import instant  # noqa: PLC0415 - as above

    return None if text is None else instant(param, text, datetime.now(UTC), edge)


def _head(text: str | None, *, verify: bool) -> Head | None:
    if text is None:
        return None
    if not verify:
        raise InvalidInput("head", "goes with --verify", text)
    known = Head.parsed(text)
    if known is None:
        raise InvalidInput(
            "head", "must be what `agora audit --verify` printed as head: a number, a colon, a hash", text
        )
    return known


def _verify(loaded: Any, known: Head | None, *, json_wanted: bool) -> None:  # noqa: ANN401 - Loaded, imported late
    from agora.app.auditing import verified  # noqa: PLC0415 - as above

    found: Verified = verified(loaded, known)
    head = None if found.head is None else str(found.head)
    if json_wanted:
        broken = found.broken and {"sequence": found.broken.sequence, "reason": found.broken.reason}
        output.as_json({"whole": broken is None, "rows": found.rows, "head": head, "broken": broken})
    elif found.broken is None:
        print(f"whole: {found.rows:,} changes, head {head or 'none'}")
        if known is not None:
            print(f"  the first {known.sequence:,} are those that the head was given of")
    else:
        output.line(f"BROKEN at change {found.broken.sequence}: {found.broken.reason}")
        print(f"  whole before it: {found.rows:,} changes, head {head or 'none'}")
        print("  Something other than Agora wrote to the store: compare it with a backup before you trust it.")
    if found.broken is not None:
        raise typer.Exit(1)


def _list(found: Entries) -> None:
    for each in found.rows:
        program = f"{each.client} {each.client_version}".strip() + (f" ({each.token})" if each.token else "")
        where = f"{each.id or 'the store'} in {each.namespace}" if each.namespace else each.id or "the store"
        gone = ", purged" if each.purged else ""
        line = f"{each.sequence:>6}  {_at(each)}  {each.operation:<9}  {where}{gone}"
        output.line(f"{line}  by {each.agent} ({each.origin}), {program}, {each.session or 'no session'}")
    if not found.rows:
        print("no changes")
    elif found.total > len(found.rows):
        print(f"the last {len(found.rows)} of {found.total}: --limit shows more", file=sys.stderr)


def _show(steps: tuple[Step, ...], left: tuple[Left, ...], *, yes: bool) -> None:
    for name in ORDER:
        chosen = [each for each in steps if each.undoing == name]
        if not chosen:
            continue
        print(f"{(_DONE if yes else _COUNTED)[name]}: {len(chosen)}")
        for each in chosen[:_SHOWN]:
            earlier = f" (before it: {each.earlier})" if each.earlier else ""
            output.line(f"  {each.id} in {each.namespace}{earlier}: {each.title}")
        if len(chosen) > _SHOWN:
            print(f"  ... and {len(chosen) - _SHOWN} more")
    if left:
        print(f"left: {len(left)}")
        for stays in left[:_SHOWN]:
            output.line(f"  {stays.id} in {stays.namespace}: {stays.reason}")
        if len(left) > _SHOWN:
            print(f"  ... and {len(left) - _SHOWN} more")
    if not steps:
        print("nothing to undo")
    elif not yes:
        print("nothing has changed yet: add --yes to undo", file=sys.stderr)


def _at(each: Entry) -> str:
    return each.at.isoformat().replace("+00:00", "Z")


def _entry(each: Entry) -> dict[str, Any]:
    found = {
        "sequence": each.sequence,
        "at": _at(each),
        "operation": each.operation,
        "id": each.id,
        "namespace": each.namespace,
        "agent": each.agent,
        "client": each.client,
        "client_version": each.client_version,
        "token": each.token,
        "session": each.session,
        "origin": each.origin,
        "purged": each.purged,
    }
    return {name: value for name, value in found.items() if value not in {None, ""}}


def _step(each: Step) -> dict[str, Any]:
    found = {
        "undo": each.undoing.replace(" ", "_"),
        "id": each.id,
        "namespace": each.namespace,
        "title": each.title,
    }
    return found if each.earlier is None else found | {"earlier": each.earlier}


def _count(steps: tuple[Step, ...], undoing: str) -> int:
    return sum(1 for each in steps if each.undoing == undoing)
