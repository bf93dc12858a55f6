"""Who may use an HTTP server: tokens, Host, Origin, sizes and paths."""

from __future__ import annotations

import json
import socket
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path

import httpx2
import psutil
import pytest
from mcp.shared.exceptions import MCPError
from tests.integration.clients import PATIENCE, HttpServer, SdkClient, over_http, run
from tests.integration.http.wire import call_modern, handshake, message, modern, open_session, post


@pytest.fixture
def anonymous(server: HttpServer) -> Iterator[httpx2.Client]:
    with httpx2.Client(base_url=server.origin, timeout=PATIENCE) as client:
        yield client


def refused(answer: httpx2.Response, status: int) -> dict[str, str]:
    """What a refusal says, checked for its form."""
    assert answer.status_code == status, answer.text
    found = message(answer)
    assert found["id"] is None
    assert found["error"]["code"] == -32600
    data: dict[str, str] = found["error"]["data"]
    assert data["message"] in found["error"]["message"]
    assert data["hint"] in found["error"]["message"]
    return data


def test_the_token_lets_a_client_in_whatever_the_case_of_its_scheme(
    server: HttpServer, anonymous: httpx2.Client
) -> None:
    for scheme in ("Bearer", "bearer", "BEARER"):
        answer = post(anonymous, handshake(), {"Authorization": f"{scheme} {server.token}"})
        assert answer.status_code == 200


def test_without_the_token_both_eras_get_401_that_says_what_to_do(server: HttpServer, anonymous: httpx2.Client) -> None:
    for answer in (post(anonymous, handshake()), post(anonymous, *modern("server/discover")), anonymous.get("/mcp")):
        data = refused(answer, 401)
        assert answer.headers["www-authenticate"] == 'Bearer realm="agora"'
        assert "agora token" in data["hint"]
        assert "mcp-session-id" not in answer.headers
        assert server.token not in answer.text


@pytest.mark.parametrize(
    "shown",
    [
        "Bearer",
        "Bearer x",
        "Basic {token}",
        "{token}",
        "Bearer {token}x",
        "Bearer {cut}",
        "Bearer {token} {token}",
        "Bearer {other_case}",
    ],
)
def test_a_wrong_token_is_refused(server: HttpServer, anonymous: httpx2.Client, shown: str) -> None:
    token = server.token
    value = shown.format(token=token, cut=token[:-1], other_case=token.swapcase())
    refused(post(anonymous, handshake(), {"Authorization": value}), 401)


def test_a_token_that_is_no_ascii_is_refused(anonymous: httpx2.Client) -> None:
    answer = anonymous.post("/mcp", headers=[(b"Authorization", b"Bearer \xff\xfe")], content=b"{}")
    refused(answer, 401)


def test_two_tokens_in_one_request_are_refused(server: HttpServer, anonymous: httpx2.Client) -> None:
    headers = [("Authorization", f"Bearer {server.token}"), ("Authorization", "Bearer x")]
    refused(anonymous.post("/mcp", headers=headers, content=b"{}"), 401)


def test_a_token_in_the_address_is_no_token(server: HttpServer, anonymous: httpx2.Client) -> None:
    refused(anonymous.post(f"/mcp?token={server.token}&access_token={server.token}", content=b"{}"), 401)


def test_the_sdk_client_without_the_token_is_told_so_in_words(server: HttpServer) -> None:
    with pytest.raises(BaseExceptionGroup) as caught, SdkClient(over_http(server.url, None)):
        pass
    found = caught.value
    leaf: BaseException = found
    while isinstance(leaf, BaseExceptionGroup):
        leaf = leaf.exceptions[0]
    assert isinstance(leaf, MCPError)
    assert "agora token" in leaf.error.message


