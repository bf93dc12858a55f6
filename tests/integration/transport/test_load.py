"""Many requests, large requests, and a client that does not read."""

from __future__ import annotations

import json
import os
import select
import sys
from collections.abc import Callable
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from tests.integration.transport.conftest import RawClient


def test_twenty_pipelined_calls_are_each_answered_once(client: RawClient) -> None:
    client.initialize()
    for number in range(20):
        client.call(number, "echo", number=number)
    client.end_input()
    answers = client.rest()
    assert sorted(answer["id"] for answer in answers) == list(range(20))
    assert all(a["result"]["structuredContent"]["got"]["number"] == a["id"] for a in answers)


def test_more_calls_than_may_run_at_once_are_all_answered(start: Callable[..., RawClient]) -> None:
    client = start(max_in_flight=3)
    client.initialize()
    for number in range(50):
        client.call(number, "slow", seconds=0.001)
    client.end_input()
    assert sorted(answer["id"] for answer in client.rest()) == list(range(50))


def test_a_megabyte_goes_in_and_comes_back(client: RawClient) -> None:
    client.initialize()
    text = "è 数据库 😀 " * 80_000
    assert len(text.encode()) > 1_000_000
    client.call(1, "echo", text=text)
    assert client.answer(1)["result"]["structuredContent"]["got"]["text"] == text


def test_a_line_above_the_default_limit_is_refused_and_not_kept(client: RawClient) -> None:
    client.initialize()
    part = b"x" * 1_000_000
    client.send_raw(b'{"jsonrpc": "2.0", "id": 1, "method": "')
    for _ in range(40):
        client.send_raw(part)
    client.send_raw(b'"}\n')
    answer = client.answer(None)
    assert answer["error"]["code"] == -32600
    assert "16777216" in answer["error"]["message"]
    client.ping()


def test_a_second_request_with_an_id_in_flight_is_refused(client: RawClient) -> None:
    client.initialize()
    client.call("x", "slow")
    client.call("x", "echo")
    assert client.answer("x")["error"]["code"] == -32600
    client.send({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": "x"}})
    client.ping()
    client.call("x", "echo")
    assert "result" in client.answer("x")


def test_a_cancelled_call_ends_and_is_not_answered(client: RawClient) -> None:
    client.initialize()
    client.call(1, "slow", seconds=0.2)
    client.send({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": 1}})
    client.call(2, "slow", seconds=0.4)
    client.answer(2)
    client.end_input()
    assert client.rest() == []


@pytest.mark.skipif(sys.platform == "win32", reason="needs a pipe that does not block")
def test_a_client_that_does_not_read_is_not_read_from_without_bound(client: RawClient) -> None:
    client.initialize()
    client.pause_reading()
    os.set_blocking(client.stdin.fileno(), False)
    line = json.dumps(
        {
            "jsonrpc": "2.0",
            "id": 0,
            "method": "tools/call",
            "params": {"name": "echo", "arguments": {"x": "y" * 8000}},
        }
    )
    sent, rest = 0, b""
    # A second without room in the pipe means that the server has stopped to read.
    while sent < 4_000 and select.select([], [client.stdin], [], 1.0)[1]:
        if not rest:
            sent += 1
            rest = line.replace('"id": 0', f'"id": {sent}').encode() + b"\n"
        rest = rest[client.stdin.write(rest) or 0 :]
    assert sent * len(line) < 16_000_000, "the server reads although nobody takes its answers"
    os.set_blocking(client.stdin.fileno(), True)
    client.resume_reading()
    client.send_raw(rest)
    client.end_input()
    assert sorted(answer["id"] for answer in client.rest()) == list(range(1, sent + 1))


@pytest.mark.skipif(sys.platform == "win32", reason="needs pipes that do not block")
def test_pipes_that_somebody_made_non_blocking_work_too(start: Callable[..., RawClient]) -> None:
    client = start(non_blocking="yes")
    client.initialize()
    text = "z" * 3_000_000
    client.call(1, "echo", text=text)
    assert client.answer(1)["result"]["structuredContent"]["got"]["text"] == text
