"""Tools of other servers that clients see as this one's."""

from __future__ import annotations

from typing import Any

import anyio
import pytest
from mcp import Client
from mcp.shared.exceptions import MCPError
from mcp_types import CallToolResult, TextContent
from tests.integration.backends.giving import HIDDEN, PICTURE
from tests.protocol.everywhere.test_other_servers import hearing, names_of
from tests.protocol.heard import Heard
from tests.protocol.links import Link, ok
from tests.protocol.others import GIVING, NAUGHTY, table, there_are
from tests.protocol.spec import spec

from agora.unseen import shown

pytestmark = pytest.mark.anyio


async def tools_until(client: Client, heard: Heard, present: str) -> set[str]:
    """The names of the tools once `present` is one of them; the client is told when it should look."""
    while present not in (names := await names_of(client)):
        await heard.until({"tools"}, 20)
        heard.told.clear()
    return names


def text_of(result: CallToolResult) -> list[str]:
    """The texts of a result between Agora's two blocks, checked for these."""
    first, *blocks, last = result.content
    assert isinstance(first, TextContent)
    assert isinstance(last, TextContent)
    mark = last.text.partition("]")[0].removeprefix("[/")
    assert first.text.startswith(f"[{mark}] ")
    assert f"[/{mark}] was written by others" in first.text
    return [block.text for block in blocks if isinstance(block, TextContent)]


def facts(result: CallToolResult) -> dict[str, Any]:
    found: dict[str, Any] = (result.meta or {})["agora/call"]
    return found


@spec("2025-11-25/server/tools#listing-tools", "2026-07-28/server/tools#listing-tools")
async def test_tools_of_an_exposed_server_are_listed_as_soon_as_they_are_known(crossed: Link) -> None:
    name = f"shown-{crossed.transport}-{crossed.era}"
    async with hearing(crossed) as (client, heard):
        there_are(crossed, table("hidden", GIVING), table(name, GIVING))
        names = await tools_until(client, heard, f"{name}__search_text")
        assert not any(each.startswith("hidden") for each in names)
        listed = {tool.name: tool for tool in (await client.list_tools()).tools}
        search = listed[f"{name}__search_text"]
        assert search.description is not None
        assert search.description.startswith(f"[{name}] Finds{shown(HIDDEN)} it it")
        assert len(search.description) <= 1_000 + len(f"[{name}] ")
        assert search.title == f"Search{shown(HIDDEN)}"
        assert search.input_schema["properties"]["text"]["description"] == f"What{shown(HIDDEN)} to look for"
        assert search.annotations is not None
        assert search.annotations.read_only_hint is True
        # What a server says of itself counts where it is trusted, and this one is not.
        writing = next(tool for each, tool in listed.items() if each.startswith(f"{name}__write_long_"))
        assert writing.annotations is not None
        assert (writing.annotations.read_only_hint, writing.annotations.destructive_hint) == (False, True)
        assert listed[f"{name}__get_number"].input_schema["type"] == "object"
        there_are(crossed)
        while any(each.startswith(name) for each in await names_of(client)):
            await heard.until({"tools"})
            heard.told.clear()


@spec("2025-11-25/server/tools#tool-result", "2026-07-28/server/tools#tool-result")
async def test_a_call_of_an_exposed_tool_gives_the_others_own_result(crossed: Link) -> None:
    name = f"shown-{crossed.transport}-{crossed.era}"
    there_are(crossed, table(name, GIVING))
    async with hearing(crossed) as (client, heard):
        names = await tools_until(client, heard, f"{name}__search_text")
        plain = await client.call_tool(f"{name}__search_text", {"text": "ghp_secret"})
        assert not plain.is_error
        assert text_of(plain) == ['search_text {"text": "ghp_secret"}']
        told = facts(plain)
        assert (told["backend"], told["tool"], told["access"], told["cached"]) == (name, "search_text", "read", None)
        blocks = await client.call_tool(f"{name}__get_blocks", {})
        assert text_of(blocks) == [f"line\r\nnext{shown(HIDDEN)}", '{"type": "made-up", "value": 7}']
        assert [each.type for each in blocks.content[1:-1]] == ["text", "resource_link", "text", "image"]
        assert PICTURE in blocks.model_dump_json()
        structured = await client.call_tool(f"{name}__get_structured", {})
        assert structured.structured_content == {"n": 7}
        assert text_of(structured) == ['{"n":7}'], "many clients show text alone"
        # Names that clients do not accept have become others, and still reach their tools.
        odd = next(each for each in names if each.startswith(f"{name}__odd_name"))
        assert text_of(await client.call_tool(odd, {})) == ["odd name/слово {}"]
        wrong = await client.call_tool(f"{name}__get_number", {"n": "many"})
        assert wrong.is_error
        assert wrong.structured_content is not None
        assert wrong.structured_content["error"]["param"] == "arguments.n"
        with pytest.raises(MCPError, match="Unknown tool"):
            await client.call_tool(f"{name}__nothing", {})


