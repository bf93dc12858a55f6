"""Two hundred sessions at once that change things, and what is left of them afterwards."""

from __future__ import annotations

import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress

import httpx2
import psutil
import pytest
from tests.integration.clients import PATIENCE, HttpServer
from tests.integration.http.wire import call, call_modern, handshake, open_session, post, rpc, until, value

MANY = 200
MEGABYTE = 1024 * 1024
IDLE_SECONDS = 15
"""Longer than any of them may be without a request while all of them open, on a busy machine too."""
Record = Callable[[str, object], None]


def works(server: HttpServer, number: int, together: threading.Barrier) -> str:
    """One agent: it listens as real clients do, saves, finds, forgets and looks; its session is still open then."""
    space = f"acme/drawer-{number % 20}"
    with server.http() as http, server.http() as listening:
        # A busy machine may take long for all of them.
        http.timeout = listening.timeout = httpx2.Timeout(PATIENCE * 4)
        session = open_session(http, f"agent-{number}")
        headers = {"Mcp-Session-Id": session, "Accept": "text/event-stream"}
        with listening.stream("GET", "/mcp", headers=headers) as stream:
            assert stream.status_code == 200
            # All sessions are open before the first of them does anything, and until the last has done all.
            together.wait(PATIENCE * 4)
            text = f"Agent {number} keeps its {number} spoons in drawer {number}."
            saved = call(http, session, "agora_save", content=text, namespace=space)
            found = call(http, session, "agora_query", query=f"spoons of agent {number}", namespace=space)
            assert saved["id"] in [hit["id"] for hit in found["results"]]
            [note] = call(http, session, "agora_get", ids=[saved["id"]])["notes"]
            assert (note["content"], note["agent"]) == (text, f"agent-{number}")
            gone = call(http, session, "agora_forget", ids=[saved["id"]], namespace=space, dry_run=False)
            assert gone["count"] == 1
            assert call(http, session, "agora_get", ids=[saved["id"]])["forgotten"] == [saved["id"]]
            together.wait(PATIENCE * 4)
    return session


def works_or_tells(server: HttpServer, number: int, together: threading.Barrier) -> str:
    """As `works`; one that fails does not keep the others waiting."""
    try:
        return works(server, number, together)
    except BaseException:
        together.abort()
        raise


def count(http: httpx2.Client, name: str = "agora_http_sessions") -> float:
    return value(http.get("/metrics").text, name)


@pytest.mark.slow
def test_two_hundred_sessions_that_save_query_and_forget_cost_little_and_end_by_themselves(
    start: Callable[..., HttpServer], record_property: Record
) -> None:
    server = start(settings={"http.idle_seconds": IDLE_SECONDS, "http.sessions": MANY, "limits.call_seconds": 300})
    process = psutil.Process(server.process.pid)
    together = threading.Barrier(MANY + 1)
    with server.http() as http:
        call_modern(http, "agora_save", content="The model is loaded by now.")
        call_modern(http, "agora_query", query="is the model loaded?")
        before = process.memory_info().rss
        with ThreadPoolExecutor(MANY) as pool:
            agents = [pool.submit(works_or_tells, server, number, together) for number in range(MANY)]
            with suppress(threading.BrokenBarrierError):
                together.wait(PATIENCE * 4)
                assert count(http) == MANY
                assert post(http, handshake()).status_code == 503, "so many are open at the same time, and no more"
                together.wait(PATIENCE * 4)
            grown = process.memory_info().rss - before
            failures = {repr(each.exception(PATIENCE)) for each in agents} - {"None", "BrokenBarrierError()"}
            assert failures == set()
            sessions = {each.result() for each in agents}
        record_property("grown by megabytes", round(grown / MEGABYTE, 1))
        assert len(sessions) == MANY
        assert grown < 100 * MEGABYTE
        assert "Traceback" not in server.log
        # Nobody ended them. A quiet server forgets them all the same.
        until(lambda: count(http) == 0 or None, IDLE_SECONDS + PATIENCE)
        assert {post(http, rpc("ping"), {"Mcp-Session-Id": session}).status_code for session in sessions} == {404}
        again = [open_session(http) for _ in range(MANY)]
        assert len({*again, *sessions}) == 2 * MANY
        status = call_modern(http, "agora_status")
        assert (status["health"], status["notes"]["live"]) == ("ok", 1)
        assert process.memory_info().rss - before < 100 * MEGABYTE
