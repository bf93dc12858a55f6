from __future__ import annotations

import os
import sys
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Self

import typer

from agora.cli import output
from agora.cli.session import Json, errors_as_status
from agora.errors import AgoraError

if TYPE_CHECKING:
    from mcp import Client

_NOTES = (
    (
        "Checkout fails now and then",
        (
            "Bug fixed: customers were charged twice because the card provider's webhook was delivered again after our"
            " handler timed out. The handler now stores the event id first and skips ids it has seen."
        ),
        ["payments", "bug"],
    ),
    (
        "Where sessions live",
        (
            "Decision: login sessions are kept in Redis with a sliding expiry of 30 days, not in signed cookies, since"
            " support must be able to end them at once."
        ),
        ["auth", "decision"],
    ),
    (
        "Slow tests",
        (
            "The integration suite went from 14 to 4 minutes by starting one Postgres container per worker and"
            " truncating tables between cases instead of migrating anew."
        ),
        ["tests"],
    ),
)
_QUESTION = "why do shoppers pay two times for one order?"


def demo(
    home: Annotated[
        Path | None, typer.Option(help="Data folder to use and keep. Default: a temporary one, deleted at the end.")
    ] = None,
    question: Annotated[str, typer.Option(help="What the second agent asks.")] = _QUESTION,
    json_wanted: Json = False,
) -> None:
    """One agent saves what it learned; another one finds it."""
    with errors_as_status(json_wanted=json_wanted):
        if home is not None:
            steps = _played(home, question)
        else:
            with tempfile.TemporaryDirectory(prefix="agora-demo-", ignore_cleanup_errors=True) as folder:
                steps = _played(Path(folder), question)
        if json_wanted:
            output.as_json(steps)
        else:
            _tell(steps)
    if not steps["b"]["second"]["results"]:
        raise typer.Exit(1)


def _played(home: Path, question: str) -> dict[str, Any]:
    import anyio  # noqa: PLC0415 - `agora --help` must not pay for it
    from mcp import MCPError  # noqa: PLC0415 - as above

    from agora.daemon import control  # noqa: PLC0415 - as above

    try:
        return anyio.run(_play, home, question)
    except (AgoraError, MCPError, ExceptionGroup) as error:
        # The client's task groups wrap what happens inside them.
        cause: BaseException = error
        while isinstance(cause, BaseExceptionGroup):
            cause = cause.exceptions[0]
        if isinstance(cause, AgoraError):
            raise cause from None
        if isinstance(cause, MCPError):
            raise AgoraError(
                f"a server process of the demo failed: {cause}", hint="Its own words are above; see `agora doctor`."
            ) from None
        raise
    finally:
        control.stop(home)


async def _play(home: Path, question: str) -> dict[str, Any]:
    """Two sessions on one data folder, one after the other, each with its own client; the first starts the server."""
    steps: dict[str, Any] = {"home": str(home), "question": question}
    async with _Agent("agent-a", home) as first:
        steps["a"] = {"pid": await first.pid(), "start_ms": first.start_ms, "saved": []}
        for title, content, tags in _NOTES:
            result, took = await first.call("agora_save", title=title, content=content, tags=tags)
            steps["a"]["saved"].append({"id": result["id"], "content": content, "ms": took})
    async with _Agent("agent-b", home) as second:
        steps["b"] = {"pid": await second.pid(), "start_ms": second.start_ms}
        for name in ("first", "second"):
            result, took = await second.call("agora_query", query=question, top_k=1)
            steps["b"][name] = {"results": result["results"], "ms": took}
    return steps


class _Agent:
    """A client with a session of its own, as an agent has."""

    def __init__(self, name: str, home: Path) -> None:
        self._name = name
        self._home = home
        self.start_ms = 0.0

    async def __aenter__(self) -> Self:
        from mcp import Client, StdioServerParameters  # noqa: PLC0415 - half a second that only the demo pays
        from mcp_types import Implementation  # noqa: PLC0415 - as above

        parameters = StdioServerParameters(
            command=sys.executable,
            args=["-m", "agora", "serve", "--home", str(self._home), "--namespace", "demo"],
            env=_environment(),
        )
        began = time.perf_counter()
        self._client: Client = Client(parameters, client_info=Implementation(name=self._name, version="1"))
        await self._client.__aenter__()
        await self._client.list_tools()
        self.start_ms = round((time.perf_counter() - began) * 1000, 1)
        return self

    async def __aexit__(self, *error: object) -> None:
        await self._client.__aexit__(None, None, None)

    async def pid(self) -> int:
        status, _ = await self.call("agora_status")
        return int(status["pid"])

    async def call(self, tool: str, **arguments: Any) -> tuple[dict[str, Any], float]:  # noqa: ANN401 - JSON
        """The structured result of a tool and the milliseconds it took, round trip."""
        began = time.perf_counter()
        result = await self._client.call_tool(tool, arguments)
        took = round((time.perf_counter() - began) * 1000, 1)
        found = result.structured_content
        if result.is_error or not isinstance(found, dict):
            raise AgoraError(f"{tool} failed: {found}", hint="Run `agora doctor`.")
        return found, took


def _environment() -> dict[str, str]:
    """This process's, without the user's settings: the demo shows the same to everyone."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith("AGORA_")}
    return kept | {"AGORA_LOG_LEVEL": "warning"}


def _tell(steps: dict[str, Any]) -> None:
    a, b = steps["a"], steps["b"]
    print(f"agent A  started server process {a['pid']}, ready in {a['start_ms']:.0f} ms")
    for note in a["saved"]:
        print(f"  saved {note['id']} in {note['ms']:.0f} ms: {note['content'][:70]}…")
    print(f"\nagent B  found server process {b['pid']}, ready in {b['start_ms']:.0f} ms")
    print(f"  asks: {steps['question']}")
    for name, said in (("first", "the first time"), ("second", "when asked again, from the cache")):
        print(f"  answered in {b[name]['ms']:.0f} ms {said}")
    for hit in b["second"]["results"]:
        print(f"\n  {hit['score']:.2f}  {hit.get('title', '')}")
        print(f"        {hit['content']}")
        print(f"        saved by {hit['agent']} on {hit['created_at']}, tags {', '.join(hit['tags'])}")
    if not b["second"]["results"]:
        print("  nothing found")
