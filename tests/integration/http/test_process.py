"""How an HTTP server starts, and how it ends."""

from __future__ import annotations

import os
import re
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, suppress
from pathlib import Path

import httpx2
import pytest
from tests.integration.clients import PATIENCE, HttpServer, SdkClient, environment, over_stdio, run
from tests.integration.http.wire import call, call_modern, modern, open_session, post

LONG_TEXT = " ".join(f"word{number} of a very long report." for number in range(9_000))
"""Takes the encoder many seconds."""

posix = pytest.mark.skipif(os.name != "posix", reason="Windows has other signals and no file modes")


def test_the_token_is_made_once_for_its_owner_alone(server: HttpServer, tmp_path: Path) -> None:
    secret = server.token
    assert re.fullmatch(r"[A-Za-z0-9_-]{43}", secret), "256 bits"
    if os.name == "posix":
        assert (server.home / "token").stat().st_mode & 0o777 == 0o600
    assert run(server.home, ["token"]) == (0, f"{secret}\n", "")
    assert run(tmp_path / "elsewhere", ["token"])[1].strip() not in {secret, ""}
    assert sorted(path.name for path in server.home.glob("token*")) == ["token"]


def test_the_token_is_printed_on_request_and_made_if_there_is_none(tmp_path: Path) -> None:
    home = tmp_path / "new" / "home"
    status, printed, errors = run(home, ["token"])
    assert (status, errors) == (0, "")
    assert (home / "token").read_text("utf-8") == printed
    assert run(home, ["token"])[1] == printed
    status, printed_too, _ = run(home, ["token", "--json"])
    assert (status, f'"{printed.strip()}"' in printed_too) == (0, True)
    status, _, errors = run(home, ["token", "nobody"])
    assert (status, "'nobody'" in errors, "default" in errors) == (2, True, True)


@posix
def test_a_token_that_others_can_read_is_refused_with_the_remedy(tmp_path: Path) -> None:
    (tmp_path / "token").write_text("x" * 43 + "\n", encoding="utf-8")
    (tmp_path / "token").chmod(0o644)
    status, _, errors = run(tmp_path, ["serve", "--http", "127.0.0.1:0"])
    assert status == 2
    assert f"chmod 600 {tmp_path / 'token'}" in errors
    assert "xxx" not in errors


@pytest.mark.parametrize("address", ["8765", "http://127.0.0.1:8765", "no.such.host.invalid:0"])
def test_an_address_that_cannot_be_listened_at_is_one_clear_line(tmp_path: Path, address: str) -> None:
    status, printed, errors = run(tmp_path, ["serve", "--http", address])
    assert (status, printed) == (1, "")
    line, hint = errors.splitlines()
    assert line.startswith("agora: ")
    assert address in line
    assert hint.startswith("  ")
    assert list(tmp_path.iterdir()) == []


def test_a_port_that_is_taken_is_one_clear_line(server: HttpServer, tmp_path: Path) -> None:
    status, printed, errors = run(tmp_path, ["serve", "--http", f"127.0.0.1:{server.port}"])
    assert (status, printed) == (1, "")
    line, hint = errors.splitlines()
    assert line.startswith(f"agora: cannot listen on 127.0.0.1:{server.port}: ")
    assert "port 0" in hint
    assert server.process.poll() is None


def ipv6_works() -> bool:
    with suppress(OSError), closing(socket.create_server(("::1", 0), family=socket.AF_INET6)):
        return True
    return False


@pytest.mark.skipif(not ipv6_works(), reason="this machine has no IPv6")
def test_an_ipv6_address_is_written_in_brackets(start: Callable[..., HttpServer]) -> None:
    server = start(address="[::1]:0")
    assert server.url == f"http://[::1]:{server.port}/mcp"
    with SdkClient(server.target()) as client:
        assert client.call("agora_status")["health"] == "ok"


