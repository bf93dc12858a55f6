"""`agora save|query|get|forget|restore|pin|unpin|status`: the tools of the same names."""

from __future__ import annotations

import json
import re
import sys
from typing import Annotated, Any

import typer

from agora.cli import output
from agora.cli.session import Config, Home, Json, Namespace, errors_as_status, run_tool
from agora.errors import InvalidInput

Ids = Annotated[list[str], typer.Argument(help="Ids, as n_… or f_…")]
Tags = Annotated[list[str] | None, typer.Option("--tag", "-t", help="A label; may be repeated.")]


def save(
    content: Annotated[str, typer.Argument(help="The text, or - to read it from standard input.")],
    title: Annotated[str | None, typer.Option(help="A short title.")] = None,
    tag: Tags = None,
    namespace: Namespace = None,
    kind: Annotated[str | None, typer.Option(help="What it is: note, decision, bug, …")] = None,
    metadata: Annotated[str | None, typer.Option(help="A JSON object of your own fields.")] = None,
    agent: Annotated[str | None, typer.Option(help="Who saves. Default: the setting agent, else agora-cli.")] = None,
    session: Annotated[str | None, typer.Option(help="Conversation it belongs to.")] = None,
    occurred_at: Annotated[str | None, typer.Option(help="When it happened: date, time, today, yesterday, 7d.")] = None,
    confidence: Annotated[float | None, typer.Option(help="How sure you are, 0 to 1.")] = None,
    expires_in: Annotated[
        str | None, typer.Option(help="Lifetime: seconds, or 15m, 12h, 30d, 2w. Default: for ever.")
    ] = None,
    key: Annotated[str | None, typer.Option(help="Name for what changes: the same key adds a version.")] = None,
    origin: Annotated[
        str | None, typer.Option(help="Where the text is from, if lower than you: agent, tool, web.")
    ] = None,
    json_wanted: Json = False,
    home: Home = None,
    config: Config = None,
) -> None:
    """Save a note that every agent finds."""
    with errors_as_status(json_wanted=json_wanted):
        text = standard_input("content") if content == "-" else content
        fields = json_object("metadata", metadata)
    given = {
        "content": text,
        "title": title,
        "tags": tag,
        "namespace": namespace,
        "kind": kind,
        "metadata": fields,
        "agent": agent,
        "session": session,
        "occurred_at": occurred_at,
        "confidence": confidence,
        "expires_in": int(expires_in) if expires_in and re.fullmatch(r"\d{1,12}", expires_in) else expires_in,
        "key": key,
        "origin": origin,
    }
    run_tool("agora_save", given, output.saved, json_wanted, home, config)


def query(
    text: Annotated[str, typer.Argument(help="A question or a few words.")],
    top_k: Annotated[int | None, typer.Option("--top-k", "-k", help="Most notes to show, 1 to 50.")] = None,
    namespace: Namespace = None,
    tag: Tags = None,
    agent: Annotated[list[str] | None, typer.Option(help="Only what this agent saved; may be repeated.")] = None,
    kind: Annotated[list[str] | None, typer.Option(help="Only this kind; may be repeated.")] = None,
    metadata: Annotated[str | None, typer.Option(help="A JSON object: only notes with these values.")] = None,
    since: Annotated[str | None, typer.Option(help="Not before: date, time, today, yesterday, 7d.")] = None,
    until: Annotated[str | None, typer.Option(help="Before: as --since; a day counts whole.")] = None,
    min_score: Annotated[float | None, typer.Option(help="Leave out what scores less, 0 to 1.")] = None,
    max_tokens: Annotated[
        int | None, typer.Option(help="Hard limit for the texts, in tokens of 4 bytes, from 100 up.")
    ] = None,
    mode: Annotated[str | None, typer.Option(help="hybrid, semantic or lexical.")] = None,
    explain: Annotated[bool, typer.Option("--explain", help="Show the parts of each score.")] = False,
    json_wanted: Json = False,
    home: Home = None,
    config: Config = None,
) -> None:
    """Find notes by meaning and by words."""
    with errors_as_status(json_wanted=json_wanted):
        fields = json_object("metadata", metadata)
    given = {
        "query": text,
        "top_k": top_k,
        "namespace": namespace,
        "tags": tag,
        "agents": agent,
        "kinds": kind,
        "metadata": fields,
        "since": since,
        "until": until,
        "min_score": min_score,
        "max_tokens": max_tokens,
        "mode": mode,
        "explain": explain or None,
    }
    run_tool("agora_query", given, output.found, json_wanted, home, config)