def test_the_token_is_in_no_log_and_in_no_file_but_its_own(start: Callable[..., HttpServer]) -> None:
    server = start(settings={"log.level": "debug"})
    with server.http() as http, httpx2.Client(base_url=server.origin, timeout=PATIENCE) as anonymous:
        open_session(http)
        call_modern(http, "agora_save", content="Something to write about.")
        post(anonymous, handshake(), {"Authorization": f"Bearer {server.token}x"})
        anonymous.get(f"/elsewhere?token={server.token}")
        post(http, handshake(), {"Host": "evil.example"})
        post(http, b"not json")
    assert "refused a request with 401" in server.log
    secret = server.token.encode()
    holding = [path.name for path in server.home.rglob("*") if path.is_file() and secret in path.read_bytes()]
    assert holding == ["token"]
    # Nor in what `ps` shows.
    assert not any(server.token in argument for argument in psutil.Process(server.process.pid).cmdline())


OWN = ["http://127.0.0.1:{port}", "http://localhost:{port}", "http://[::1]:{port}", "HTTP://LocalHost:{port}"]
FOREIGN = [
    "http://evil.example",
    "http://evil.example:{port}",
    "https://127.0.0.1:{port}",
    "http://127.0.0.1:1",
    "http://127.0.0.1",
    "http://localhost.evil.example:{port}",
    "http://127.0.0.1:{port}.evil.example",
    "http://evil.example@127.0.0.1:{port}",
    "null",
    "file://",
    "",
]


@pytest.mark.parametrize("origin", OWN)
def test_the_server_s_own_origin_is_welcome(server: HttpServer, http: httpx2.Client, origin: str) -> None:
    assert post(http, handshake(), {"Origin": origin.format(port=server.port)}).status_code == 200


@pytest.mark.parametrize("origin", FOREIGN)
def test_a_foreign_origin_is_refused_even_with_the_token(server: HttpServer, http: httpx2.Client, origin: str) -> None:
    data = refused(post(http, handshake(), {"Origin": origin.format(port=server.port)}), 403)
    assert "http.origins" in data["hint"]


def test_one_foreign_origin_among_several_is_enough_to_refuse(server: HttpServer, http: httpx2.Client) -> None:
    headers = [("Origin", f"http://127.0.0.1:{server.port}"), ("Origin", "http://evil.example")]
    refused(http.post("/mcp", headers=headers, content=b"{}"), 403)


@pytest.mark.parametrize("host", ["127.0.0.1:{port}", "localhost:{port}", "LOCALHOST:{port}", "[::1]:{port}"])
def test_loopback_names_with_the_port_are_this_server(server: HttpServer, http: httpx2.Client, host: str) -> None:
    assert post(http, handshake(), {"Host": host.format(port=server.port)}).status_code == 200


@pytest.mark.parametrize(
    "host",
    [
        "evil.example:{port}",
        "evil.example",
        "127.0.0.1",
        "127.0.0.1:1",
        "localhost.evil.example:{port}",
        "127.0.0.1.evil.example:{port}",
        "127.0.0.1:{port}:{port}",
        "user@127.0.0.1:{port}",
        "0.0.0.0:{port}",
        "[::ffff:127.0.0.1]:{port}x",
    ],
)
def test_another_name_in_host_is_refused_before_the_token_is_looked_at(
    server: HttpServer, anonymous: httpx2.Client, host: str
) -> None:
    data = refused(post(anonymous, handshake(), {"Host": host.format(port=server.port)}), 403)
    assert "http.hosts" in data["hint"]


def test_a_request_without_host_is_refused(server: HttpServer) -> None:
    with closing(socket.create_connection(("127.0.0.1", server.port), PATIENCE)) as connection:
        connection.sendall(b"POST /mcp HTTP/1.0\r\nContent-Length: 0\r\n\r\n")
        answer = b"".join(iter(lambda: connection.recv(65_536), b""))
    assert answer.startswith(b"HTTP/1.1 403 ")


