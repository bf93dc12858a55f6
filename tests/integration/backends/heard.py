"""A channel to a child of our own, and everything that came over it."""

from __future__ import annotations

import asyncio
import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

from tests.integration.processes import runs

from agora.backends.guard import Guard
from agora.backends.stdio import LINE_BYTES, StdioChannel
from agora.config.backends import BackendTable

NAUGHTY = Path(__file__).with_name("naughty.py")
PATIENCE = 20.0
"""Seconds that anything may take that should not take long."""


def table(*habits: str, **given: Any) -> BackendTable:
    """A backend that is `naughty.py` with those habits."""
    return BackendTable("naughty", "stdio", **{"command": sys.executable, "args": (str(NAUGHTY), *habits), **given})


def script(program: str, **given: Any) -> BackendTable:
    """A backend that is a program in Python."""
    return BackendTable("naughty", "stdio", command=sys.executable, args=("-c", program), **given)


class Heard:
    """An open channel; calls are awaited one at a time."""

    def __init__(self, backend: BackendTable, guard: Guard, line_bytes: int = LINE_BYTES) -> None:
        self.channel = StdioChannel(backend, guard=guard, line_bytes=line_bytes)
        self.messages: list[dict[str, Any]] = []
        self.lost: list[str] = []
        self._came = asyncio.Event()
        self._ids = 0

    async def open(self) -> None:
        await self.channel.open(self._deliver, self._lose)

    def _deliver(self, message: dict[str, Any]) -> None:
        assert not self.lost, f"{message} came after the end"
        self.messages.append(message)
        self._came.set()

    def _lose(self, reason: str) -> None:
        self.lost.append(reason)
        self._came.set()

    async def post(self, tool: str, **arguments: Any) -> int:
        """The id of a call that is sent."""
        self._ids = number = self._ids + 1
        params = {"name": tool, "arguments": arguments}
        await self.channel.send({"jsonrpc": "2.0", "id": number, "method": "tools/call", "params": params})
        return number

    async def until(self, there: Callable[[], bool], seconds: float = PATIENCE) -> None:
        """Wait until something is there that a message or the end brings."""
        try:
            async with asyncio.timeout(seconds):
                while not there():
                    self._came.clear()
                    await self._came.wait()
        except TimeoutError:
            last = [str(message)[:200] for message in self.messages[-3:]]
            raise AssertionError(f"{last} {self.lost} {self.channel.last_words}") from None

    async def answer(self, number: int) -> dict[str, Any]:
        """The whole answer to a call; it fails if the channel is lost before."""

        def found() -> list[dict[str, Any]]:
            return [each for each in self.messages if "method" not in each and each.get("id") == number]

        await self.until(lambda: bool(found() or self.lost))
        assert found(), self.lost
        return found()[0]

    async def call(self, tool: str, **arguments: Any) -> dict[str, Any]:
        """The structured result of a call."""
        answer = await self.answer(await self.post(tool, **arguments))
        assert "result" in answer, answer
        structured: dict[str, Any] = answer["result"].get("structuredContent", answer["result"])
        return structured

    async def reason(self, seconds: float = PATIENCE) -> str:
        """Why the channel was lost, once it is."""
        await self.until(lambda: bool(self.lost), seconds)
        return self.lost[0]


def alive(pids: list[int]) -> list[int]:
    """Which of the processes run; one that nobody has asked about yet does not."""
    return [pid for pid in pids if runs(pid)]


async def gone(pids: list[int], seconds: float) -> None:
    """Wait until none of the processes runs."""
    loop = asyncio.get_running_loop()
    until = loop.time() + seconds
    while left := alive(pids):
        assert loop.time() < until, f"{left} of {pids} still run after {seconds} s"
        await asyncio.sleep(0.02)


def put_down(pids: list[int]) -> None:
    """End processes that a failed test left."""
    for pid in alive(pids):
        os.kill(pid, 9)
