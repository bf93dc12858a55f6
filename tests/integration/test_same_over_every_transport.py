"""The model of the package, reached by clients that start or find a server as the official SDK does by itself.

What the protocol asks for, over every transport, is in `tests/protocol/everywhere`.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import cast

import pytest
from tests.integration.clients import Era, HttpServer, SdkClient, over_stdio

SETTINGS = {"namespace.default": "acme/shop"}


@pytest.fixture(scope="module", params=["stdio-auto", "stdio-legacy", "http-auto", "http-legacy"])
def client(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[SdkClient]:
    """An agent that is connected to a server with a data folder of its own."""
    transport, _, era = request.param.partition("-")
    home = tmp_path_factory.mktemp("home")
    if transport == "stdio":
        with SdkClient(over_stdio(home, SETTINGS), era=cast("Era", era)) as connected:
            yield connected
        return
    with HttpServer(home, settings=SETTINGS) as server, SdkClient(server.target(), era=cast("Era", era)) as connected:
        yield connected


def test_the_era_is_the_one_that_was_asked_for(client: SdkClient, request: pytest.FixtureRequest) -> None:
    legacy = "legacy" in request.node.callspec.id
    assert client.client.protocol_version == ("2025-11-25" if legacy else "2026-07-28")


def test_what_was_saved_is_found_by_meaning_with_who_saved_it(client: SdkClient) -> None:
    text = "Customers were charged twice because the card provider's webhook was delivered again."
    saved = client.call("agora_save", content=text, tags=["payments"], agent="ann")
    client.call("agora_save", content="The kitchen has a new kettle.")
    found = client.call("agora_query", query="why do shoppers pay two times for one order?")
    best = found["results"][0]
    assert (best["id"], best["content"], best["tags"]) == (saved["id"], text, ["payments"])
    assert (best["agent"], best["client"], best["session"] != "") == ("ann", "tester", True)
    assert (found["namespace"], found["namespace_rule"]) == ("acme/shop", "setting namespace.default")


def test_the_shared_namespace_is_seen_without_being_named(client: SdkClient) -> None:
    saved = client.call("agora_save", content="Everybody's umbrella stands at the door.", namespace="shared")
    found = client.call("agora_query", query="umbrella at the door")
    assert saved["id"] in [hit["id"] for hit in found["results"]]


@pytest.mark.parametrize("query", ['"foo AND (bar*', "NEAR(a, b)", "a OR", "col:x", "'; DROP TABLE items; --"])
def test_search_syntax_in_a_query_is_text(client: SdkClient, query: str) -> None:
    assert client.call("agora_query", query=query, mode="lexical")["results"] is not None
