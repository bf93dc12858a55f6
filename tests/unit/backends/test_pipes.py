"""Both writers over real pipes: what they promise is the same, but for what they know of bytes that wait."""

from __future__ import annotations

import asyncio
import os
import sys
from collections.abc import Awaitable, Callable
from contextlib import suppress
from typing import IO, Any

import pytest

from agora.backends.pipes import PipeWriter, TransportWriter, Writer

pytestmark = [
    pytest.mark.anyio,
    pytest.mark.skipif(sys.platform == "win32", reason="plain pipes cannot be waited for there"),
]
LARGE = b"x" * 1_000_000
Make = Callable[[IO[bytes]], Awaitable[Writer]]


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


async def _plain(pipe: IO[bytes]) -> Writer:
    return PipeWriter(pipe)


@pytest.fixture(params=["plain", "transport"])
def make(request: pytest.FixtureRequest) -> Make:
    return _plain if request.param == "plain" else TransportWriter.connected


def pipe() -> tuple[IO[bytes], IO[bytes]]:
    reading, writing = os.pipe()
    return open(reading, "rb", buffering=0), open(writing, "wb", buffering=0)  # noqa: PTH123 - descriptors


async def settle(writer: Writer) -> None:
    writer.close()
    # The event loop closes its transports in its next turn.
    await asyncio.sleep(0)
    await asyncio.sleep(0)


def read(reading: IO[bytes], size: int) -> bytes:
    found = b""
    while len(found) < size and (chunk := reading.read(size - len(found))):
        found += chunk
    return found


async def test_all_of_a_message_arrives_however_slowly_it_is_read(make: Make) -> None:
    reading, writing = pipe()
    writer = await make(writing)
    await writer.write(b"first")
    assert reading.read(5) == b"first"
    sending = asyncio.create_task(writer.write(LARGE))
    await asyncio.sleep(0.02)
    assert not sending.done()
    seen = [writer.cut]
    assert await asyncio.to_thread(read, reading, len(LARGE)) == LARGE
    await sending
    assert [*seen, writer.cut] == [True, False]
    await settle(writer)
    assert reading.read(1) == b""
    reading.close()


async def test_a_write_to_a_closed_pipe_fails_and_nothing_was_cut(make: Make) -> None:
    reading, writing = pipe()
    writer = await make(writing)
    reading.close()
    for _ in range(2):
        with pytest.raises(OSError, match=r"closed|Broken"):
            await writer.write(b"nobody reads this")
        assert not writer.cut
    await settle(writer)


async def test_a_reader_that_goes_in_the_middle_of_a_message_leaves_it_cut(make: Make) -> None:
    reading, writing = pipe()
    writer = await make(writing)
    sending = asyncio.create_task(writer.write(LARGE))
    await asyncio.sleep(0.02)
    reading.close()
    with pytest.raises(OSError, match=r"closed|Broken"):
        await sending
    assert writer.cut
    await settle(writer)


async def test_closing_wakes_a_write_that_nobody_reads(make: Make) -> None:
    reading, writing = pipe()
    writer = await make(writing)
    sending = asyncio.create_task(writer.write(LARGE))
    await asyncio.sleep(0.02)
    await settle(writer)
    async with asyncio.timeout(5):
        with pytest.raises(OSError, match=r"closed|Broken"):
            await sending
    writer.close()
    reading.close()


async def test_a_cancelled_write_says_whether_it_left_half_a_message(make: Make) -> None:
    reading, writing = pipe()
    writer = await make(writing)
    sending = asyncio.create_task(writer.write(LARGE))
    await asyncio.sleep(0.02)
    sending.cancel()
    with suppress(asyncio.CancelledError):
        await sending
    assert writer.cut
    await settle(writer)
    reading.close()


async def test_on_posix_a_message_of_which_no_byte_found_room_was_not_sent() -> None:
    reading, writing = pipe()
    writer = PipeWriter(writing)
    with suppress(BlockingIOError):
        while True:
            os.write(writing.fileno(), b"x" * 4_096)
    outcomes: list[Any] = []
    for end in ("cancelled", "closed"):
        sending = asyncio.create_task(writer.write(LARGE))
        await asyncio.sleep(0.02)
        if end == "cancelled":
            sending.cancel()
        else:
            reading.close()
        outcomes += await asyncio.gather(sending, return_exceptions=True)
        assert not writer.cut
    assert [type(outcome) for outcome in outcomes] == [asyncio.CancelledError, BrokenPipeError]
    writer.close()