@spec("2025-11-25/server/tools#error-handling", "2026-07-28/server/tools#error-handling")
async def test_what_an_exposed_tool_does_wrong_is_told_in_its_place(crossed: Link) -> None:
    name = f"again-shown-{crossed.transport}-{crossed.era}"
    there_are(crossed, table(name, NAUGHTY, deny=["never"]))
    async with hearing(crossed) as (client, heard):
        names = await tools_until(client, heard, f"{name}__echo")
        assert f"{name}__never" not in names, "what nobody may call is not shown"
        failed = await client.call_tool(f"{name}__fail", {"tool": True})
        assert failed.is_error
        assert text_of(failed) == ["it did not work"]
        dead = await client.call_tool(f"{name}__die", {})
        assert dead.is_error
        assert dead.structured_content is not None
        assert dead.structured_content["error"]["code"] == "outcome_unknown"
        steps: list[tuple[float, float | None, str | None]] = []

        async def progressed(progress: float, total: float | None, message: str | None) -> None:
            steps.append((progress, total, message))

        await client.call_tool(f"{name}__progress", {"text": "x"}, progress_callback=progressed)
        assert steps[-3:] == [(n, 3, f"step {n}") for n in (1, 2, 3)]
        long = await client.call_tool(f"{name}__big", {"size": 120_000})
        assert len(text_of(long)[0]) <= 50_000
        last = long.content[-1]
        assert isinstance(last, TextContent)
        id_ = last.text.partition("agora_get with the id ")[2].split()[0]
        assert facts(long)["cut"]["next"] == id_
        (rest,) = (await ok(client, "agora_get", ids=[id_]))["results"]
        assert rest["text"].startswith("xxx")
        # What changes what it says of itself is there no more, until somebody has approved it.
        heard.told.clear()
        await client.call_tool(f"{name}__change_tools", {})
        names = await tools_until(client, heard, f"{name}__added")
        assert f"{name}__echo" not in names
        with pytest.raises(MCPError, match="Unknown tool"):
            await client.call_tool(f"{name}__echo", {})


@spec(
    "2025-11-25/basic/utilities/cancellation#behavior-requirements",
    "2026-07-28/basic/patterns/cancellation#behavior-requirements",
)
async def test_a_cancelled_call_of_an_exposed_tool_is_cancelled_there(crossed: Link) -> None:
    name = f"again-shown-{crossed.transport}-{crossed.era}"
    there_are(crossed, table(name, NAUGHTY))
    async with hearing(crossed) as (client, heard):
        await tools_until(client, heard, f"{name}__cancelled")
        await client.call_tool(f"{name}__cancelled", {})
        with anyio.move_on_after(1.0):
            await client.call_tool(f"{name}__never", {})
        with anyio.fail_after(10):
            found: dict[str, Any] = {"ids": []}
            while not found["ids"]:
                found = (await client.call_tool(f"{name}__cancelled", {})).structured_content or found


@spec("2025-11-25/server/tools#security-considerations", "2026-07-28/server/tools#security-considerations")
async def test_a_separator_in_a_name_reaches_nobody_elses_tool(crossed: Link) -> None:
    name = f"shown-{crossed.transport}-{crossed.era}"
    there_are(crossed, table(f"{name}_", GIVING))
    async with hearing(crossed) as (client, heard):
        await tools_until(client, heard, f"{name}___t")
    async with crossed.client(fresh=True) as client:
        assert f"{name}___t" in await names_of(client)
        assert facts(await client.call_tool(f"{name}___t", {}))["backend"] == f"{name}_"
        there_are(crossed, table(name, GIVING))
        # Whoever was shown the one does not get the other under its name.
        gone = await client.call_tool(f"{name}___t", {})
        assert gone.structured_content is not None
        assert gone.structured_content["error"]["code"] == "backend_not_found"
    there_are(crossed, table(name, GIVING), table(f"{name}_", GIVING))
    async with hearing(crossed) as (client, heard):
        names = await tools_until(client, heard, f"{name}__search_text")
        assert f"{name}___t" not in names, "it could be either's"
        alike = [each for each in names if each.startswith(f"{name}___t_")]
        found = {
            (told["backend"], told["tool"]) for each in alike for told in [facts(await client.call_tool(each, {}))]
        }
        assert found == {(name, "_t"), (f"{name}_", "t")}
