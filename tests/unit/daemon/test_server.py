"""When a shared server ends by itself."""

from __future__ import annotations

import asyncio
import json
import time
from _socket import socket
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import anyio
import pytest
from mcp.server.lowlevel import Server

from agora.daemon.hello import Hello
from agora.daemon.lock import Lock, take
from agora.daemon.place import Place, listen
from agora.daemon.server import SharedServer, Terms
from agora.protocol.context import Connection
from agora.protocol.peer import Peer
from agora.shim.places import LOCK, RUN
from agora.shim.reaching import dial
from agora.testing import SilentLog

PATIENCE = 10.0


class Words:
    """A log that keeps what it is told."""

    def __init__(self) -> None:
        self.said: list[str] = []

    def debug(self, text: str, *values: object) -> None:
        self.said.append(text % values)

    warning = info = error = debug


@pytest.fixture
def place(tmp_path: Path) -> Iterator[Place]:
    found = listen(tmp_path)
    yield found
    found.close()


@pytest.fixture
def lock(place: Place) -> Iterator[Lock]:
    found = take(place.file.with_name(LOCK))
    yield found
    found.release()


def a_peer(_: Hello) -> Peer:
    return Peer(Connection(at_ms=0), SilentLog())


def shared(place: Place, lock: Lock, log: Words, **given: Any) -> SharedServer:
    terms: dict[str, Any] = {"idle_seconds": 60.0, "drain_seconds": 0.1, "line_bytes": 1 << 20, "safe": (), "log": log}
    return SharedServer(Server("test"), place, lock, Terms(admit=lambda _: [], open_peer=a_peer, **{**terms, **given}))


def served(server: SharedServer, on_ready: Callable[[], None] = lambda: None) -> float:
    """Seconds until it ended by itself."""

    async def serve() -> None:
        with anyio.fail_after(PATIENCE):
            await server.serve(on_ready)

    began = time.monotonic()
    anyio.run(serve)
    return time.monotonic() - began


def test_an_idle_server_ends_when_the_work_beside_its_sessions_is_done(place: Place, lock: Lock) -> None:
    answers = iter([True, True, False])
    asked: list[bool] = []

    def busy() -> bool:
        asked.append(next(answers))
        return asked[-1]

    server = shared(place, lock, Words(), idle_seconds=0.1, busy=busy)
    hello = Hello(version="1", pid=1, cwd="/", home="/", options={}, env={})
    with server.clients.present(hello, a_peer(hello)):
        pass
    assert served(server) > 0.1
    assert asked == [True, True, False]


@pytest.mark.parametrize("which", ["lock", "place", "folder"])
def test_a_server_beside_which_another_could_start_ends_and_says_why(
    which: str, place: Place, lock: Lock, tmp_path: Path
) -> None:
    log = Words()

    def take_away() -> None:
        if which == "folder":
            (tmp_path / RUN).rename(tmp_path / "elsewhere")
        else:
            (lock.path if which == "lock" else place.file).unlink()

    assert served(shared(place, lock, log), take_away) < 3
    warnings = [text for text in log.said if "deleted or replaced, so" in text]
    assert len(warnings) == 1
    assert (place.file.name if which == "place" else LOCK) in warnings[0]


def test_a_server_leaves_the_files_of_the_next_one_alone(place: Place, lock: Lock, tmp_path: Path) -> None:
    places, locks = [], []

    def replace() -> None:
        for file in (lock.path, place.file):
            file.unlink()
        places.append(listen(tmp_path))
        locks.append(take(tmp_path / RUN / LOCK))

    served(shared(place, lock, Words()), replace)
    (other,), (held,) = places, locks
    assert other.is_there()
    assert held.is_there()
    other.close()
    held.release()


def calling(place: Place, line: bytes) -> socket:
    """A connection that has said `line`."""
    dialled = dial(str(place.file.parents[1]))
    assert dialled is not None
    sock, token = dialled
    sock.sendall(line.replace(b"TOKEN", token.encode()))
    return sock


def test_who_has_said_nothing_is_not_waited_for(place: Place, lock: Lock) -> None:
    server = shared(place, lock, Words(), drain_seconds=PATIENCE)
    callers = []

    def ready() -> None:
        callers.append(calling(place, b'{"agora":1,'))
        asyncio.get_running_loop().call_later(0.2, server.end, "it is time")

    assert served(server, ready) < 3
    callers[0].close()


def test_who_asks_a_server_to_stop_that_ends_already_is_answered_and_leaves_no_mark(place: Place, lock: Lock) -> None:
    marks = []
    server = shared(place, lock, Words(), on_stopped=lambda: marks.append("stopped"))
    said = {"agora": 1, "version": "1", "pid": 1, "cwd": "/", "home": "/", "command": "stop", "token": "TOKEN"}
    callers: list[socket] = []

    def ready() -> None:
        # Both lines are there before either is read.
        callers.extend(calling(place, json.dumps(said).encode() + b"\n") for _ in range(2))

    served(server, ready)
    for each in callers:
        each.settimeout(PATIENCE)
        assert json.loads(each.recv(1 << 16))["ok"] is True
        each.close()
    assert marks == ["stopped"]
