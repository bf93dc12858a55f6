"""What goes over the wire to a backend, and what never does."""

from __future__ import annotations

import datetime as dt
import gzip
import ipaddress
import json
import logging
import ssl
import time
from pathlib import Path

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from tests.integration.backends.http_rig import Client, Reply, Rude, client, on_a_loop

import agora
from agora.errors import BackendUnavailable, OutcomeUnknown

TOKEN = "tok-1234567890abcdef"  # noqa: S105 - of a server in this test


@on_a_loop
async def test_every_request_says_what_it_has_to() -> None:
    async with Rude().running() as server:
        headers = (("X-Api-Key", "grüße"), ("User-Agent", "mine"), ("Accept", "nothing"))
        async with client(f"{server.url}?tenant=7", bearer_token=TOKEN, headers=headers) as one:
            await one.call("echo")
        for asked in server.asked:
            assert asked.path == "/mcp?tenant=7"
            assert asked.headers["authorization"] == f"Bearer {TOKEN}"
            assert asked.headers["x-api-key"].encode("latin-1").decode() == "grüße"
            assert asked.headers["user-agent"] == "mine"
            assert asked.headers["host"] == f"127.0.0.1:{server.port}"
            if asked.method == "POST":
                assert asked.headers["accept"] == "application/json, text/event-stream"
                assert asked.headers["content-type"] == "application/json"
        first, *rest = server.asked
        assert first.body["method"] == "initialize"
        assert not {"mcp-session-id", "mcp-protocol-version"} & set(first.headers)
        for asked in rest:
            assert asked.headers["mcp-session-id"] == "s-1"
            assert asked.headers["mcp-protocol-version"] == "2025-11-25"
            assert "mcp-method" not in asked.headers
        assert [asked.method for asked in rest] == ["POST", "GET", "POST", "DELETE"]


@on_a_loop
async def test_without_sessions_every_request_repeats_in_headers_what_it_says() -> None:
    async with Rude().running() as server, client(server.url, hands=False) as one:
        # A server that gives a session all the same.
        await one.ask("initialize")
        await one.ask_stateless("server/discover")
        one.channel.negotiated("2026-07-28")
        await one.call_stateless("écho")
        await one.ask_stateless("resources/read", uri="file:///x")
        found = [
            (asked.headers["mcp-protocol-version"], asked.headers["mcp-method"], asked.headers.get("mcp-name"))
            for asked in server.asked[1:]
        ]
        assert found == [
            ("2026-07-28", "server/discover", None),
            ("2026-07-28", "tools/call", "=?base64?w6ljaG8=?="),
            ("2026-07-28", "resources/read", "file:///x"),
        ]
        assert not any("mcp-session-id" in asked.headers for asked in server.asked)


@on_a_loop
async def test_the_name_of_the_program_is_its_own() -> None:
    async with Rude().running() as server, client(server.url) as one:
        await one.call("echo")
        assert server.asked[0].headers["user-agent"] == f"agora/{agora.__version__}"


@on_a_loop
async def test_cookies_of_the_server_come_back_to_it() -> None:
    # A load balancer knows by one which of its servers has the session.
    async def balanced(reply: Reply) -> None:
        await reply.result({}, set_cookie="lb=7; Path=/")

    async with Rude(script=[balanced]).running() as server, client(server.url, hands=False) as one:
        await one.ask("initialize")
        await one.call("echo")
        assert server.asked[-1].headers["cookie"] == "lb=7"


