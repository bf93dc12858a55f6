"""Sessions over HTTP: what each client sees, how many there are and when they end."""

from __future__ import annotations

import json
import sqlite3
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, closing
from pathlib import Path
from typing import Any, NamedTuple

import anyio
import httpx2
import pytest
from mcp import ClientSession
from mcp.client.context import ClientRequestContext
from mcp.client.sse import sse_client
from mcp_types import ListRootsResult, Root
from pydantic import FileUrl
from tests.integration.clients import PATIENCE, Era, HttpServer, SdkClient
from tests.integration.http.wire import (
    ACCEPT,
    call,
    call_modern,
    handshake,
    message,
    modern,
    open_session,
    post,
    rpc,
    until,
)

MANY = 50
OTHER_SECRET = "other-" + "0123456789abcdef" * 3


@pytest.fixture(params=["auto", "legacy"])
def era(request: pytest.FixtureRequest) -> Era:
    """Both protocol eras."""
    found: Era = request.param
    return found


def test_two_clients_at_once_find_what_the_other_saved_and_keep_their_names(server: HttpServer, era: Era) -> None:
    with SdkClient(server.target(), era=era, name="ann") as ann, SdkClient(server.target(), era=era, name="bob") as bob:
        saved = ann.call("agora_save", content=f"The {era} kettle is descaled on Mondays.")
        [note] = bob.call("agora_get", ids=[saved["id"]])["notes"]
        assert (note["agent"], note["client"]) == ("ann", "ann")
        back = bob.call("agora_save", content=f"The {era} teapot is washed on Fridays.")
        assert ann.call("agora_get", ids=[back["id"]])["notes"][0]["agent"] == "bob"


def test_without_a_project_calls_go_to_default_and_never_to_the_server_s_folder(server: HttpServer, era: Era) -> None:
    with SdkClient(server.target(), era=era) as client:
        found = client.call("agora_query", query="anything", mode="lexical")
    assert (found["namespace"], found["namespace_rule"]) == ("default", "no project folder is known")


def test_a_declared_root_names_the_project_of_its_session_alone(server: HttpServer, tmp_path: Path) -> None:
    project = tmp_path / "My Shop"
    project.mkdir()

    async def roots(_ctx: ClientRequestContext) -> ListRootsResult:
        return ListRootsResult(roots=[Root(uri=FileUrl(project.as_uri()))])

    with (
        SdkClient(server.target(), era="legacy", list_roots_callback=roots) as rooted,
        SdkClient(server.target(), era="legacy") as plain,
    ):
        found = rooted.call("agora_query", query="anything", mode="lexical")
        assert found["namespace"].startswith("my-shop")
        assert found["namespace_rule"].startswith("client root")
        assert plain.call("agora_query", query="anything", mode="lexical")["namespace"] == "default"


def test_where_other_machines_connect_a_root_is_looked_up_nowhere(
    start: Callable[..., HttpServer], tmp_path: Path
) -> None:
    project = tmp_path / "My Shop"
    (project / ".git" / "objects").mkdir(parents=True)
    (project / ".git" / "refs").mkdir()
    (project / ".git" / "HEAD").write_text("ref: refs/heads/main\n", encoding="utf-8")
    (project / ".git" / "config").write_text('[remote "origin"]\n\turl = git@x.org:secret/name.git\n', encoding="utf-8")

    def told(server: HttpServer, folder: Path) -> tuple[str, str]:
        with server.http() as http:
            found = _with_root(http, folder)
        return found["namespace"], found["namespace_rule"]

    near = start(home=tmp_path / "near")
    assert told(near, project) == ("secret/name", "client root, git remote origin")
    far = start(home=tmp_path / "far", address="0.0.0.0:0", settings={"http.hosts": "127.0.0.1"})
    far.url = far.url.replace("0.0.0.0", "127.0.0.1")  # noqa: S104 - not bound here
    for folder in (project, tmp_path / "not there"):
        namespace, rule = told(far, folder)
        assert namespace.startswith(folder.name.lower().replace(" ", "-") + "-")
        assert rule == "client root, its path"


def test_roots_are_asked_for_on_the_stream_of_the_call_that_needs_them(http: httpx2.Client, tmp_path: Path) -> None:
    assert _with_root(http, tmp_path / "Boat House")["namespace"].startswith("boat-house")