def test_a_wildcard_address_needs_the_token_and_the_names_it_is_called_by(start: Callable[..., HttpServer]) -> None:
    server = start(address="0.0.0.0:0", settings={"http.hosts": "agora.lan"})
    with httpx2.Client(base_url=f"http://127.0.0.1:{server.port}", timeout=PATIENCE) as anonymous:
        assert post(anonymous, {}).status_code == 401
        assert post(anonymous, {}, {"Host": "agora.lan"}).status_code == 401
        assert post(anonymous, {}, {"Host": "other.lan"}).status_code == 403


def test_nothing_is_printed_but_on_stderr_where_a_name_is_announced_as_its_address(
    start: Callable[..., HttpServer],
) -> None:
    server = start(address="localhost:0")
    assert re.fullmatch(r"http://(127\.0\.0\.1|\[::1\]):\d+/mcp", server.url)
    with server.http() as http:
        call(http, open_session(http), "agora_save", content="Quiet.")
        call_modern(http, "agora_status")
    server.process.send_signal(signal.SIGTERM)
    printed, _ = server.process.communicate(timeout=PATIENCE)
    assert printed == b""
    assert "uvicorn" not in server.log.lower()


def test_a_server_over_stdio_does_not_load_what_http_needs(tmp_path: Path) -> None:
    program = (
        "import sys, agora.cli.serve, agora.app.agora, agora.protocol.server, agora.transport.serve\n"
        "parts = ('transport.http', 'transport.guard', 'transport.sessions', 'transport.draining', 'cli.serve_http')\n"
        "print([part for part in parts if f'agora.{part}' in sys.modules])"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, check=True, env=environment(tmp_path), timeout=PATIENCE
    )
    assert done.stdout.strip() == b"[]"


@posix
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_ends_an_idle_server_at_once(start: Callable[..., HttpServer], number: signal.Signals) -> None:
    server = start(settings={"server.drain": 20})
    with SdkClient(server.target(), era="legacy") as client, server.http() as idle:
        # A client that is connected, with its stream open, delays nothing.
        client.call("agora_save", content="Saved before the end.")
        open_session(idle)
        status, seconds = server.stop(number)
    assert status == 0, server.log
    assert seconds < 10, "it did not wait for what never ends"
    assert "ended hard" not in server.log
    assert "Traceback" not in server.log


@posix
def test_calls_in_flight_are_answered_before_the_end(start: Callable[..., HttpServer]) -> None:
    server = start(settings={"server.drain": 60})
    text = LONG_TEXT[:20_000]
    with server.http() as http, ThreadPoolExecutor() as pool:
        call_modern(http, "agora_save", content="Short, and the model is loaded.")
        session = open_session(http)
        calls = [
            pool.submit(call_modern, http, "agora_save", content=text),
            pool.submit(call, http, session, "agora_save", content=text[1:]),
        ]
        wait_until_busy(server)
        server.process.send_signal(signal.SIGTERM)
        assert not any(each.done() for each in calls), "the signal came too late to tell anything"
        ids = [each.result(PATIENCE)["id"] for each in calls]
    assert server.process.wait(PATIENCE) == 0
    with SdkClient(over_stdio(server.home, {"namespace.default": "default"})) as client:
        assert client.call("agora_get", ids=ids)["unknown"] == []


@posix
def test_a_call_that_takes_too_long_does_not_delay_the_end(start: Callable[..., HttpServer]) -> None:
    server = start(settings={"server.drain": 0.3, "limits.content_bytes": 1_000_000})
    outcome: list[object] = []

    def save(era: str) -> None:
        with server.http() as http:
            try:
                if era == "modern":
                    body, headers = modern("tools/call", name="agora_save", arguments={"content": LONG_TEXT})
                    outcome.append(post(http, body, headers).status_code)
                else:
                    outcome.append(call(http, open_session(http), "agora_save", content=LONG_TEXT))
            except (httpx2.TransportError, AssertionError) as problem:
                outcome.append(type(problem).__name__)

    calls = [threading.Thread(target=save, args=[era]) for era in ("modern", "legacy")]
    with server.http() as http:
        call_modern(http, "agora_save", content="Short, and the model is loaded.")
    for each in calls:
        each.start()
    wait_until_busy(server)
    status, seconds = server.stop()
    for each in calls:
        each.join(PATIENCE)
    assert status == 0, server.log
    assert seconds < 2.0
    # The stateless one is told; the stream of the other ends without an answer.
    assert sorted(map(str, outcome)) == ["503", "AssertionError"]
    with SdkClient(over_stdio(server.home, {"namespace.default": "default"})) as client:
        status_after = client.call("agora_status")
    assert (status_after["health"], status_after["notes"]["live"]) == ("ok", 1)


