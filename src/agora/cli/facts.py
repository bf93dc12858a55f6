"""`agora remember|recall|remember-from`: the tools of the same names."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from typing import Annotated, Any

import typer

from agora.cli import output
from agora.cli.notes import standard_input
from agora.cli.session import Config, Home, Json, Namespace, errors_as_status, run_tool
from agora.errors import InvalidInput

_TIME = "date, time, today, yesterday, 7d"
Said = Annotated[str | None, typer.Option(help="Who says so. Default: the setting agent, else agora-cli.")]
Session = Annotated[str | None, typer.Option(help="Conversation it belongs to.")]


def remember(
    key: Annotated[str, typer.Argument(help="What of the subject, as editor or database port.")],
    value: Annotated[str, typer.Argument(help="What it is.")],
    subject: Annotated[str | None, typer.Option(help="Who or what it is about. Default: user.")] = None,
    from_: Annotated[str | None, typer.Option("--from", help=f"Since when it holds: {_TIME}. Default: now.")] = None,
    to: Annotated[str | None, typer.Option(help="When it ceases to hold: as --from.")] = None,
    expires_in: Annotated[
        str | None, typer.Option(help="Lifetime: seconds, or 15m, 12h, 30d, 2w. Default: for ever.")
    ] = None,
    multi: Annotated[
        bool | None, typer.Option("--multi/--single", help="Whether the key has several values. Default: as before.")
    ] = None,
    json_value: Annotated[
        bool, typer.Option("--json-value", help="Read VALUE as JSON: a number, a list, an object.")
    ] = False,
    namespace: Namespace = None,
    agent: Said = None,
    session: Session = None,
    json_wanted: Json = False,
    home: Home = None,
    config: Config = None,
) -> None:
    """Remember a fact: what holds of somebody or something."""
    with errors_as_status(json_wanted=json_wanted):
        found = _parsed(value) if json_value else value
    given = {
        "key": key,
        "value": found,
        "subject": subject,
        "namespace": namespace,
        "valid_from": from_,
        "valid_to": to,
        "expires_in": int(expires_in) if expires_in and re.fullmatch(r"\d{1,12}", expires_in) else expires_in,
        "multi": multi,
        "agent": agent,
        "session": session,
    }
    run_tool("remember", given, _show_remembered, json_wanted, home, config)


def recall(
    subject: Annotated[str | None, typer.Argument(help="Who or what. Default: everybody.")] = None,
    key: Annotated[str | None, typer.Option(help="Only this key.")] = None,
    as_of: Annotated[str | None, typer.Option(help=f"What held then: {_TIME}.")] = None,
    known_at: Annotated[str | None, typer.Option(help="By what was known then: as --as-of.")] = None,
    history: Annotated[bool, typer.Option("--history", help="Show what held before too.")] = False,
    limit: Annotated[int | None, typer.Option(help="Most facts to show, 1 to 500.")] = None,
    max_tokens: Annotated[int | None, typer.Option(help="Hard limit, in tokens of 4 bytes, from 100 up.")] = None,
    namespace: Namespace = None,
    json_wanted: Json = False,
    home: Home = None,
    config: Config = None,
) -> None:
    """Show what holds of somebody or something."""
    given = {
        "subject": subject,
        "key": key,
        "namespace": namespace,
        "as_of": as_of,
        "known_at": known_at,
        "include_history": history or None,
        "limit": limit,
        "max_tokens": max_tokens,
    }
    run_tool("recall", given, _show_recalled, json_wanted, home, config)


def remember_from(
    text: Annotated[str, typer.Argument(help="What was said, or - to read it from standard input.")],
    subject: Annotated[str | None, typer.Option(help="Who speaks. Default: user.")] = None,
    occurred_at: Annotated[str | None, typer.Option(help=f"When it was said: {_TIME}.")] = None,
    namespace: Namespace = None,
    agent: Said = None,
    session: Session = None,
    json_wanted: Json = False,
    home: Home = None,
    config: Config = None,
) -> None:
    """Remember the facts that a text states plainly."""
    with errors_as_status(json_wanted=json_wanted):
        said = standard_input("text") if text == "-" else text
    given = {
        "text": said,
        "subject": subject,
        "namespace": namespace,
        "occurred_at": occurred_at,
        "agent": agent,
        "session": session,
    }
    run_tool("remember_from", given, _show_gathered, json_wanted, home, config)


def _parsed(text: str) -> Any:  # noqa: ANN401 - JSON
    try:
        found = json.loads(text)
    except json.JSONDecodeError as error:
        raise InvalidInput(
            "value",
            f"must be JSON: {error.msg} at character {error.pos}",
            text,
            hint="Without --json-value it is taken as a text.",
        ) from None
    except (RecursionError, ValueError):
        raise InvalidInput("value", "is nested too deep, or holds a number that is too long", text) from None
    if found is None:
        hint = "To say that it holds no more, give the old value with --to; `agora forget` takes a fact back."
        raise InvalidInput("value", "may not be null", text, hint=hint)
    return found


def _show_remembered(data: output.Data) -> None:
    marks = [f"{data['count']} sources"] if data["count"] > 1 else []
    if "until" in data:
        marks.append(f"until {data['until']}" + (", when a newer one begins" if data.get("late") else ""))
    marked = f" ({'; '.join(marks)})" if marks else ""
    output.line(f"{data['status']} {data['id']} in {data['namespace']}: {_named(data)}{marked}")
    _beside(data)


def _beside(data: output.Data) -> None:
    for each in data.get("replaced", ()):
        output.line(f"  replaces {_other(each)}, {each['since'][:10]} to {each['until'][:10]}")
        output.suspected(each, "    ")
    if "stands" in data:
        output.line(f"  beside {_other(data['stands'])}, which stays")
        output.suspected(data["stands"], "    ")


def _show_recalled(data: output.Data) -> None:
    if "profile" in data:
        print("\n".join(map(output.printable, data["profile"].splitlines())))
        print()
    for each in data["facts"]:
        output.line(_fact(each))
        output.suspected(each)
        for other in each.get("contested_by", ()):
            output.line(f"  contested by {_other(other)}, {other['since'][:10]}")
            output.suspected(other, "    ")
        if "quote" in each:
            output.line(f"  said: {each['quote']}")
    if not data["facts"]:
        print("nothing is known")
    for each in data.get("history", ()):
        output.line(f"{each['state']}: {_fact(each)}")
        output.suspected(each)
    for name, of in (("omitted", "facts"), ("history_omitted", "of the history")):
        if left := data.get(name):
            print(f"{left} more {of}: --limit and --max-tokens show them")


def _show_gathered(data: output.Data) -> None:
    remembered_rows(data["remembered"])
    for each in data["skipped"]:
        output.line(f"skipped {each['key']}: {_written(each['value'])} ({each['reason']})")
    if not data["remembered"]:
        print(f"no facts were found by {data['extracted_by']}")
    if "problem" in data:
        output.line(data["problem"])


def remembered_rows(rows: Sequence[output.Data], indent: str = "") -> None:
    """Facts that were taken from a text, each with the words that state it."""
    for each in rows:
        done = "ended" if each.get("ended") else each["status"]
        output.line(f"{indent}{done} {each['id']}: {_named(each)}")
        _beside(each)
        output.line(f"{indent}  said: {each['quote']}")


def _fact(each: output.Data) -> str:
    saver = each["sources"][0]
    more = f" and {each['count'] - 1} more" if each["count"] > 1 else ""
    until = f" to {each['until'][:10]}" if "until" in each else ""
    marks = [name for name in ("multi", "pinned", "cut") if each.get(name)]
    marked = f" {{{'; '.join(marks)}}}" if marks else ""
    return (
        f"{each['id']} {_named(each)} — {output.named(saver['agent'])}, {saver['origin']}{more},"
        f" {each['valid_from'][:10]}{until}, {each['namespace']}{marked}"
    )


def _named(each: output.Data) -> str:
    shown = f": {_written(each['value'])}" if "value" in each else ", taken back"
    return f"{each['key']} of {each['subject']}{shown}"


def _other(each: output.Data) -> str:
    return f"{each['id']} {_written(each['value'])} — {output.named(each['agent'])}, {each['origin']}"


def _written(value: Any) -> str:  # noqa: ANN401 - JSON
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