def _with_root(http: httpx2.Client, folder: Path) -> dict[str, Any]:
    """What a query answers a client that works in that folder, as it says."""
    opening = handshake()
    opening["params"]["capabilities"] = {"roots": {}}
    # This client opens no stream for messages of the server.
    session = {"Mcp-Session-Id": post(http, opening).headers["mcp-session-id"]}
    post(http, {"jsonrpc": "2.0", "method": "notifications/initialized"}, session)
    asking = rpc("tools/call", 2, name="agora_query", arguments={"query": "anything", "mode": "lexical"})
    found: list[dict[str, Any]] = []
    with http.stream("POST", "/mcp", json=asking, headers=ACCEPT | session) as stream:
        for line in stream.iter_lines():
            if line.startswith("data: {"):
                found.append(json.loads(line.removeprefix("data: ")))
                if found[-1].get("method") == "roots/list":
                    roots = {"roots": [{"uri": folder.as_uri()}]}
                    post(http, {"jsonrpc": "2.0", "id": found[-1]["id"], "result": roots}, session)
    assert len(found) == 2
    answer: dict[str, Any] = found[1]["result"]["structuredContent"]
    return answer


def test_a_namespace_that_one_session_named_stays_hidden_from_another(http: httpx2.Client) -> None:
    ours, theirs = open_session(http, "ann"), open_session(http, "bob")
    saved = call(http, ours, "agora_save", content="The codename is Heron.", namespace="acme/secret")
    assert call(http, ours, "agora_get", ids=[saved["id"]])["notes"]
    assert call(http, theirs, "agora_get", ids=[saved["id"]])["unknown"] == [saved["id"]]
    assert call_modern(http, "agora_get", ids=[saved["id"]])["unknown"] == [saved["id"]]
    assert call(http, theirs, "agora_status")["session"] != call(http, ours, "agora_status")["session"]
    # Once it is named, it is seen.
    call(http, theirs, "agora_query", query="x", mode="lexical", namespace="acme/secret")
    assert call(http, theirs, "agora_get", ids=[saved["id"]])["notes"]


class TwoTokens(NamedTuple):
    first: httpx2.Client
    second: httpx2.Client
    home: Path


@pytest.fixture(scope="module")
def two_tokens(tmp_path_factory: pytest.TempPathFactory) -> Iterator[TwoTokens]:
    """Clients of one server that show different tokens; the second has a namespace of its own."""
    home, secret = tmp_path_factory.mktemp("two"), "first-" + "fedcba9876543210" * 3
    tokens = f"# for tests\n{secret}\n\n{OTHER_SECRET} name=web namespace=Acme/Web origin=web\n"
    (home / "token").write_text(tokens, encoding="utf-8")
    (home / "token").chmod(0o600)
    with ExitStack() as running:
        settings = {"namespace.default": "acme/all", "http.sse": True}
        server = running.enter_context(HttpServer(home, settings=settings))
        first, second = (
            running.enter_context(
                httpx2.Client(base_url=server.origin, headers={"Authorization": f"Bearer {shown}"}, timeout=PATIENCE)
            )
            for shown in (secret, OTHER_SECRET)
        )
        yield TwoTokens(first, second, home)


def test_stateless_requests_share_what_they_named_with_their_own_token_alone(
    two_tokens: TwoTokens,
) -> None:
    first, second, _ = two_tokens
    saved = call_modern(first, "agora_save", content="The codename is Heron.", namespace="acme/secret")
    assert call_modern(first, "agora_get", ids=[saved["id"]])["notes"]
    assert call_modern(second, "agora_get", ids=[saved["id"]])["unknown"] == [saved["id"]]
    assert call_modern(first, "agora_status")["session"] != call_modern(second, "agora_status")["session"]


def test_a_token_may_name_the_namespace_and_the_origin_of_its_calls(
    two_tokens: TwoTokens,
) -> None:
    first, second, _ = two_tokens
    assert call_modern(first, "agora_status")["namespace"] == "acme/all"
    for saved in (
        call_modern(second, "agora_save", content="Told by a page."),
        call(second, open_session(second), "agora_save", content="Told by another page."),
    ):
        assert (saved["namespace"], saved["namespace_rule"]) == ("acme/web", "the token's namespace")
        [note] = call_modern(second, "agora_get", ids=[saved["id"]])["notes"]
        assert note["origin"] == "web"
    with closing(sqlite3.connect(two_tokens.home / "agora.db")) as store:
        assert ("raw", "web") in store.execute("SELECT name, token FROM clients").fetchall()


