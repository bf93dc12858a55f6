"""What every result carries beside its contents, and for how long it holds."""

from __future__ import annotations

from typing import Any

import pytest
from tests.protocol.links import Link
from tests.protocol.spec import spec

pytestmark = pytest.mark.anyio

LISTS = ["tools/list", "prompts/list", "resources/list", "resources/templates/list"]
ASKED: list[tuple[str, dict[str, Any]]] = [
    *((method, {}) for method in LISTS),
    ("resources/read", {"uri": "agora://status"}),
    ("prompts/get", {"name": "session_handoff", "arguments": {}}),
    ("tools/call", {"name": "agora_status", "arguments": {}}),
    ("tools/call", {"name": "agora_save", "arguments": {}}),
    (
        "completion/complete",
        {"ref": {"type": "ref/prompt", "name": "code_review"}, "argument": {"name": "language", "value": ""}},
    ),
]


@spec("2026-07-28/basic#resulttype", "2026-07-28/basic#meta")
async def test_every_result_is_complete_and_names_the_server(modern: Link) -> None:
    async with modern.raw() as raw:
        for method, params in (("server/discover", {}), *ASKED):
            result = await raw.result(method, **params)
            assert result["resultType"] == "complete", method
            assert result["_meta"]["io.modelcontextprotocol/serverInfo"]["name"] == "agora", method


@spec("2026-07-28/server/utilities/caching#cacheable-results", "2026-07-28/server/utilities/caching#cache-scope-field")
async def test_lists_and_reads_say_how_long_they_hold_and_for_whom(modern: Link) -> None:
    terms = {
        "tools/list": (60_000, "private"),
        "resources/templates/list": (3_600_000, "public"),
        "resources/list": (0, "private"),
        "prompts/list": (0, "private"),
        "resources/read": (0, "private"),
    }
    async with modern.raw() as raw:
        for method, params in ASKED:
            if method in terms:
                result = await raw.result(method, **params)
                assert (result["ttlMs"], result["cacheScope"]) == terms[method], method


@spec("2025-11-25/basic#result-responses")
async def test_nothing_of_a_later_revision_is_in_the_results_of_an_earlier_one(legacy: Link) -> None:
    async with legacy.raw() as raw:
        for method, params in ASKED:
            result = await raw.result(method, **params)
            assert not {"resultType", "ttlMs", "cacheScope"} & set(result), method
