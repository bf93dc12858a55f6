from __future__ import annotations

import pytest

from agora.protocol.context import Connection
from agora.protocol.peer import Peer
from agora.testing import SilentLog
from agora.transport.auth import Token
from agora.transport.sessions import MARGIN_SECONDS, Sessions

ANN, BOB = Token("ann", "a" * 43), Token("bob", "b" * 43)
IDLE = 10.0


class Bench:
    """A registry with a clock that stands still."""

    def __init__(self) -> None:
        self.time = 100.0
        self.made: list[Token | None] = []
        self.sessions = Sessions(self._make, IDLE, lambda: self.time)

    def _make(self, token: Token | None) -> Peer:
        self.made.append(token)
        return Peer(Connection(at_ms=0), SilentLog())


@pytest.fixture
def bench() -> Bench:
    return Bench()


def test_a_session_has_one_peer_for_as_long_as_it_lasts(bench: Bench) -> None:
    peer = bench.sessions.open(ANN, "s1")
    assert bench.sessions.open(ANN, "s1") is peer
    assert bench.sessions.open(ANN, "s2") is not peer
    assert len(bench.sessions) == 2
    bench.sessions.end(ANN, "s1")
    assert len(bench.sessions) == 1
    assert bench.sessions.open(ANN, "s1") is not peer


def test_the_same_id_under_another_token_is_another_session(bench: Bench) -> None:
    peers = {id(bench.sessions.open(token, "s1")) for token in (ANN, BOB, None)}
    assert len(peers) == 3
    bench.sessions.end(BOB, "s1")
    assert len(bench.sessions) == 2


def test_stateless_requests_of_one_token_share_a_peer_that_is_no_session(bench: Bench) -> None:
    assert bench.sessions.stateless(ANN) is bench.sessions.stateless(ANN)
    assert len({id(bench.sessions.stateless(token)) for token in (ANN, BOB, None)}) == 3
    assert bench.made == [ANN, BOB, None]
    assert len(bench.sessions) == 0


def test_requests_for_unknown_sessions_leave_nothing_behind(bench: Bench) -> None:
    for number in range(1_000):
        with bench.sessions.serving(ANN, f"made-up-{number}"):
            pass
        bench.sessions.end(ANN, f"made-up-{number}")
    assert (len(bench.sessions), bench.made) == (0, [])


def test_an_idle_session_is_dropped_after_the_sdk_has_dropped_its_own(bench: Bench) -> None:
    bench.sessions.open(ANN, "idle")
    bench.sessions.open(ANN, "used")
    bench.time += IDLE + MARGIN_SECONDS
    with bench.sessions.serving(ANN, "used"):
        pass
    assert len(bench.sessions) == 2, "exactly at the limit it is still there"
    bench.time += MARGIN_SECONDS
    with bench.sessions.serving(ANN, "used"):
        pass
    assert len(bench.sessions) == 1
    bench.time += IDLE + MARGIN_SECONDS + 0.1
    bench.sessions.drop_idle()
    assert len(bench.sessions) == 0


def test_a_session_with_a_request_in_flight_is_never_idle(bench: Bench) -> None:
    peer = bench.sessions.open(ANN, "s1")
    with bench.sessions.serving(ANN, "s1"):
        bench.time += 100 * IDLE
        bench.sessions.drop_idle()
        assert len(bench.sessions) == 1
        with bench.sessions.serving(ANN, "s1"):
            bench.time += 100 * IDLE
        bench.time += 100 * IDLE
        bench.sessions.drop_idle()
        assert len(bench.sessions) == 1
    bench.time += MARGIN_SECONDS
    bench.sessions.drop_idle()
    assert bench.sessions.open(ANN, "s1") is peer, "the last request has only just ended"


def test_a_session_may_end_while_a_request_is_in_flight(bench: Bench) -> None:
    bench.sessions.open(ANN, "s1")
    with bench.sessions.serving(ANN, "s1"):
        bench.sessions.end(ANN, "s1")
    assert len(bench.sessions) == 0