def test_a_session_cannot_be_used_or_ended_with_another_token(two_tokens: TwoTokens) -> None:
    first, second, _ = two_tokens
    session = {"Mcp-Session-Id": open_session(first)}
    assert post(second, rpc("ping"), session).status_code == 404
    assert second.delete("/mcp", headers=session).status_code == 404
    assert second.get("/mcp", headers=session | {"Accept": "text/event-stream"}).status_code == 404
    assert post(first, rpc("ping"), session).status_code == 200


def test_a_session_over_sse_takes_no_message_that_came_with_another_token(two_tokens: TwoTokens) -> None:
    first, second, _ = two_tokens
    with first.stream("GET", "/sse") as stream:
        lines = stream.iter_lines()
        address = next(line for line in lines if line.startswith("data: ")).removeprefix("data: ")
        assert second.post(address, json=handshake()).status_code == 404
        assert first.post(address, json=handshake("mine")).status_code == 202
        told = json.loads(next(line for line in lines if line.startswith("data: {")).removeprefix("data: "))
        assert told["id"] == handshake()["id"]
        forged = rpc("tools/call", 2, name="agora_status", arguments={})
        assert second.post(address, json=forged).status_code == 404


def test_fifty_sessions_at_once_save_and_find_their_own(server: HttpServer) -> None:
    started = threading.Barrier(MANY)

    def work(number: int) -> tuple[str, str]:
        with server.http() as http:
            session = open_session(http, f"agent-{number}")
            started.wait(PATIENCE)
            text = f"Agent {number} keeps its spoons in drawer {number}."
            saved = call(http, session, "agora_save", content=text, namespace=f"acme/drawer-{number}")
            found = call(http, session, "agora_query", query="spoons in a drawer", namespace=f"acme/drawer-{number}")
            assert [hit["id"] for hit in found["results"]] == [saved["id"]]
            assert found["results"][0]["agent"] == f"agent-{number}"
            return session, saved["id"]

    with ThreadPoolExecutor(MANY) as pool:
        done = list(pool.map(work, range(MANY)))
    assert len({session for session, _ in done}) == len({note for _, note in done}) == MANY


def test_a_session_that_its_client_ends_is_gone(http: httpx2.Client) -> None:
    session = {"Mcp-Session-Id": open_session(http)}
    assert http.delete("/mcp", headers=session).status_code == 200
    assert post(http, rpc("ping"), session).status_code == 404


def test_a_session_id_that_the_server_never_gave_is_unknown(http: httpx2.Client) -> None:
    for made_up in ("0" * 32, "x", "../token", "a" * 4_000):
        assert post(http, rpc("ping"), {"Mcp-Session-Id": made_up}).status_code == 404


def test_a_client_recovers_when_the_server_has_started_anew(start: Callable[..., HttpServer], tmp_path: Path) -> None:
    server = start()
    with server.http() as http:
        session = open_session(http)
        saved = call(http, session, "agora_save", content="Saved before the server was started anew.")
    server.stop()
    again = start(home=tmp_path, address=f"127.0.0.1:{server.port}")
    with again.http() as http:
        # 404 is what tells a client of the handshake era to shake hands again, whatever it asks for.
        known = {"Mcp-Session-Id": session}
        assert post(http, rpc("ping"), known).status_code == 404
        assert post(http, {"jsonrpc": "2.0", "method": "notifications/initialized"}, known).status_code == 404
        assert http.get("/mcp", headers=known | {"Accept": "text/event-stream"}).status_code == 404
        assert call(http, open_session(http), "agora_get", ids=[saved["id"]])["unknown"] == []


def try_to_open(http: httpx2.Client) -> str | None:
    answer = post(http, handshake())
    if answer.status_code == 503:
        assert "Too many open sessions" in message(answer)["error"]["message"]
        return None
    assert answer.status_code == 200
    return answer.headers["mcp-session-id"]


