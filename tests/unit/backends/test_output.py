from __future__ import annotations

import asyncio
import json
from typing import Any

import pytest

from agora.backends.messages import LARGE
from agora.backends.output import Output
from agora.backends.words import Cleaner, Skipped
from agora.redaction.redactor import Redactor

pytestmark = pytest.mark.anyio


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


class Pipe(asyncio.ReadTransport):
    """A pipe without a descriptor: knows whether it is being read."""

    def __init__(self) -> None:
        super().__init__()
        self.reading = True
        self.closed = False

    def pause_reading(self) -> None:
        self.reading = False

    def resume_reading(self) -> None:
        self.reading = True

    def is_closing(self) -> bool:
        return self.closed

    def close(self) -> None:
        self.closed = True


def line(number: int, size: int = 0) -> bytes:
    return json.dumps({"jsonrpc": "2.0", "id": number, "result": {"text": "x" * size}}).encode() + b"\n"


def made(limit: int = 1_000_000) -> tuple[Output, Pipe, list[dict[str, Any]], Skipped]:
    found: list[dict[str, Any]] = []
    skipped = Skipped(Cleaner(Redactor(), {}))
    output, pipe = Output(found.append, skipped, limit), Pipe()
    output.connection_made(pipe)
    return output, pipe, found, skipped


async def test_a_flood_of_messages_leaves_others_their_turn_and_is_not_read_on_meanwhile() -> None:
    output, pipe, found, _ = made()
    output.data_received(b"".join(line(n) for n in range(2_000)))
    assert 0 < len(found) < 1_000
    seen = [pipe.reading]
    turns = 0
    while output.busy:
        await asyncio.sleep(0)
        turns += 1
    assert turns >= 2
    assert [*seen, pipe.reading] == [False, True]
    assert [message["id"] for message in found] == list(range(2_000))


async def test_messages_of_all_sizes_come_in_their_order() -> None:
    output, pipe, found, _ = made()
    sizes = [0, LARGE, 0, 2 * LARGE, 0, 0, LARGE]
    output.data_received(b"".join(line(n, size) for n, size in enumerate(sizes)))
    output.connection_lost(None)
    assert not output.ended.done()
    await asyncio.wait_for(output.ended, 10)
    assert [message["id"] for message in found] == list(range(len(sizes)))
    assert not pipe.closed


async def test_the_last_line_needs_no_end_and_half_a_line_is_none() -> None:
    output, _, found, skipped = made()
    output.data_received(line(1) + line(2).strip())
    output.connection_lost(None)
    assert [message["id"] for message in found] == [1, 2]
    output, _, found, skipped = made()
    output.data_received(line(1) + line(2)[:-5])
    output.connection_lost(None)
    assert output.ended.done()
    # What began as an answer and is none fails its request.
    assert [(message["id"], "error" in message) for message in found] == [(1, False), (2, True)]
    assert skipped.count == 1


async def test_once_muted_nothing_is_delivered_and_everything_is_read() -> None:
    output, pipe, found, skipped = made()
    output.data_received(line(1) + line(2, LARGE))
    output.mute()
    output.data_received(line(3))
    output.connection_lost(None)
    await asyncio.wait_for(output.ended, 10)
    assert [message["id"] for message in found] == [1]
    assert skipped.count == 0
    assert pipe.closed is False
