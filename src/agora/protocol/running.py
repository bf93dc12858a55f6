"""Requests that take time: in worker threads, each with its deadline, its share of the threads and its errors."""

from __future__ import annotations

import asyncio
import time
from collections import deque
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, TypeVar

import anyio
import anyio.to_thread
import mcp_types as types
from mcp.server.context import ServerRequestContext
from mcp.shared.exceptions import MCPError

from agora.errors import AgoraError, DeadlineExceeded
from agora.model.deadline import Deadline
from agora.ports.log import Log
from agora.protocol.context import Calling
from agora.protocol.errors import protocol_error
from agora.protocol.peer import FindPeer, Peer, Turns
from agora.unseen import shown

T = TypeVar("T")
Done = Callable[[str, float, str], None]
"""Told of a request: its name, which is one of ours, how many seconds it took, and `ok` or the code of an error."""

_THREADS = 48
"""Calls of all clients that run at the same time; more than one client may have, so that none can take them all."""

_KEPT = 16
"""So many of them are for clients of whom nothing else runs: no number of busy clients can take them all either."""

_WAITING = 256
_WAITING_EACH = 64
"""Calls that wait for other programs at the same time: of all clients, and of one."""

_GRACE = 2.0
"""Seconds after its deadline that a call has to stop by itself; then it is answered for."""

_STEPS = 64
"""Notes of progress that wait for a client; of more, the oldest are left out."""

_LAST_TOLD = 1.0
"""Seconds that an answer waits for the progress before it, should the client read slowly."""

_BEAT = 1.0
"""Seconds between two notes of progress to a client that asked for them."""


@dataclass(frozen=True, slots=True)
class _Places:
    """Whose turn it is, and the threads; one that was given up keeps its place here until it is done."""

    turns: Turns
    threads: anyio.CapacityLimiter


class Runner:
    """Runs blocking work for requests, for as many clients as `find` tells apart."""

    def __init__(self, find: FindPeer, seconds: float, log: Log, done: Done = lambda *_: None) -> None:
        """`seconds` is the deadline of one request; `done` is told of each that ended."""
        self._done = done
        self.find = find
        self._seconds = seconds
        self._log = log
        self._working = _Places(Turns(_THREADS, kept=_KEPT), anyio.CapacityLimiter(_THREADS))
        self._waiting = _Places(
            Turns(_WAITING, each=_WAITING_EACH, kept=_WAITING // 4), anyio.CapacityLimiter(_WAITING)
        )

    async def call(
        self, ctx: ServerRequestContext[Any, Any], name: str, work: Callable[[Calling], T], *, waits: bool = False
    ) -> T:
        """What `work` returns, run in a worker thread; a request that the client cancels stops at its next step.

        `waits`: that it does little but wait for another program, so that many of them may run at the same time.

        Raises: AgoraError as `work` does; MCPError -32603 for anything else, without a word of what it was.
        """
        deadline, began, outcome = Deadline(self._seconds), time.monotonic(), "internal"
        peer = self.find(ctx)
        try:
            await peer.roots.follow(ctx, peer.connection.root)
            found = await self._run(ctx, work, peer, deadline, self._waiting if waits else self._working)
        except AgoraError as error:
            outcome = error.code
            self._log.info("call refused", tool=name, code=error.code)
            await peer.log.tell(
                ctx, "warning", "call refused", request=name, code=error.code, message=shown(error.message)
            )
            raise
        except anyio.get_cancelled_exc_class():
            outcome = "cancelled"
            deadline.cancel()
            raise
        except Exception as error:
            # The client gets -32603 without a word of this; the log has it all.
            self._log.warning("call failed", tool=name, exc_info=True)
            await peer.log.tell(ctx, "error", "call failed", request=name)
            raise MCPError(code=types.INTERNAL_ERROR, message="Internal error") from error
        else:
            outcome = "ok"
            seconds = round(time.monotonic() - began, 3)
            await peer.log.tell(ctx, "debug", "call answered", request=name, seconds=seconds)
            return found
        finally:
            self._done(name, time.monotonic() - began, outcome)

    async def read(
        self, ctx: ServerRequestContext[Any, Any], name: str, work: Callable[[Calling], T], *, waits: bool = False
    ) -> T:
        """As `call`, for requests that have no result to put an error into.

        Raises: MCPError, with what went wrong in its data.
        """
        try:
            return await self.call(ctx, name, work, waits=waits)
        except AgoraError as error:
            raise protocol_error(error, ctx.protocol_version) from error

    async def _run(
        self,
        ctx: ServerRequestContext[Any, Any],
        work: Callable[[Calling], T],
        peer: Peer,
        deadline: Deadline,
        places: _Places,
    ) -> T:
        info = ctx.session.client_params.client_info if ctx.session.client_params else None
        calling = Calling(peer.connection, info.name if info else "", info.version if info else "", deadline)
        beats = asyncio.create_task(_beats(ctx, deadline))
        passing = _Passing(ctx, beats)
        deadline.follow(passing.step)
        try:
            with anyio.move_on_after(deadline.seconds + _GRACE):
                async with places.turns.turn(peer.waiting if places is self._waiting else peer.share):
                    found = await anyio.to_thread.run_sync(
                        lambda: work(calling), abandon_on_cancel=True, limiter=places.threads
                    )
                await passing.told()
                return found
        finally:
            beats.cancel()
        # The thread is in something that looks at no deadline, a disk that hangs for one.
        deadline.cancel()
        raise DeadlineExceeded(
            f"the call took longer than its deadline of {deadline.seconds:g} s and did not stop",
            hint="A change may still happen. Look before you try again; saving the same text twice keeps one note.",
        )


class _Passing:
    """Passes on the progress that the work itself counts, in its order, in place of seconds."""

    def __init__(self, ctx: ServerRequestContext[Any, Any], beats: asyncio.Task[None]) -> None:
        self._ctx = ctx
        self._beats = beats
        self._loop = asyncio.get_running_loop()
        self._steps: deque[tuple[float, float | None, str | None]] = deque(maxlen=_STEPS)
        self._telling: asyncio.Task[None] | None = None

    def step(self, done: float, total: float | None, words: str | None) -> None:
        """Tell the client soon. For whatever thread."""
        with suppress(RuntimeError):
            self._loop.call_soon_threadsafe(self._begin, done, total, words)

    async def told(self) -> None:
        """Return when all is told: a client hears of no progress after the answer."""
        if self._telling is not None:
            await asyncio.wait({self._telling}, timeout=_LAST_TOLD)

    def _begin(self, done: float, total: float | None, words: str | None) -> None:
        # Two counts must not mix: the client is promised rising numbers.
        self._beats.cancel()
        self._steps.append((done, total, words))
        if self._telling is None or self._telling.done():
            self._telling = self._loop.create_task(self._tell())

    async def _tell(self) -> None:
        while self._steps:
            done, total, words = self._steps.popleft()
            # The client may be gone, which ends its call by itself.
            with suppress(Exception):
                await self._ctx.session.report_progress(done, total, None if words is None else shown(words))


async def _beats(ctx: ServerRequestContext[Any, Any], deadline: Deadline) -> None:
    """Tell how the work gets on, once a second: rising seconds of its deadline, and in words what it is at."""
    while True:
        await anyio.sleep(_BEAT)
        spent = round(deadline.seconds - deadline.remaining(), 1)
        try:
            await ctx.session.report_progress(spent, deadline.seconds, deadline.doing or "working")
        except Exception:  # noqa: BLE001 - the client is gone, which ends its call by itself
            return
