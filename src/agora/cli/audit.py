from __future__ import annotations

import sys
from dataclasses import asdict
from typing import Annotated, Any

import typer

from agora.cli import output, progress
from agora.cli.session import CLIENT, Config, Home, Json, errors_as_status, origin, quiet, settings
from agora.errors import InvalidInput
from agora.model.audit import ORDER, Entry, Head, Left, Listed, Step, Verified, Wanted, Writer
from agora.model.calls import CallCount, CallEntry
from agora.model.deadline import Deadline

_SECONDS = 86_400.0
"""A writer's changes take as long as they take, a batch at a time."""

_SHOWN = 20

_OPERATIONS = (
    *("save", "merge", "withdraw", "supersede", "contest", "settle", "pin", "unpin"),
    *("forget", "restore", "expire", "purge", "reembed", "repair", "append", "summarize"),
)
_OF_CALLS = ("call", "approve")

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
    operation: Annotated[
        str | None,
        typer.Option(help=f"Only changes of this kind: {', '.join(_OPERATIONS)}; or {' or '.join(_OF_CALLS)}."),
    ] = None,
    calls: Annotated[
        bool, typer.Option("--calls", help="Also calls of other servers' tools, in the order of time.")
    ] = False,
    limit: Annotated[int, typer.Option(min=1, max=1_000_000, help="Show so many, the newest.")] = 100,
    verify: Annotated[
        bool, typer.Option("--verify", help="Check that no row of either record was changed, taken out or moved.")
    ] = False,
    head: Annotated[
        str | None,
        typer.Option("--head", metavar="N:HASH", help="With --verify: what it printed before, and must still find."),
    ] = None,
    calls_head: Annotated[
        str | None, typer.Option("--calls-head", metavar="N:HASH", help="As --head, for the record of calls.")
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
        given |= {
            "namespace": namespace,
            "since": since,
            "until": until,
            "operation": operation,
            "calls": "yes" if calls else None,
        }
        if verify and (named := [name for name, value in given.items() if value]):
            raise InvalidInput(named[0], "must not be given with --verify, which looks at every row", named[0])
        known, known_calls = _head("head", head, verify=verify), _head("calls-head", calls_head, verify=verify)
        if operation is not None and operation not in {*_OPERATIONS, *_OF_CALLS}:
            raise InvalidInput("operation", f"must be one of {', '.join((*_OPERATIONS, *_OF_CALLS))}", operation)
        loaded = settings(home, config)
        if verify:
            _verify(loaded, known, known_calls, json_wanted=json_wanted)
            return
        from agora.app.auditing import listed  # noqa: PLC0415 - `agora --help` must not pay for it

        writer = _writer(agent, session, client, token_name, namespace, since)
        wanted = Wanted(writer, _instant("until", until, "end"), operation, limit)
        found = listed(
            loaded,
            wanted,
            changes=operation not in _OF_CALLS,
            calls=operation in _OF_CALLS or (calls and operation is None),
        )
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
                steps, left, calls = done.done, done.left, done.calls
            else:
                planned = reverter.plan(writer, caller.origin, deadline)
                steps, left, calls = planned.steps, planned.left, planned.calls
    if json_wanted:
        output.as_json(
            {
                "dry_run": not yes,
                "counts": {name.replace(" ", "_"): _count(steps, name) for name in ORDER},
                "steps": [_step(each) for each in steps],
                "left": [{"id": each.id, "namespace": each.namespace, "reason": each.reason} for each in left],
                "calls": {"all": calls.calls, "writing": calls.writing},
                **({"sequence": done.sequence, "session": caller.session} if yes else {}),
            }
        )
    else:
        _show(steps, left, calls, yes=yes)


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


def _head(param: str, text: str | None, *, verify: bool) -> Head | None:
    if text is None:
        return None
    if not verify:
        raise InvalidInput(param, "goes with --verify", text)
    known = Head.parsed(text)
    if known is None:
        raise InvalidInput(
            param, "must be what `agora audit --verify` printed as head: a number, a colon, a hash", text
        )
    return known


def _verify(loaded: Any, known: Head | None, known_calls: Head | None, *, json_wanted: bool) -> None:  # noqa: ANN401 - Loaded, imported late
    from agora.app.auditing import verified, verified_calls  # noqa: PLC0415 - as above

    changes, calls = verified(loaded, known), verified_calls(loaded, known_calls)
    if json_wanted:
        output.as_json({**_as_json(changes), "calls": _as_json(calls)})
    else:
        _tell("change", changes, known)
        if calls.rows or calls.broken:
            _tell("call", calls, known_calls)
        if changes.broken or calls.broken:
            print("  Something other than Agora wrote to the store: compare it with a backup before you trust it.")
    if changes.broken or calls.broken:
        raise typer.Exit(1)


def _as_json(found: Verified) -> dict[str, Any]:
    broken = found.broken and {"sequence": found.broken.sequence, "reason": found.broken.reason}
    head = None if found.head is None else str(found.head)
    return {"whole": broken is None, "rows": found.rows, "head": head, "broken": broken}


def _tell(what: str, found: Verified, known: Head | None) -> None:
    head = found.head or "none"
    if found.broken is not None:
        output.line(f"BROKEN at {what} {found.broken.sequence}: {found.broken.reason}")
        print(f"  whole before it: {found.rows:,} {what}s, head {head}")
        return
    print(f"whole: {found.rows:,} {what}s, head {head}")
    if known is not None:
        print(f"  the first {known.sequence:,} are those that the head was given of")


def _list(found: Listed) -> None:
    for each in found.rows:
        program = f"{each.client} {each.client_version}".strip() + (f" ({each.token})" if each.token else "")
        by = f"by {output.named(each.agent)} ({each.origin}), {program}, {each.session or 'no session'}"
        if isinstance(each, CallEntry):
            output.line(f"{each.sequence:>6}  {_at(each)}  {each.operation:<9}  {_called(each)}  {by}")
            continue
        where = f"{each.id or 'the store'} in {each.namespace}" if each.namespace else each.id or "the store"
        gone = ", purged" if each.purged else ""
        line = f"{each.sequence:>6}  {_at(each)}  {each.operation:<9}  {where}{gone}"
        output.line(f"{line}  {by}")
    if not found.rows:
        print("no changes")
    elif found.total > len(found.rows):
        print(f"the last {len(found.rows)} of {found.total}: --limit shows more", file=sys.stderr)


def _called(each: CallEntry) -> str:
    """What was called, and what came of it."""
    where = f"{each.tool} of {each.backend} in {each.namespace}"
    if each.operation == "approve":
        return where
    came = "from the cache" if each.cached else f"{each.outcome} in {each.seconds:.2f} s"
    return f"{where}: {each.access}, {came}"


def _show(steps: tuple[Step, ...], left: tuple[Left, ...], calls: CallCount, *, yes: bool) -> None:
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
    _show_calls(calls)
    if not steps:
        print("nothing to undo")
    elif not yes:
        print("nothing has changed yet: add --yes to undo", file=sys.stderr)


def _show_calls(calls: CallCount) -> None:
    if calls.calls:
        print(
            f"cannot be undone: {calls.calls} calls of other servers' tools, of which {calls.writing} may have changed"
            " something there; `agora audit --calls` lists them"
        )


def _at(each: Entry | CallEntry) -> str:
    return each.at.isoformat().replace("+00:00", "Z")


def _entry(each: Entry | CallEntry) -> dict[str, Any]:
    if isinstance(each, CallEntry):
        return {name: value for name, value in (asdict(each) | {"at": _at(each)}).items() if value not in {None, ""}}
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
