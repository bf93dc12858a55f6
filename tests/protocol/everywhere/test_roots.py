"""Which project a client works in, where it tells its roots."""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import Any

import anyio
import pytest
from mcp import MCPDeprecationWarning
from mcp.client.context import ClientRequestContext
from mcp_types import ListRootsResult, Root
from pydantic import FileUrl
from tests.protocol.links import LINKS, Link, Site, ok
from tests.protocol.spec import spec

from agora.config.project import project_namespace

pytestmark = pytest.mark.anyio


class Rooted:
    """A client's folders: the first at the first question, and so on; and how often it was asked."""

    def __init__(self, *folders: Path) -> None:
        self.folders = folders
        self.asked = 0

    async def __call__(self, _: ClientRequestContext) -> ListRootsResult:
        self.asked += 1
        folder = self.folders[min(self.asked, len(self.folders)) - 1]
        return ListRootsResult(roots=[Root(uri=FileUrl(folder.as_uri()))])


@spec("2025-11-25/client/roots#listing-roots", "2025-11-25/client/roots#root-list-changes")
@pytest.mark.parametrize("name", [name for name in LINKS if name.endswith("-legacy")])
async def test_roots_are_asked_for_once_and_again_when_they_change(name: str, wandering: Site, tmp_path: Path) -> None:
    folders = [tmp_path / "one", tmp_path / "two"]
    for folder in folders:
        folder.mkdir()
    rooted = Rooted(*folders)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", MCPDeprecationWarning)
        async with Link(name, wandering).client(fresh=True, list_roots_callback=rooted) as client:
            found: dict[str, Any] = {}
            names = [(await ok(client, "agora_query", query="x"))["namespace"] for _ in range(2)]
            assert names == [project_namespace(folders[0])[0]] * 2
            assert rooted.asked == 1
            await client.send_roots_list_changed()
            with anyio.fail_after(10):
                # A notification may be behind the next request.
                while rooted.asked < 2:
                    found = await ok(client, "agora_query", query="x")
            assert found["namespace"] == project_namespace(folders[1])[0]
    assert rooted.asked == 2


@spec("2026-07-28/client/roots#capabilities")
@pytest.mark.parametrize("name", [name for name in LINKS if name.endswith("-modern")])
async def test_the_stateless_era_is_not_asked_for_roots(name: str, wandering: Site, tmp_path: Path) -> None:
    rooted = Rooted(tmp_path)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", MCPDeprecationWarning)
        async with Link(name, wandering).client(list_roots_callback=rooted) as client:
            assert (await ok(client, "agora_query", query="x"))["namespace"] != project_namespace(tmp_path)[0]
    assert rooted.asked == 0
