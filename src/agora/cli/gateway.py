"""`agora route` and `agora broadcast`, and how the commands about backends reach whoever has their sessions."""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any

import typer

from agora.cli import output
from agora.cli.session import Config, Home, Json, call_here, errors_as_status, settings
from agora.errors import InvalidInput

Arguments = Annotated[
    str | None,
    typer.Option("--args", metavar="JSON", help="The tool's arguments, a JSON object; - reads it from stdin."),
]

_AS_IN = """As in --args '{"path": "README.md"}'."""


def route(
    target: Annotated[str, typer.Argument(help="A backend, a tool, or what you want done.")],
    tool: Annotated[str | None, typer.Option(help="Which tool of the backend.")] = None,
    args: Arguments = None,
    intent: Annotated[str | None, typer.Option(help="What you want done, where TARGET does not say it.")] = None,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Choose and check, and call nothing.")] = False,
    json_wanted: Json = False,
    home: Home = None,
    config: Config = None,
) -> None:
    """Call a tool of another MCP server."""
    given = {"target": target, "tool": tool, "intent": intent, "dry_run": dry_run or None}
    with errors_as_status(json_wanted=json_wanted):
        found = asked("agora_route", given | {"arguments": _object(args)}, home, config)
    if json_wanted:
        output.as_json(found)
    else:
        _show_routed(found)
    if found.get("is_error"):
        raise typer.Exit(1)


def broadcast(
    tool: Annotated[str, typer.Argument(help="The name of the tool.")],
    args: Arguments = None,
    backend: Annotated[
        list[str] | None,
        typer.Option("--backend", metavar="NAME", help="Only this backend; may be given several times."),
    ] = None,
    json_wanted: Json = False,
    home: Home = None,
    config: Config = None,
) -> None:
    """Call one tool of every backend with it."""
    with errors_as_status(json_wanted=json_wanted):
        given = {"tool": tool, "arguments": _object(args), "backends": backend or None}
        found = asked("agora_broadcast", given, home, config)
    if json_wanted:
        output.as_json(found)
        return
    for row in found["results"]:
        print(f"{output.printable(row['backend'])} ({row['seconds']:.3f} s)")
        _show_result(row) if "error" not in row else output.line(f"  {row['error']['message']}")
    for row in found.get("not_asked", ()):
        output.line(f"{row['backend']} was not asked: {row['message']}")


def asked(tool: str, given: Mapping[str, Any], home: Path | None, config: Path | None) -> dict[str, Any]:
    """The result of a tool of the gateway, from the shared server if it runs, else from this process.

    Raises: AgoraError.
    """
    from agora.daemon.calling import call_shared  # noqa: PLC0415 - `agora --help` must not pay for it

    loaded = settings(home, config)
    arguments = {name: value for name, value in given.items() if value is not None}
    if loaded.settings.server.shared:
        options = {"home": str(home) if home else None, "config": str(config) if config else None}
        plain = {name: str(Path(value).absolute()) for name, value in options.items() if value is not None}
        found = call_shared(loaded.settings.home, plain, tool, arguments, loaded.settings.limits.call_seconds + 10.0)
        if found is not None:
            return dict(found)
    from agora.protocol.tools.gateway import MEDIA  # noqa: PLC0415 - as above

    done = call_here(loaded, tool, arguments)
    return {name: value for name, value in done.items() if name != MEDIA}


def _object(text: str | None) -> dict[str, Any] | None:
    if text is None:
        return None
    try:
        found = json.loads(sys.stdin.read() if text == "-" else text)
    except ValueError as error:
        raise InvalidInput(
            "--args", f"is no JSON: {error}", text, hint="""As in --args '{"path": "README.md"}'."""
        ) from None
    if not isinstance(found, dict):
        raise InvalidInput("--args", "has to be a JSON object", text, hint=_AS_IN)
    return found


def _show_routed(found: Mapping[str, Any]) -> None:
    if found["routed"]:
        cached = f", from the cache ({found.get('age_seconds', 0):g} s old)" if found.get("cached") else ""
        told = f"{found['backend']}: {found['tool']}, found by {found['matched_by']}, {found['seconds']:.3f} s{cached}"
        print(output.printable(told), file=sys.stderr)
        _show_result(found, indent="")
    else:
        print("nothing was called", file=sys.stderr)
        for row in found.get("candidates", ()):
            score = f"{row['score']:.2f}  " if "score" in row else ""
            output.line(f"{score}{row['backend']}  {row['tool']}  ({row['access']})  {row['description']}")
    for row in found.get("not_searched", ()):
        print(output.printable(f"{row['backend']} was not searched: {row['message']}"), file=sys.stderr)
    for words in found.get("degraded", ()):
        print(output.printable(words), file=sys.stderr)


def _show_result(row: Mapping[str, Any], indent: str = "  ") -> None:
    texts = [_text(block) for block in row.get("content", ())]
    if "structured" in row:
        texts.append(json.dumps(row["structured"], ensure_ascii=False, indent=1))
    for text in texts:
        for line in str(text).splitlines() or [""]:
            output.line(f"{indent}{line}")
    if cut := row.get("cut"):
        rest = f"`agora get {cut['next']}` reads on" if "next" in cut else "the rest was not kept"
        print(f"{indent}… {cut['shown_bytes']} of {cut['bytes']} bytes; {rest}", file=sys.stderr)


def _text(block: Mapping[str, Any]) -> str:
    text = block.get("text")
    return text if block.get("type") == "text" and isinstance(text, str) else json.dumps(block)
