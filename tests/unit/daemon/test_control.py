from __future__ import annotations

import json
import socket
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from agora.daemon import control
from agora.daemon.place import Place, listen
from agora.errors import StoreUnavailable
from agora.shim.places import LOCK, LOG, RUN
from agora.shim.reaching import dial

posix = pytest.mark.skipif(sys.platform == "win32", reason="Unix sockets and inherited locks")


@pytest.fixture
def place(tmp_path: Path) -> Iterator[Place]:
    found = listen(tmp_path)
    yield found
    found.close()


@pytest.mark.parametrize("drain", [0.5, 1, 60])
def test_the_end_of_a_server_is_waited_for_as_long_as_its_calls_may_take(drain: float) -> None:
    assert drain + 5 < control.ends_within({"pid": 1, "drain": drain}) < drain + 30


def test_a_server_that_does_not_tell_how_long_its_calls_may_take_is_waited_for_all_the_same() -> None:
    assert control.ends_within({"pid": 1}) == control.ENDS_SECONDS


def answering(place: Place, *answers: dict[str, object]) -> threading.Thread:
    """Answers each connection with the next of `answers`, and nothing after it."""

    def work() -> None:
        for answer in answers:
            theirs, _ = place.sock.accept()
            theirs.recv(100_000)
            theirs.sendall(json.dumps({"agora": 1, "ok": True, **answer}).encode() + b"\n")
            theirs.close()

    thread = threading.Thread(target=work, daemon=True)
    thread.start()
    return thread


def test_a_server_with_many_sessions_tells_of_all_of_them(place: Place, tmp_path: Path) -> None:
    connections = [{"session": f"session {number}", "folder": "x" * 300} for number in range(512)]
    thread = answering(place, {"pid": 1, "connections": connections})
    found = control.ask(tmp_path, "status")
    assert found is not None
    assert found["connections"] == connections
    thread.join()


@posix
def test_a_server_that_takes_no_connections_any_more_is_not_waited_for_for_ever(place: Place, tmp_path: Path) -> None:
    place.sock.listen(0)
    waiting = []
    began = time.monotonic()
    while (dialled := dial(str(tmp_path))) is not None:
        waiting.append(dialled[0])
        assert len(waiting) < 100
    assert time.monotonic() - began < 5
    for each in waiting:
        each.close()


@posix
def test_the_start_of_a_server_that_ends_at_once_is_tried_again_a_while_later_and_then_told(tmp_path: Path) -> None:
    home = tmp_path / "home"
    home.mkdir()
    (home / "agora.toml").write_text("[nonsense]\n", encoding="utf-8")
    began = time.monotonic()
    starts: list[float] = []
    with pytest.raises(StoreUnavailable) as caught:
        control.start(home, {}, on_start=lambda: starts.append(time.monotonic() - began), next_start=0.7)
    assert "does not start" in str(caught.value)
    assert len(starts) == control.STARTS
    assert starts[1] - starts[0] >= 0.7
    # The last one had as long as the first.
    assert time.monotonic() - began >= starts[1] + 0.7


@posix
def test_what_a_start_is_bounded_by_ends_it(tmp_path: Path) -> None:
    def enough() -> None:
        raise StoreUnavailable("enough")

    home = tmp_path / "home"
    home.mkdir()
    (home / "agora.toml").write_text("[nonsense]\n", encoding="utf-8")
    with pytest.raises(StoreUnavailable, match="enough"):
        control.start(home, {}, on_start=enough)


@posix
def test_http_that_a_hung_server_does_not_end_is_given_up_with_words() -> None:
    ours, theirs = socket.socketpair()
    # Nobody reads at the other end, as if the server hung.
    attached = control.Attached(ours, {"url": "http://x/mcp", "address": "x:1", "drain": 0})
    unwanted = threading.Event()
    unwanted.set()
    attached.hang_up()
    began = time.monotonic()
    with pytest.raises(StoreUnavailable, match="has not ended HTTP at x:1"):
        attached.wait(unwanted)
    assert time.monotonic() - began < 2 * control.HTTP_ENDS_SECONDS
    theirs.close()


def test_the_log_of_no_server_is_empty(tmp_path: Path) -> None:
    assert control.log(tmp_path, 3) == []
    (tmp_path / RUN).mkdir()
    (tmp_path / RUN / LOG).write_text("a\nb\nc\nd\n", encoding="utf-8")
    assert control.log(tmp_path, 3) == ["b", "c", "d"]
    assert not (tmp_path / RUN / LOCK).exists()
