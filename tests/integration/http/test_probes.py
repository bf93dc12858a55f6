"""What those are told who run a server, and how much each token may ask."""

from __future__ import annotations

import sqlite3
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing

import httpx2
import psutil
from tests.integration.clients import PATIENCE, HttpServer
from tests.integration.http.wire import call_modern, handshake, modern, open_session, post, value

MEGABYTE = 1024 * 1024


def ready(http: httpx2.Client) -> httpx2.Response:
    """The answer to `/readyz` once the model is loaded."""
    for _ in range(int(PATIENCE / 0.05)):
        answer = http.get("/readyz")
        if answer.json()["problems"] != [{"code": "warming_up"}]:
            return answer
        threading.Event().wait(0.05)
    raise AssertionError(answer.text)


def test_health_and_readiness_need_no_token_and_tell_nothing_but_themselves(server: HttpServer) -> None:
    with httpx2.Client(base_url=server.origin, timeout=PATIENCE) as anybody:
        health = anybody.get("/healthz")
        assert (health.status_code, health.text, health.headers["cache-control"]) == (200, "ok\n", "no-store")
        answer = ready(anybody)
        assert (answer.status_code, answer.json()) == (200, {"ready": True, "problems": []})
        assert anybody.head("/healthz").status_code == 200
        assert anybody.post("/healthz").status_code == 405
        assert anybody.delete("/readyz").status_code == 405
        assert anybody.get("/healthz/more").status_code == 404
        assert anybody.get("/healthz", headers={"Host": "evil.example"}).status_code == 403
        assert anybody.get("/readyz", headers={"Origin": "https://evil.example"}).status_code == 403


def test_a_store_that_cannot_be_read_is_not_ready_and_no_path_is_told(start: Callable[..., HttpServer]) -> None:
    server = start()
    with server.http() as http:
        call_modern(http, "agora_save", content="something, so that there is a store")
        assert ready(http).status_code == 200
        path = server.home / "agora.db"
        with closing(sqlite3.connect(path)) as connection:
            connection.execute("PRAGMA user_version = 9999")
            connection.commit()
        answer = http.get("/readyz")
        assert answer.status_code == 503
        assert answer.json()["ready"] is False
        assert [problem["code"] for problem in answer.json()["problems"]] == ["store_version"]
        assert str(server.home) not in answer.text
        assert http.get("/healthz").status_code == 200


def test_metrics_are_behind_the_token_and_count_by_names_of_ours_alone(start: Callable[..., HttpServer]) -> None:
    server = start()
    with httpx2.Client(base_url=server.origin, timeout=PATIENCE) as anybody:
        assert anybody.get("/metrics").status_code == 401
    with server.http() as http:
        open_session(http)
        call_modern(http, "agora_save", content="the secret of the metrics", namespace="acme/secret", agent="secret")
        call_modern(http, "agora_save", content="the secret of the metrics", namespace="acme/secret", agent="secret")
        call_modern(http, "agora_query", query="")
        post(http, *modern("tools/call", name="made_up_name", arguments={}))
        http.request("BREW", "/mcp")
        answer = http.get("/metrics")
        assert answer.headers["content-type"].startswith("text/plain")
        page = answer.text
        assert value(page, 'agora_calls_total{name="agora_save",outcome="ok"}') == 2
        assert value(page, 'agora_calls_total{name="agora_query",outcome="invalid_input"}') == 1
        assert value(page, 'agora_call_seconds_count{name="agora_save"}') == 2
        assert value(page, "agora_http_sessions") == 1
        assert value(page, "agora_http_requests_in_flight") == 1
        assert value(page, 'agora_http_requests_total{method="GET",status="401"}') == 1
        assert value(page, 'agora_http_requests_total{method="POST",status="200"}') >= 4
        assert 'method="other"' in page
        assert "secret" not in page
        assert "made_up_name" not in page
        assert "BREW" not in page


def test_a_token_that_asks_too_much_is_told_when_to_come_again(start: Callable[..., HttpServer]) -> None:
    server = start(settings={"HTTP_RATE": "1"})
    with server.http() as http:
        statuses = [post(http, *modern("tools/list")).status_code for _ in range(14)]
        assert statuses[:10] == [200] * 10
        assert 429 in statuses[10:12]
        answer = post(http, *modern("tools/list"))
        assert answer.status_code == 429
        assert 1 <= int(answer.headers["retry-after"]) <= 2
        data = answer.json()["error"]["data"]
        assert (data["code"], data["retryable"]) == ("too_many_requests", True)
        assert "http.rate" in data["hint"]
        # Whoever watches over the server is answered all the same.
        assert http.get("/healthz").status_code == 200
        assert http.get("/readyz").status_code in {200, 503}
    with httpx2.Client(base_url=server.origin, timeout=PATIENCE) as stranger:
        assert post(stranger, *modern("tools/list")).status_code == 401


def test_two_hundred_sessions_at_once_are_served_and_cost_little(start: Callable[..., HttpServer]) -> None:
    server = start(settings={"HTTP_RATE": "10000"})
    process = psutil.Process(server.process.pid)
    with server.http() as http:
        call_modern(http, "agora_save", content="the model is loaded by now")
        ready(http)
        before = process.memory_info().rss
        sessions = [open_session(http, f"agent {number}") for number in range(200)]
        with ThreadPoolExecutor(16) as threads:
            answers = list(
                threads.map(
                    lambda session: (
                        post(
                            http,
                            {"jsonrpc": "2.0", "id": 7, "method": "tools/list", "params": {}},
                            {"Mcp-Session-Id": session},
                        ).status_code
                    ),
                    sessions,
                )
            )
        assert answers == [200] * 200
        assert value(http.get("/metrics").text, "agora_http_sessions") == 200
        assert process.memory_info().rss - before < 100 * MEGABYTE


def test_a_thousand_handshakes_with_bad_tokens_leave_nothing_behind(start: Callable[..., HttpServer]) -> None:
    server = start()
    process = psutil.Process(server.process.pid)
    with server.http() as http, httpx2.Client(base_url=server.origin, timeout=PATIENCE) as stranger:
        stranger.headers["Authorization"] = "Bearer wrong"
        for _ in range(100):
            assert post(stranger, handshake()).status_code == 401
        before, threads, files = process.memory_info().rss, process.num_threads(), process.num_fds()
        for _ in range(900):
            assert post(stranger, handshake()).status_code == 401
        assert process.memory_info().rss - before < 8 * MEGABYTE
        assert process.num_threads() <= threads + 1
        assert process.num_fds() <= files + 1
        page = http.get("/metrics").text
        assert value(page, "agora_http_sessions") == 0
        assert value(page, 'agora_http_requests_total{method="POST",status="401"}') == 1000