@pytest.fixture(scope="module")
def small(tmp_path_factory: pytest.TempPathFactory) -> Iterator[HttpServer]:
    """A server with room for two sessions, which end after a second."""
    settings = {"http.sessions": 2, "http.idle_seconds": 1}
    with HttpServer(tmp_path_factory.mktemp("small"), settings=settings) as started:
        yield started


def test_the_number_of_sessions_is_bounded_and_idle_ones_make_room(small: HttpServer) -> None:
    with small.http() as http:
        first, second = until(lambda: try_to_open(http)), until(lambda: try_to_open(http))
        assert try_to_open(http) is None
        # What has no session is not affected.
        assert call_modern(http, "agora_status")["health"] == "ok"
        until(lambda: try_to_open(http))
        pings = [post(http, rpc("ping"), {"Mcp-Session-Id": session}).status_code for session in (first, second)]
        assert 404 in pings, "a session that was idle for a second made room"


def test_an_open_stream_keeps_its_session(small: HttpServer) -> None:
    with small.http() as http, small.http() as listening:
        kept = until(lambda: try_to_open(http))
        headers = {"Mcp-Session-Id": kept, "Accept": "text/event-stream"}
        with listening.stream("GET", "/mcp", headers=headers) as stream:
            assert stream.status_code == 200
            idle = until(lambda: try_to_open(http))
            # There is room for a third as soon as one has ended.
            until(lambda: try_to_open(http))
            assert post(http, rpc("ping"), {"Mcp-Session-Id": idle}).status_code == 404
            assert post(http, rpc("ping"), {"Mcp-Session-Id": kept}).status_code == 200


def test_refused_requests_take_no_session(start: Callable[..., HttpServer]) -> None:
    server = start(settings={"http.sessions": 1})
    with httpx2.Client(base_url=server.origin, timeout=PATIENCE) as anonymous, server.http() as http:
        for _ in range(100):
            assert post(anonymous, handshake()).status_code == 401
            assert post(http, handshake(), {"Origin": "http://evil.example"}).status_code == 403
            assert post(http, b"{").status_code == 400
            assert post(http, rpc("tools/list")).status_code == 400
        open_session(http)
        assert try_to_open(http) is None


def test_what_a_stateless_request_says_about_itself_holds_for_it_alone(http: httpx2.Client) -> None:
    for name in ("ann", "bob"):
        body, headers = modern("tools/call", name="agora_save", arguments={"content": f"Signed by {name}."})
        body["params"]["_meta"]["io.modelcontextprotocol/clientInfo"] = {"name": name, "version": "3"}
        saved = message(post(http, body, headers))["result"]["structuredContent"]
        [note] = call_modern(http, "agora_get", ids=[saved["id"]])["notes"]
        assert (note["agent"], note["client"]) == (name, name)


def test_http_with_sse_is_served_where_the_setting_says_so(start: Callable[..., HttpServer]) -> None:
    server = start(settings={"HTTP_SSE": "true"})

    async def talk() -> tuple[str, list[str], str]:
        headers = {"Authorization": f"Bearer {server.token}"}
        async with sse_client(f"{server.origin}/sse", headers=headers) as streams, ClientSession(*streams) as session:
            hello = await session.initialize()
            saved = await session.call_tool("agora_save", {"content": "over the oldest transport"})
            found = await session.call_tool("agora_query", {"query": "oldest transport"})
            assert saved.structured_content is not None
            assert found.structured_content is not None
            ids = [row["id"] for row in found.structured_content["results"]]
            return hello.protocol_version, ids, saved.structured_content["id"]

    version, ids, saved = anyio.run(talk)
    assert version == "2025-11-25"
    assert ids == [saved]
    with server.http() as http:
        assert http.post("/sse").status_code == 405
        assert http.get("/messages").status_code == 405
        assert call_modern(http, "agora_query", query="oldest transport")["results"][0]["id"] == saved
    with httpx2.Client(base_url=server.origin, timeout=PATIENCE) as anybody:
        assert anybody.get("/sse").status_code == 401


def test_http_with_sse_is_off_by_default(http: httpx2.Client) -> None:
    assert http.get("/sse").status_code == 404
    assert http.post("/messages").status_code == 404
