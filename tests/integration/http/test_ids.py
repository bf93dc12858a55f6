"""Ids of requests in a session: what Agora refuses over standard input and output it refuses over HTTP."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterator
from concurrent.futures import FIRST_COMPLETED, ThreadPoolExecutor, wait
from contextlib import ExitStack, closing, contextmanager
from typing import Any

import httpx2
import pytest
from tests.integration.clients import PATIENCE, HttpServer
from tests.integration.http.wire import ACCEPT, message, modern, open_session, post, rpc, until, value


@contextmanager
def nobody_may_write(server: HttpServer) -> Iterator[None]:
    """For the length of the block, a save waits for its turn: up to 10 s."""
    with closing(sqlite3.connect(server.home / "agora.db", isolation_level=None, timeout=PATIENCE)) as store:
        store.execute("BEGIN IMMEDIATE")
        try:
            yield
        finally:
            store.execute("ROLLBACK")


@contextmanager
def crew() -> Iterator[ThreadPoolExecutor]:
    """Threads that nobody waits for: one whose request is never answered ends with the server."""
    pool = ThreadPoolExecutor()
    try:
        yield pool
    finally:
        pool.shutdown(wait=False)


def save(request_id: object, content: str) -> dict[str, Any]:
    return rpc("tools/call", request_id, name="agora_save", arguments={"content": content})


@pytest.fixture
def session(http: httpx2.Client) -> dict[str, str]:
    """The headers of a session whose server has its model and its store."""
    headers = {"Mcp-Session-Id": open_session(http)}
    assert post(http, save("first", "The model is loaded by now."), headers).status_code == 200
    return headers


@pytest.mark.parametrize(("one", "other"), [(7, 7), ("x", "x"), (7, "7")])
def test_of_two_requests_in_flight_with_one_id_one_is_answered_and_one_is_refused(
    server: HttpServer, http: httpx2.Client, session: dict[str, str], one: object, other: object
) -> None:
    with crew() as pool:
        with nobody_may_write(server):
            sent = {
                pool.submit(post, http, save(request_id, f"Sent with {request_id!r}, as number {number}."), session)
                for number, request_id in enumerate((one, other))
            }
            done, waiting = wait(sent, PATIENCE, FIRST_COMPLETED)
            assert (len(done), len(waiting)) == (1, 1), "one is refused while the other still waits"
            assert {each.result().status_code for each in done} == {400}
        [refused], [served] = ([each.result(PATIENCE) for each in some] for some in (done, waiting))
    assert refused.status_code == 400
    found = message(refused)
    assert found["error"]["code"] == -32600
    assert found["error"]["message"] == "Invalid request: this id is already in flight"
    assert served.status_code == 200
    assert message(served)["result"]["structuredContent"]["id"].startswith("n_")
    assert {found["id"], message(served)["id"]} == {one, other}
    # Both are over: the id may be used again.
    assert post(http, save(one, "Sent later."), session).status_code == 200


def test_the_same_id_elsewhere_is_another_request(
    server: HttpServer, http: httpx2.Client, session: dict[str, str]
) -> None:
    second = {"Mcp-Session-Id": open_session(http)}
    with crew() as pool:
        with nobody_may_write(server):
            waiting = pool.submit(post, http, save(7, "Waits for its turn."), session)
            # The one beside it asks for this page.
            until(lambda: value(http.get("/metrics").text, "agora_http_requests_in_flight") > 1 or None)
            assert post(http, rpc("ping", 7), second).status_code == 200
            assert post(http, *modern("tools/list", 7)).status_code == 200
            assert post(http, rpc("ping", 8), session).status_code == 200
            assert not waiting.done()
        assert waiting.result(PATIENCE).status_code == 200


def test_who_hangs_up_and_asks_anew_with_the_id_is_told_that_the_work_goes_on(
    server: HttpServer, http: httpx2.Client, session: dict[str, str]
) -> None:
    with nobody_may_write(server):
        with server.http() as hasty:
            hasty.timeout = httpx2.Timeout(0.5)
            with pytest.raises(httpx2.ReadTimeout):
                post(hasty, save(7, "Its client has gone."), session)
        # Whatever the server would send for the first now would reach the second.
        answer = post(http, rpc("ping", 7), session)
        assert (answer.status_code, message(answer)["error"]["code"]) == (400, -32600)

    def served() -> httpx2.Response | None:
        again = post(http, rpc("ping", 7), session)
        return again if again.status_code == 200 else None

    assert message(until(served)) == {"jsonrpc": "2.0", "id": 7, "result": {}}


def test_an_id_is_free_as_soon_as_its_answer_can_be_read(server: HttpServer, session: dict[str, str]) -> None:
    with server.http() as one, server.http() as other, ExitStack() as open_streams:
        for http in (one, other) * 100:
            # The stream of the one before has not been read to its end.
            answer = open_streams.enter_context(
                http.stream("POST", "/mcp", json=rpc("ping", 7), headers=ACCEPT | session)
            )
            assert answer.status_code == 200, answer.read()
            data = next(line for line in answer.iter_lines() if line.startswith("data: {"))
            assert json.loads(data.removeprefix("data: ")) == {"jsonrpc": "2.0", "id": 7, "result": {}}
