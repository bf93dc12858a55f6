"""A client that sends hundreds of slow calls keeps nobody else waiting: each has its own share of the threads."""

from __future__ import annotations

import statistics
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from itertools import count, cycle
from pathlib import Path
from typing import Any

import httpx2
import pytest
from tests.integration.clients import HttpServer, SdkClient, over_stdio
from tests.integration.http.wire import call, call_modern, modern, open_session, post, rpc, until, value

from agora.protocol.peer import CALLS

FLOOD = 300
LOOKS = 7
SLOW_TEXT = " ".join(f"word{number} of a very long report." for number in range(2_500))
"""Takes the encoder a second or more, also where nothing else runs."""

SETTINGS = {"namespace.default": "default", "limits.content_bytes": 1_000_000, "limits.call_seconds": 300}
Look = Callable[[], object]


_numbers = count(1)


def question() -> dict[str, Any]:
    """Arguments of a query that no cache knows."""
    return {"query": f"when does ferry {next(_numbers)} sail?"}


def typical(look: Look) -> float:
    """Seconds of the median of a few calls."""
    took = []
    for _ in range(LOOKS):
        began = time.monotonic()
        look()
        took.append(time.monotonic() - began)
    return statistics.median(took)


def bound(alone: float, rivals: int = CALLS) -> float:
    """Seconds that a call may take beside a flood.

    A flood has `CALLS` calls running, so a call beside it has one part in `CALLS` + 1 of the processors; twice that,
    for what the machine does besides. Without shares it would wait for all the flood: hundreds of seconds.
    """
    return 2 * (rivals + 1) * max(alone, 0.03)


@contextmanager
def flood(server: HttpServer, send: Callable[[httpx2.Client, str], object]) -> Iterator[Callable[[], int]]:
    """Hundreds of calls under way, each a text of its own; yields what counts those that have ended."""
    ended = [0]
    limits = httpx2.Limits(max_connections=FLOOD, max_keepalive_connections=FLOOD)
    headers = {"Authorization": f"Bearer {server.token}"}
    over = threading.Event()

    def one(number: int) -> None:
        with suppress(httpx2.TransportError):
            if not over.is_set():
                send(crowd, f"{number} {SLOW_TEXT}")
                ended[0] += 1

    with httpx2.Client(base_url=server.origin, headers=headers, timeout=600, limits=limits) as crowd:
        pool = ThreadPoolExecutor(FLOOD)
        try:
            for number in range(FLOOD):
                pool.submit(one, number)
            with server.http() as http:
                # All of them, and the one that asks: what it costs this process to send them is no part of it.
                running = "agora_http_requests_in_flight"
                until(lambda: value(http.get("/metrics").text, running) > FLOOD or None, 120)
                # Their bodies are read in turn with what comes next: this is behind most of them.
                call(http, open_session(http), "agora_status")
            yield lambda: ended[0]
        finally:
            over.set()
            # Nothing else ends calls that wait for a server.
            server.process.kill()
            pool.shutdown()


def save_in(session: str) -> Callable[[httpx2.Client, str], object]:
    numbers = iter(range(FLOOD))

    def save(http: httpx2.Client, text: str) -> object:
        body = rpc("tools/call", next(numbers), name="agora_save", arguments={"content": text})
        return post(http, body, {"Mcp-Session-Id": session})

    return save


def save_stateless(http: httpx2.Client, text: str) -> object:
    return post(http, *modern("tools/call", name="agora_save", arguments={"content": text}))


@pytest.mark.slow
@pytest.mark.parametrize("era", ["session", "stateless"])
def test_other_clients_are_answered_while_one_floods_the_server(
    start: Callable[..., HttpServer], tmp_path: Path, era: str, record_property: Callable[[str, object], None]
) -> None:
    server = start(settings=SETTINGS)
    with server.http() as http, SdkClient(over_stdio(tmp_path, SETTINGS), name="local") as local:
        session = open_session(http, "other")
        looks: dict[str, Look] = {
            "session": lambda: call(http, session, "agora_query", **question()),
            "save": lambda: call(http, session, "agora_save", content=f"The ferry is late: {question()['query']}"),
            # A process of its own on the same data folder.
            "stdio": lambda: local.call("agora_query", **question()),
        }
        if era == "session":
            looks["stateless"] = lambda: call_modern(http, "agora_query", **question())
        call(http, session, "agora_save", content="The ferry sails at dawn.")
        for look in looks.values():
            look()
        alone = {name: typical(look) for name, look in looks.items()}
        with flood(server, save_in(open_session(http, "flood")) if era == "session" else save_stateless) as ended:
            # The first may meet the last bodies of the flood.
            call(http, session, "agora_query", **question())
            beside = {name: typical(look) for name, look in looks.items()}
            assert ended() < FLOOD / 2, "the flood was over too soon to tell anything"
    record_property("alone", alone)
    record_property("beside", beside)
    assert {name: seconds for name, seconds in beside.items() if seconds > bound(alone[name])} == {}


@pytest.mark.slow
def test_clients_are_answered_while_more_flood_the_server_than_it_has_threads_for(
    start: Callable[..., HttpServer], record_property: Callable[[str, object], None]
) -> None:
    server = start(settings=SETTINGS)
    with server.http() as http:
        session = open_session(http, "other")
        call(http, session, "agora_save", content="The ferry sails at dawn.")
        alone = typical(lambda: call(http, session, "agora_query", **question()))
        floods = cycle([save_in(open_session(http, f"flood {number}")) for number in range(10)])

        def send(crowd: httpx2.Client, text: str) -> object:
            return next(floods)(crowd, text)

        with flood(server, send) as ended:
            call(http, session, "agora_query", **question())
            beside = typical(lambda: call(http, session, "agora_query", **question()))
            assert ended() < FLOOD / 2, "the flood was over too soon to tell anything"
    record_property("alone", alone)
    record_property("beside", beside)
    # All the threads that floods may have are taken; who comes new waits for none of their calls to end.
    assert beside < bound(alone, rivals=48)
