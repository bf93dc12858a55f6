from __future__ import annotations

import socket
from collections.abc import Iterator
from contextlib import closing, suppress

import pytest

from agora.errors import ListenError
from agora.transport.address import Listener, is_loopback, listen, parse_address


@pytest.mark.parametrize(
    ("written", "host", "port"),
    [
        ("127.0.0.1:8765", "127.0.0.1", 8765),
        ("localhost:0", "localhost", 0),
        ("[::1]:8765", "::1", 8765),
        ("[fe80::1%eth0]:1", "fe80::1%eth0", 1),
        ("agora.lan:65535", "agora.lan", 65_535),
    ],
)
def test_host_and_port_are_told_apart(written: str, host: str, port: int) -> None:
    assert parse_address(written) == (host, port)


@pytest.mark.parametrize(
    "written",
    [
        *("", "127.0.0.1", "8765", ":8765", "127.0.0.1:", "127.0.0.1:x", "127.0.0.1:65536", "127.0.0.1:-1"),
        *("::1:8765", "[::1]", "[]:1", "a b:1", "http://127.0.0.1:8765", "127.0.0.1:8765/mcp", "me@host:1", "h:1\n"),
        *("127.0.0.1:٣", "127.0.0.1: 1", "[::1]8765", "127.0.0.1:123456"),
    ],
)
def test_what_is_no_host_and_port_is_refused_with_an_example(written: str) -> None:
    with pytest.raises(ListenError) as caught:
        parse_address(written)
    assert repr(written) in caught.value.message
    assert "127.0.0.1:8765" in caught.value.hint


@pytest.fixture
def bound() -> Iterator[Listener]:
    found = listen("127.0.0.1:0")
    with closing(found.sock):
        yield found


def test_port_0_takes_a_free_one_and_clients_may_connect_at_once(bound: Listener) -> None:
    assert bound.port > 0
    assert bound.url == f"http://127.0.0.1:{bound.port}/mcp"
    with closing(socket.create_connection(("127.0.0.1", bound.port), 10)):
        pass


def test_a_port_that_is_taken_is_refused(bound: Listener) -> None:
    with pytest.raises(ListenError) as caught:
        listen(f"127.0.0.1:{bound.port}")
    assert f"127.0.0.1:{bound.port}" in caught.value.message
    assert caught.value.hint


@pytest.mark.parametrize("written", ["192.0.2.1:0", "no.such.host.invalid:0", f"{'x' * 70}.example:0"])
def test_an_address_of_no_interface_here_is_refused(written: str) -> None:
    with pytest.raises(ListenError, match="cannot listen on"):
        listen(written)


def test_an_address_in_brackets_is_shown_in_brackets() -> None:
    try:
        found = listen("[::1]:0")
    except ListenError:
        pytest.skip("this machine has no IPv6")
    with closing(found.sock):
        assert found.url == f"http://[::1]:{found.port}/mcp"
        assert found.loopback


def test_every_address_is_no_loopback_address() -> None:
    for written in ("0.0.0.0:0", "[::]:0"):
        with suppress(ListenError), closing(listen(written).sock):
            assert not is_loopback(written.rpartition(":")[0].strip("[]"))


@pytest.mark.parametrize(
    ("host", "expected"),
    [
        *(("localhost", True), ("127.0.0.1", True), ("127.9.9.9", True), ("::1", True)),
        *(("192.0.2.1", False), ("::", False), ("localhost.evil.example", False), ("127.0.0.1.evil.example", False)),
        *(("", False), ("10.0.0.1", False), ("1", False)),
    ],
)
def test_loopback_is_told_by_the_address_and_never_by_a_name_server(host: str, *, expected: bool) -> None:
    assert is_loopback(host) is expected