@on_a_loop
async def test_no_proxy_and_no_password_of_the_environment_is_used(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    netrc = tmp_path / "netrc"
    netrc.write_text("machine 127.0.0.1 login me password hidden\n")
    netrc.chmod(0o600)
    monkeypatch.setenv("NETRC", str(netrc))
    async with Rude().running() as proxy, Rude().running() as server:
        for name in ("HTTP_PROXY", "http_proxy", "ALL_PROXY", "all_proxy"):
            monkeypatch.setenv(name, f"http://127.0.0.1:{proxy.port}")
        async with client(server.url) as one:
            assert await one.call("echo") == "fine"
        assert proxy.connections == 0
        assert not any("authorization" in asked.headers for asked in server.asked)


@on_a_loop
async def test_packed_answers_are_unpacked_and_count_by_what_they_hold() -> None:
    async def packed(reply: Reply) -> None:
        message = {"jsonrpc": "2.0", "id": reply.asked.body["id"], "result": {"content": [{"text": "packed"}]}}
        await reply.send(200, gzip.compress(json.dumps(message).encode()), content_encoding="gzip")

    async def bomb(reply: Reply) -> None:
        await reply.send(200, gzip.compress(b" " * (80 << 20), 9), content_encoding="gzip")

    async with Rude().running() as server, client(server.url) as one:
        server.script = [packed, bomb]
        assert await one.call("echo") == "packed"
        with pytest.raises(Exception, match="more than 64 MiB"):
            await one.call("echo")
        assert await one.call("echo") == "fine"


@on_a_loop
async def test_nothing_secret_is_logged(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG)
    async with Rude().running() as server:
        url = server.url.replace("http://", "http://user:passw0rd@") + f"?key={TOKEN}"
        async with client(url, headers=(("X-Api-Key", f"Key {TOKEN}x"),)) as one:
            await one.call("echo")
        # Loud enough to show that something could be seen here.
        logging.getLogger("seen").info("seen")
    assert "seen" in caplog.text
    assert TOKEN not in caplog.text
    assert "passw0rd" not in caplog.text


@on_a_loop
async def test_no_part_of_the_address_but_its_origin_is_in_an_error() -> None:
    async def teller(reply: Reply) -> None:
        await reply.send(400, f"no: passw0rd, hidden-part-of-the-path, {TOKEN}, Key {TOKEN}x".encode(), "text/plain")

    async with Rude().running() as server:
        url = server.url.replace("http://", "http://user-name:passw0rd@") + f"/hidden-part-of-the-path?key={TOKEN}"
        async with client(url, headers=(("X-Api-Key", f"Key {TOKEN}x"),)) as one:
            server.script = [teller]
            with pytest.raises(Exception, match="status 400") as raised:
                await one.call("echo")
    made = Client(url)
    await made.channel.open(made.deliver, made.lose)
    with pytest.raises(BackendUnavailable) as unreachable:
        await made.ask("initialize")
    await made.channel.close()
    for error in (raised.value, unreachable.value):
        for secret in (TOKEN, "passw0rd", "user-name", "hidden"):
            assert secret not in f"{error!r} {error} {getattr(error, 'hint', '')}"


@on_a_loop
async def test_a_message_that_asks_for_nothing_does_not_wait_for_ever() -> None:
    async def never(reply: Reply) -> None:
        await reply.end_of_client()

    async with Rude().running() as server, client(server.url, timeout=0.3) as one:
        server.script = [never]
        started = time.monotonic()
        with pytest.raises(OutcomeUnknown, match="nothing came in time"):
            await one.notify("notifications/progress")
        assert time.monotonic() - started < 5
        assert await one.call("echo") == "fine"


def certificate(folder: Path) -> tuple[ssl.SSLContext, Path]:
    """A server's TLS with a certificate of its own for 127.0.0.1, and that certificate."""
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, "tests")])
    now = dt.datetime.now(dt.UTC)
    made = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - dt.timedelta(days=1))
        .not_valid_after(now + dt.timedelta(days=1))
        .add_extension(x509.SubjectAlternativeName([x509.IPAddress(ipaddress.ip_address("127.0.0.1"))]), critical=False)
        .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
        .sign(key, hashes.SHA256())
    )
    shown, kept = folder / "certificate.pem", folder / "key.pem"
    shown.write_bytes(made.public_bytes(serialization.Encoding.PEM))
    kept.write_bytes(
        key.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
    )
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(shown, kept)
    return context, shown


@on_a_loop
async def test_a_certificate_is_believed_only_if_the_machine_or_the_environment_knows_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    context, known = certificate(tmp_path)
    async with Rude().running(context) as server:
        url = server.url.replace("http:", "https:")
        with pytest.raises(BackendUnavailable, match="certificate is not trusted"):
            async with client(url, bearer_token=TOKEN):
                pass
        assert server.asked == []
        monkeypatch.setenv("SSL_CERT_FILE", str(known))
        async with client(url) as one:
            assert await one.call("echo") == "fine"
        # Nor for another name.
        with pytest.raises(BackendUnavailable, match="certificate is not trusted"):
            async with client(url.replace("127.0.0.1", "localhost")):
                pass
