"""Backends that do what a test says, one step a request; time is the test's own."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from agora.config.backends import BackendTable
from agora.errors import AgoraError
from agora.model.backend import ServerInfo
from agora.ports.backends import Progress, Told

Step = AgoraError | Mapping[str, Any] | Callable[[], AgoraError | Mapping[str, Any]] | asyncio.Event


class Time:
    """A clock that goes on when it is told to."""

    def __init__(self) -> None:
        self.now = 1_000.0

    def __call__(self) -> float:
        return self.now


class Script:
    """A connector whose sessions answer from one list of steps; implements `agora.ports.backends.Connector`."""

    def __init__(self, *steps: Step, starts: Sequence[AgoraError | None] = ()) -> None:
        self.steps = list(steps)
        self.starts = list(starts)
        self.connected = 0
        self.closed = 0
        self.asked: list[str] = []
        self.running = 0
        self.most = 0
        self.sessions: list[Scripted] = []
        self.hold: asyncio.Event | None = None

    async def connect(self, backend: BackendTable, told: Told) -> Scripted:
        self.connected += 1
        if self.hold is not None:
            await self.hold.wait()
        error = self.starts.pop(0) if self.starts else None
        if error is not None:
            raise error
        self.sessions.append(Scripted(self, backend, told))
        return self.sessions[-1]


class Scripted:
    """A session of a script."""

    def __init__(self, script: Script, backend: BackendTable, told: Told) -> None:
        self._script = script
        self.backend = backend
        self.told = told
        self.alive = True
        self.last_words = ""
        self.server = ServerInfo("scripted", "1", "2025-11-25", {"tools": {}})

    async def request(
        self, method: str, params: Mapping[str, Any], *, seconds: float, progress: Progress | None = None
    ) -> dict[str, Any]:
        del params, seconds, progress
        script = self._script
        script.asked.append(method)
        script.running += 1
        script.most = max(script.most, script.running)
        try:
            await asyncio.sleep(0)
            step = script.steps.pop(0) if script.steps else {}
            if isinstance(step, asyncio.Event):
                await step.wait()
                step = {}
            if callable(step):
                step = step()
            if isinstance(step, AgoraError):
                if step.code in {"outcome_unknown", "backend_unavailable"}:
                    self.alive = False
                raise step
            return dict(step)
        finally:
            script.running -= 1

    async def close(self) -> None:
        self.alive = False
        self._script.closed += 1
