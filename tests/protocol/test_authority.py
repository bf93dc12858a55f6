"""Origins over the protocol: set by the connection, lowered by an argument, shown in every answer."""

from __future__ import annotations

import pytest
from tests.protocol.bench import Bench

from agora.model.caller import RANKS, Origin

KEYED = {"key": "region"}


async def both(bench: Bench) -> tuple[str, str]:
    """Ids of the user's value of a key, and of an agent's beside it."""
    async with bench.client(connection=bench.connection(origin="user"), name="user") as user:
        stands = await bench.ok(user, "agora_save", content="The region is west", **KEYED)
    async with bench.client(name="coder") as agent:
        beside = await bench.ok(agent, "agora_save", content="The region is east", **KEYED)
    assert (beside["status"], beside["contests"]) == ("contested", stands["id"])
    return stands["id"], beside["id"]


@pytest.mark.anyio
async def test_contested_values_are_both_shown_each_naming_the_other(bench: Bench) -> None:
    stands, beside = await both(bench)
    async with bench.client() as client:
        found = await bench.ok(client, "agora_query", query="which region")
        hits = {hit["id"]: hit for hit in found["results"]}
        assert hits[stands]["contested_by"] == [beside]
        assert hits[beside]["contests"] == stands
        assert (hits[stands]["origin"], hits[beside]["origin"]) == ("user", "agent")
        (note,) = (await bench.ok(client, "agora_get", ids=[stands]))["notes"]
        assert note["contested_by"] == [beside]
        assert [version.get("contests") for version in note["history"]] == [None, stands]
        assert [version["origin"] for version in note["history"]] == ["user", "agent"]


@pytest.mark.anyio
@pytest.mark.parametrize("by", ["query", "stands", "beside"])
async def test_a_cross_reference_gives_a_contested_key_its_verdict(bench: Bench, by: str) -> None:
    stands, beside = await both(bench)
    given = {"query": "which region"} if by == "query" else {"id": stands if by == "stands" else beside}
    async with bench.client(name="reader") as client:
        found = await bench.ok(client, "agora_crossref", **given)
    (verdict,) = [each for each in found["verdicts"] if each["kind"] == "key"]
    assert (verdict["verdict"], verdict["value"], verdict["ids"]) == ("contested", "region", [stands, beside])
    assert [value["value"] for value in verdict["values"]] == ["The region is west", "The region is east"]
    shown = {note["id"]: note for position in found["positions"] for note in position["notes"]}
    assert shown[stands]["contested_by"] == [beside]
    assert shown[beside]["contests"] == stands
    assert {event["id"]: event.get("contests") for event in found["timeline"]} == {stands: None, beside: stands}


@pytest.mark.anyio
@pytest.mark.parametrize("own", RANKS)
async def test_an_argument_lowers_an_origin_and_cannot_lift_it(bench: Bench, own: Origin) -> None:
    async with bench.client(connection=bench.connection(origin=own)) as client:
        for number, wanted in enumerate(RANKS):
            content = f"The text number {number} is what is told here"
            if RANKS.index(wanted) < RANKS.index(own):
                before = bench.contents()
                error = await bench.refused(client, "agora_save", content=content, origin=wanted)
                assert error["code"] == "authority_required"
                assert f"`{own}`" in error["message"]
                assert bench.contents() == before
                continue
            saved = await bench.ok(client, "agora_save", content=content, origin=wanted)
            (note,) = (await bench.ok(client, "agora_get", ids=[saved["id"]]))["notes"]
            assert note["origin"] == wanted


@pytest.mark.anyio
async def test_no_other_argument_lifts_an_origin(bench: Bench) -> None:
    stands, _ = await both(bench)
    async with bench.client(name="coder") as client:
        forged = {"agent": "user", "session": "user", "confidence": 1.0, "metadata": {"origin": "user"}}
        saved = await bench.ok(client, "agora_save", content="The region is south", **KEYED, **forged)
        assert (saved["status"], saved["contests"]) == ("contested", stands)
        (note,) = (await bench.ok(client, "agora_get", ids=[saved["id"]]))["notes"]
        assert note["origin"] == "agent"


@pytest.mark.anyio
async def test_what_is_protected_is_told_by_id(bench: Bench) -> None:
    stands, beside = await both(bench)
    async with bench.client() as agent:
        preview = await bench.ok(agent, "agora_forget", ids=[stands, beside])
        assert (preview["count"], preview["protected"]) == (1, [stands])
        done = await bench.ok(agent, "agora_forget", namespace="acme/shop", dry_run=False)
        assert (done["count"], done["protected"]) == (1, [stands])
    async with bench.client(connection=bench.connection(origin="user")) as user:
        await bench.ok(user, "agora_forget", ids=[stands], dry_run=False)
    async with bench.client() as agent:
        restored = await bench.ok(agent, "agora_restore", ids=[stands, beside])
        assert (restored["restored"], restored["protected"]) == ([beside], [stands])


@pytest.mark.anyio
async def test_tags_of_a_saver_of_lower_origin_are_shown_with_that_saver(bench: Bench) -> None:
    async with bench.client(connection=bench.connection(origin="web"), name="crawler") as web:
        saved = await bench.ok(web, "agora_save", content="The port is 80", tags=["net"], metadata={"from": "a page"})
    async with bench.client(name="coder") as agent:
        await bench.ok(agent, "agora_save", content="The port is 80", tags=["seen"])
        (note,) = (await bench.ok(agent, "agora_get", ids=[saved["id"]]))["notes"]
    assert (note["agent"], note["origin"], note["tags"], note.get("metadata")) == ("coder", "agent", ["seen"], None)
    (other,) = note["also_saved_by"]
    assert (other["agent"], other["origin"], other["tags"]) == ("crawler", "web", ["net"])


@pytest.mark.anyio
async def test_only_a_connection_of_the_user_pins_and_the_tool_is_not_listed(bench: Bench) -> None:
    async with bench.client(connection=bench.connection(origin="user")) as user:
        saved = (await bench.ok(user, "agora_save", content="Deploy on Mondays", expires_in="1h"))["id"]
        assert "agora_pin" not in [tool.name for tool in (await user.list_tools()).tools]
        assert (await bench.ok(user, "agora_pin", ids=[saved]))["changed"] == [saved]
    async with bench.client() as agent:
        for pinned in (True, False):
            error = await bench.refused(agent, "agora_pin", ids=[saved], pinned=pinned)
            assert error["code"] == "authority_required"
            assert "agora pin" in error["hint"]
        (note,) = (await bench.ok(agent, "agora_get", ids=[saved]))["notes"]
        assert "pinned_at" in note
        assert "expires_at" not in note
    async with bench.client(connection=bench.connection(origin="user")) as user:
        assert (await bench.ok(user, "agora_pin", ids=[saved], pinned=False))["changed"] == [saved]