def wait_until_busy(server: HttpServer) -> None:
    """Return when the server uses the processor for what it was asked."""
    import psutil  # noqa: PLC0415 - one test needs it

    process = psutil.Process(server.process.pid)
    start, deadline, pause = process.cpu_times().user, time.monotonic() + PATIENCE, threading.Event()
    while process.cpu_times().user < start + 0.3:
        assert time.monotonic() < deadline, server.log
        pause.wait(0.02)


@posix
def test_what_was_acknowledged_in_a_storm_of_saves_is_there_after_a_signal(start: Callable[..., HttpServer]) -> None:
    server = start()
    acknowledged: list[str] = []

    def save_until_the_end(worker: int) -> None:
        with server.http() as http, suppress(httpx2.TransportError, AssertionError, KeyError):
            session = open_session(http)
            for number in range(1_000):
                text = f"Worker {worker}, note {number}."
                saved = call(http, session, "agora_save", content=text)
                acknowledged.append(saved["id"])

    workers = [threading.Thread(target=save_until_the_end, args=[worker]) for worker in range(4)]
    for each in workers:
        each.start()
    deadline, pause = time.monotonic() + PATIENCE, threading.Event()
    while len(acknowledged) < 40:
        assert time.monotonic() < deadline, server.log
        pause.wait(0.01)
    status, seconds = server.stop()
    for each in workers:
        each.join(PATIENCE)
    assert status == 0, server.log
    assert seconds < 2.0
    assert 40 <= len(acknowledged) < 4_000
    with SdkClient(over_stdio(server.home, {"namespace.default": "default"})) as client:
        for at in range(0, len(acknowledged), 50):
            assert client.call("agora_get", ids=acknowledged[at : at + 50])["unknown"] == []


@posix
def test_a_client_that_never_reads_does_not_delay_the_end(start: Callable[..., HttpServer]) -> None:
    server = start()
    with closing(socket.create_connection(("127.0.0.1", server.port), PATIENCE)) as half:
        half.sendall(
            f"POST /mcp HTTP/1.1\r\nHost: 127.0.0.1:{server.port}\r\nAuthorization: Bearer {server.token}\r\n"
            "Content-Type: application/json\r\nContent-Length: 100\r\n\r\n{".encode()
        )
        status, seconds = server.stop()
    assert status == 0, server.log
    # A busy machine needs more than the drain, which is a second.
    assert seconds < 5.0


def test_http_and_stdio_find_each_other_s_notes_at_once(server: HttpServer) -> None:
    with (
        SdkClient(server.target(), name="web") as web,
        SdkClient(over_stdio(server.home, {"namespace.default": "default"}), name="local") as local,
    ):
        for number in range(5):
            saved = web.call("agora_save", content=f"Ferry {number} leaves the harbour at dawn.")
            found = local.call("agora_query", query=f"when does ferry {number} sail?", top_k=50)
            assert saved["id"] in [hit["id"] for hit in found["results"]]
            back = local.call("agora_save", content=f"Train {number} waits for nobody in winter.")
            found = web.call("agora_query", query=f"does train {number} wait in winter?", top_k=50)
            assert back["id"] in [hit["id"] for hit in found["results"]]
            assert web.call("agora_get", ids=[back["id"]])["notes"][0]["agent"] == "local"