def test_configured_hosts_and_origins_are_welcome_and_pages_may_ask_first(start: Callable[..., HttpServer]) -> None:
    settings = {"http.hosts": "agora.lan, Other.LAN:99", "http.origins": "https://app.example.com"}
    server = start(settings=settings)
    page = {"Origin": "https://app.example.com"}
    with server.http() as http:
        for host, status in (("agora.lan", 200), ("agora.lan:7", 200), ("other.lan:99", 200), ("other.lan", 403)):
            assert post(http, handshake(), {"Host": host}).status_code == status, host
        answer = post(http, handshake(), page)
        assert answer.status_code == 200
        assert answer.headers["access-control-allow-origin"] == "https://app.example.com"
        assert "mcp-session-id" in answer.headers["access-control-expose-headers"].lower()
        refused(post(http, handshake(), {"Origin": "https://app.example.com.evil.example"}), 403)
    with httpx2.Client(base_url=server.origin, timeout=PATIENCE) as anonymous:
        asked = {"Access-Control-Request-Method": "POST", "Access-Control-Request-Headers": "authorization"}
        answer = anonymous.options("/mcp", headers=page | asked)
        assert (answer.status_code, answer.headers["access-control-allow-origin"]) == (200, "https://app.example.com")
        # The page can read why it was refused.
        assert post(anonymous, handshake(), page).headers["access-control-allow-origin"] == "https://app.example.com"


def test_a_body_over_the_limit_is_refused_however_it_is_sent(start: Callable[..., HttpServer]) -> None:
    server = start(settings={"limits.line_bytes": 65_536})
    body = json.dumps(handshake("x" * 70_000)).encode()
    with server.http() as http:
        data = refused(post(http, body), 413)
        assert "limits.line_bytes" in data["hint"]
        chunks = (body[at : at + 1000] for at in range(0, len(body), 1000))
        answer = http.post("/mcp", content=chunks, headers={"Content-Type": "application/json", "Accept": "*/*"})
        assert answer.status_code == 413
        # A connection and a server that go on.
        call_modern(http, "agora_status")


def test_the_limit_leaves_the_longest_note_alone(http: httpx2.Client) -> None:
    answer = post(http, *modern("tools/call", name="agora_save", arguments={"content": "\N{GRINNING FACE}" * 65_000}))
    # 260,000 bytes of text are 780,000 of JSON; whether such a text is kept is the tool's business.
    assert answer.status_code == 200


@pytest.mark.parametrize("path", ["/", "/mcp/", "/mcp/x", "/MCP", "//mcp", "/.well-known/oauth-protected-resource"])
def test_there_is_one_path(server: HttpServer, anonymous: httpx2.Client, path: str) -> None:
    answer = anonymous.get(f"{server.origin}{path}")
    assert "/mcp" in refused(answer, 404)["hint"]


def test_an_upgrade_to_something_else_is_not_made(server: HttpServer, anonymous: httpx2.Client) -> None:
    headers = {"Connection": "Upgrade", "Upgrade": "websocket", "Sec-WebSocket-Key": "x", "Sec-WebSocket-Version": "13"}
    assert anonymous.get("/mcp", headers=headers).status_code == 401
    assert server.process.poll() is None


@pytest.mark.parametrize("address", ["0.0.0.0:0", "[::]:0"])
def test_no_auth_is_refused_where_others_can_connect(tmp_path: Path, address: str) -> None:
    status, printed, errors = run(tmp_path, ["serve", "--http", address, "--no-auth"])
    assert (status, printed) == (2, "")
    assert "--no-auth is refused" in errors
    assert "Traceback" not in errors


def test_no_auth_belongs_to_http(tmp_path: Path) -> None:
    status, _, errors = run(tmp_path, ["serve", "--no-auth"])
    assert status == 2
    assert "--http" in errors


def test_no_auth_on_loopback_lets_every_local_client_in_but_no_web_page(start: Callable[..., HttpServer]) -> None:
    server = start("--no-auth")
    assert not (server.home / "token").exists()
    with server.http() as http:
        assert call_modern(http, "agora_status")["health"] == "ok"
        open_session(http)
        refused(post(http, handshake(), {"Origin": "http://evil.example"}), 403)
        refused(post(http, handshake(), {"Host": "evil.example"}), 403)
