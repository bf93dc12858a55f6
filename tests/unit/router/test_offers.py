"""Lists of resources and prompts of a backend: read once a session, and again when there is a reason."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from tests.unit.router.scripted import Script

from agora.config.backends import BackendTable
from agora.errors import BackendRefused
from agora.model.backend import ServerInfo
from agora.router.link import Link
from agora.router.offering import LIST_SECONDS, Offers
from agora.testing import SilentLog

pytestmark = pytest.mark.anyio


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


async def begun(*steps: Any) -> tuple[Offers, Link, Script]:
    script = Script(*steps)
    table = BackendTable("b", "http", url="http://b", retry_delay=0.0)
    link = Link(table, script, expand=lambda each: each, log=SilentLog())
    await opened(link, script)
    return Offers(), link, script


def amiss(offers: Offers) -> str | None:
    return offers.trouble


async def opened(link: Link, script: Script) -> None:
    await link.ready()
    script.sessions[-1].server = ServerInfo("b", "1", "2025-11-25", {"resources": {}, "prompts": {}})


def listed(*names: str) -> dict[str, Any]:
    return {"resources": [{"uri": name} for name in names]}


async def test_a_list_is_read_once_a_session_however_many_ask() -> None:
    offers, link, script = await begun(listed("a"), listed("a"))
    found = await asyncio.gather(*(offers.rows(link, "resources") for _ in range(5)))
    assert found == [[{"uri": "a"}]] * 5
    assert script.asked == ["resources/list"]
    script.sessions[-1].alive = False
    await opened(link, script)
    assert await offers.rows(link, "resources") == [{"uri": "a"}]
    assert script.asked == ["resources/list"] * 2
    assert offers.versions == {"resources": 0, "prompts": 0}, "nobody was given another list"


async def test_a_list_that_is_another_is_read_again_and_counted() -> None:
    offers, link, script = await begun(listed("a"), listed("a", "b"), listed("c"))
    await offers.rows(link, "resources")
    offers.forget("resources")
    assert offers.versions["resources"] == 1
    assert len(await offers.rows(link, "resources")) == 2
    before = offers.versions["resources"]
    # A backend that was started anew may have another one without a word.
    script.sessions[-1].alive = False
    await opened(link, script)
    assert await offers.rows(link, "resources") == [{"uri": "c"}]
    assert offers.versions["resources"] == before + 1
    assert offers.versions["prompts"] == 0


async def test_a_list_that_comes_late_is_left_out_named_and_told_once_it_is_there() -> None:
    late = asyncio.Event()
    offers, link, script = await begun(late)
    began = asyncio.get_running_loop().time()
    assert await offers.rows(link, "resources") == ()
    took = asyncio.get_running_loop().time() - began
    assert LIST_SECONDS <= took < LIST_SECONDS + 1
    assert amiss(offers) == "its list of resources has not come within 2 s"
    # Whoever asks next does not wait once more.
    assert await offers.rows(link, "resources") == ()
    assert asyncio.get_running_loop().time() - began < LIST_SECONDS + 1
    late.set()
    for _ in range(20):
        await asyncio.sleep(0)
    assert offers.versions["resources"] == 1
    assert amiss(offers) is None
    assert await offers.rows(link, "resources") == []
    assert script.asked == ["resources/list"]


async def test_a_list_that_is_refused_is_named_and_asked_for_again() -> None:
    offers, link, script = await begun(BackendRefused("b", "not today", -32000), listed("a"))
    assert await offers.rows(link, "resources") == ()
    assert amiss(offers) == "its list of resources could not be read: b: not today"
    assert await offers.rows(link, "resources") == [{"uri": "a"}]
    assert amiss(offers) is None
    assert script.asked == ["resources/list"] * 2