def get(
    ids: Ids,
    namespace: Namespace = None,
    json_wanted: Json = False,
    home: Home = None,
    config: Config = None,
) -> None:
    """Show notes whole, by id."""
    run_tool("agora_get", {"ids": ids}, output.notes, json_wanted, home, config, namespace)


def forget(
    ids: Annotated[list[str] | None, typer.Argument(help="Ids, as n_… or f_…")] = None,
    tag: Tags = None,
    agent: Annotated[str | None, typer.Option(help="Notes that this agent alone saved.")] = None,
    namespace: Namespace = None,
    before: Annotated[str | None, typer.Option(help="Notes from before: date, time, 30d.")] = None,
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Really forget; without it, a preview.")] = False,
    reason: Annotated[str | None, typer.Option(help="Why; kept with the note.")] = None,
    json_wanted: Json = False,
    home: Home = None,
    config: Config = None,
) -> None:
    """Hide notes from every query; previews without --yes."""
    given = {
        "ids": ids or None,
        "tags": tag,
        "agent": agent,
        "namespace": namespace,
        "before": before,
        "dry_run": not yes,
        "reason": reason,
    }
    run_tool("agora_forget", given, output.forgotten, json_wanted, home, config)


def restore(
    ids: Ids,
    namespace: Namespace = None,
    json_wanted: Json = False,
    home: Home = None,
    config: Config = None,
) -> None:
    """Bring forgotten notes back."""
    run_tool("agora_restore", {"ids": ids}, output.restored, json_wanted, home, config, namespace)


def pin(
    ids: Ids,
    namespace: Namespace = None,
    json_wanted: Json = False,
    home: Home = None,
    config: Config = None,
) -> None:
    """Pin notes of yours: they stay, without expiry. On a terminal alone."""
    run_tool("agora_pin", {"ids": ids, "pinned": True}, output.pinned, json_wanted, home, config, namespace)


def unpin(
    ids: Ids,
    namespace: Namespace = None,
    json_wanted: Json = False,
    home: Home = None,
    config: Config = None,
) -> None:
    """Unpin notes. On a terminal alone."""
    run_tool("agora_pin", {"ids": ids, "pinned": False}, output.pinned, json_wanted, home, config, namespace)


def status(json_wanted: Json = False, home: Home = None, config: Config = None) -> None:
    """What the store holds and whether all is well."""
    run_tool("agora_status", {}, output.status, json_wanted, home, config)


def json_object(name: str, text: str | None) -> dict[str, Any] | None:
    """The object that an option gives as JSON; None without it.

    Raises: InvalidInput.
    """
    if text is None:
        return None
    try:
        found = json.loads(text)
    except json.JSONDecodeError as error:
        raise InvalidInput(name, f"must be JSON: {error.msg} at character {error.pos}", _shown(text)) from None
    except (RecursionError, ValueError):
        raise InvalidInput(name, "is nested too deep, or holds a number that is too long", _shown(text)) from None
    if not isinstance(found, dict):
        raise InvalidInput(name, "must be a JSON object", _shown(text))
    return found


def _shown(text: str) -> str:
    """What an error may show of a text before any setting is known."""
    from agora.protocol.redacting import Guard  # noqa: PLC0415 - as little as possible before a mistake is told

    return Guard().name(text[:2_000])


def standard_input(name: str) -> str:
    """What comes over standard input, for the argument of that name.

    Raises: InvalidInput.
    """
    if sys.stdin is None:
        raise InvalidInput(name, "standard input is closed", "-", hint="Pipe a text in, or give it in place of -.")
    raw = sys.stdin.buffer.read()
    try:
        return raw.decode("utf-8")
    except UnicodeDecodeError as error:
        raise InvalidInput(name, f"must be UTF-8: byte {error.start} is not", raw[:40]) from None
