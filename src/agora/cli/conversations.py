"""`agora session append|context|summarize|list`: the tools of conversations, and what there is."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from agora.cli import output
from agora.cli.facts import remembered_rows
from agora.cli.notes import json_object, standard_input
from agora.cli.session import CLIENT, Config, Home, Json, Namespace, errors_as_status, opened_agora, origin, run_tool
from agora.model.deadline import Deadline

session = typer.Typer(
    name="session",
    help="Conversations: messages, their summary, contexts.",
    no_args_is_help=True,
    add_completion=False,
    rich_markup_mode=None,
)

Name = Annotated[str, typer.Argument(help="Name of the conversation.")]
_STRATEGIES = "buffer, summary, facts, semantic or all"


@session.callback()
def _group() -> None:
    """Conversations: messages, their summary, contexts."""


@session.command()
def append(
    name: Name,
    role: Annotated[str, typer.Argument(help="Whose turn it is: user, assistant, system or tool.")],
    content: Annotated[str, typer.Argument(help="What was said, or - to read it from standard input.")],
    speaker: Annotated[str | None, typer.Option(help="Who said it, if several take part.")] = None,
    occurred_at: Annotated[str | None, typer.Option(help="When: date, time, 7d. Default: now.")] = None,
    metadata: Annotated[str | None, typer.Option(help="A JSON object of your own fields.")] = None,
    strategy: Annotated[str | None, typer.Option(help=f"What its contexts are made of: {_STRATEGIES}.")] = None,
    namespace: Namespace = None,
    agent: Annotated[str | None, typer.Option(help="Who appends. Default: the setting agent, else agora-cli.")] = None,
    json_wanted: Json = False,
    home: Home = None,
    config: Config = None,
) -> None:
    """Append a message, word for word."""
    with errors_as_status(json_wanted=json_wanted):
        text = standard_input("content") if content == "-" else content
        fields = json_object("metadata", metadata)
    given = {
        "session": name,
        "role": role,
        "content": text,
        "speaker": speaker,
        "occurred_at": occurred_at,
        "metadata": fields,
        "strategy": strategy,
        "namespace": namespace,
        "agent": agent,
    }
    run_tool("session_append", given, _show_appended, json_wanted, home, config, warm=True)


@session.command()
def context(
    name: Name,
    query: Annotated[str | None, typer.Option("--query", "-q", help="What the next turn is about.")] = None,
    max_tokens: Annotated[
        int | None, typer.Option("--max-tokens", "-m", help="Hard limit, in tokens of 4 bytes, from 50 up.")
    ] = None,
    subject: Annotated[
        list[str] | None, typer.Option("--subject", help="Give what is known of it too; may be repeated.")
    ] = None,
    strategy: Annotated[str | None, typer.Option(help=f"For this time: {_STRATEGIES}.")] = None,
    parts: Annotated[bool, typer.Option("--parts", help="With --json: texts with ids, not messages.")] = False,
    namespace: Namespace = None,
    json_wanted: Json = False,
    home: Home = None,
    config: Config = None,
) -> None:
    """Show what the next turn needs: summary, facts, older messages that matter, the newest."""
    given = {
        "session": name,
        "query": query,
        "max_tokens": max_tokens,
        "subjects": subject,
        "strategy": strategy,
        "form": "parts" if parts or not json_wanted else None,
        "namespace": namespace,
    }
    run_tool("session_context", given, _show_context, json_wanted, home, config)


@session.command()
def summarize(
    token: Annotated[str, typer.Argument(help="As a result gave it under summary_due.")],
    summary: Annotated[str, typer.Argument(help="The new summary, or - to read it from standard input.")],
    json_wanted: Json = False,
    home: Home = None,
    config: Config = None,
) -> None:
    """Put your summary in the place of the one that rules made."""
    with errors_as_status(json_wanted=json_wanted):
        text = standard_input("summary") if summary == "-" else summary
    run_tool("session_summarize", {"token": token, "summary": text}, _show_summarized, json_wanted, home, config)


@session.command("list")
def list_(
    limit: Annotated[int, typer.Option(min=1, max=1_000, help="Show so many, the newest.")] = 100,
    namespace: Namespace = None,
    json_wanted: Json = False,
    home: Home = None,
    config: Config = None,
) -> None:
    """Show the conversations of this project and of `shared`, those with the newest messages first."""
    with errors_as_status(json_wanted=json_wanted), opened_agora(home, config) as agora:
        from agora.protocol.tools.conversation_shapes import listed  # noqa: PLC0415 - `--help` must not pay for it

        caller = agora.connection(origin=origin(), folder=Path.cwd(), door="command").caller(
            CLIENT, namespace=namespace
        )
        searched = caller.scope.searched() if namespace is None else (caller.scope.own,)
        deadline = Deadline(agora.settings.limits.call_seconds)
        rows = listed(agora.conversations.sessions(searched, caller, deadline, limit))
    if json_wanted:
        output.as_json({"sessions": rows})
        return
    for row in rows:
        told = f"{row['messages']} messages, {row['first_at'][:16]} to {row['last_at'][:16]}, {row['strategy']}"
        output.line(f"{output.named(row['session'])}  {told}, {row['namespace']}")
        output.suspected(row)
    if not rows:
        print("no conversations: `agora session append` begins one")


def _show_appended(data: output.Data) -> None:
    output.line(f"appended {data['id']} as #{data['seq']} of {output.named(data['session'])} in {data['namespace']}")
    if "folded" in data:
        print(f"  messages {data['folded']['first']} to {data['folded']['last']} went into the summary")
    remembered_rows(data.get("remembered", ()), "  ")
    _due(data)
    _problems(data)


def _show_context(data: output.Data) -> None:
    if "facts" in data:
        print(f"{_printed(data['facts'])}\n")
    if (summary := data.get("summary")) is not None:
        first, last = summary["range"]
        output.line(f"summary of messages {first} to {last}, by {summary['written_by']}:")
        output.suspected(summary)
        print(f"{output.indented(summary['text'])}\n")
    for name, told in (("relevant", "earlier messages that may matter:"), ("last", "newest messages:")):
        if rows := data.get(name, ()):
            print(told)
            for each in rows:
                _message(each)
    print(
        f"{data['tokens']} tokens, {data['omitted']} of {data['total']} messages left out, strategy {data['strategy']}"
    )
    _due(data)
    _problems(data)


def _show_summarized(data: output.Data) -> None:
    first, last = data["range"]
    who = f"{output.named(data['session'])} in {data['namespace']}"
    output.line(f"version {data['version']} of the summary of {who}, messages {first} to {last}")


def _message(each: output.Data) -> None:
    who = each.get("speaker") or each["role"]
    marks = " {cut}" if each.get("cut") else ""
    origin_ = "" if each["origin"] in {"user", "agent"} else f", {each['origin']}"
    output.line(f"#{each['seq']} {each['at'][:16]} {output.named(who)} ({each['role']}{origin_}){marks}")
    output.suspected(each)
    print(output.indented(each["content"]))


def _due(data: output.Data) -> None:
    if (offer := data.get("summary_due")) is not None:
        first, last = offer["range"]
        print(f"a better summary of messages {first} to {last} is welcome: agora session summarize TOKEN TEXT")
        print(f"  at most {offer['max_words']} words; the token: {offer['token']}")


def _problems(data: output.Data) -> None:
    for each in data.get("problems", ()):
        output.line(f"not done ({each['code']}): {each['message']}")


def _printed(text: str) -> str:
    return "\n".join(map(output.printable, text.splitlines()))
