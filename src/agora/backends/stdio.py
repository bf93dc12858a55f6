"""The channel to a backend that is a process of Agora's own and speaks over its standard streams."""

from __future__ import annotations

import asyncio
import json
import sys
from collections.abc import Callable, Mapping
from typing import Any

from agora.backends.environment import command_line, of_this_system
from agora.backends.guard import GUARD, Guard
from agora.backends.output import Deliver, Errors, Output
from agora.backends.pipes import PipeWriter, TransportWriter, Writer
from agora.backends.process import Child, ended, start
from agora.backends.words import LAST_WORDS, Cleaner, Skipped, Tail
from agora.config.backends import BackendTable
from agora.errors import BackendUnavailable, InvalidInput, OutcomeUnknown
from agora.redaction.redactor import Redactor

LINE_BYTES = 64 * 1024 * 1024
"""Longest message of a backend. Four times what Agora takes from a client: pictures come from tools."""

_SETTLE = 0.25
"""Seconds in which the rest of what a child wrote, and its exit status, come after the first sign of its end."""
_SETTLE_AT_MOST = 10.0
"""Seconds after which it is over though there is still something to read: what it started may write on and on."""

_CLOSED = "it was closed"


class StdioChannel:
    """Implements `agora.backends.channel.Channel`: one process, from `open` to its end or `close`, and not again.

    Whichever comes first, the end of the process, of its output or of its input, `lost` is told once everything that
    was written is delivered; then the process is ended with all that it started.
    """

    def __init__(
        self,
        backend: BackendTable,
        *,
        guard: Guard = GUARD,
        redactor: Redactor | None = None,
        line_bytes: int = LINE_BYTES,
    ) -> None:
        self._backend = backend
        self._guard = guard
        self._limit = line_bytes
        cleaner = Cleaner(redactor or Redactor(), dict(backend.env), backend.args)
        self._tail = Tail(cleaner)
        self._skipped = Skipped(cleaner)
        self._turn = asyncio.Lock()
        self._starting: asyncio.Task[None] | None = None
        self._link: _Link | None = None
        self._life: asyncio.Task[None] | None = None
        self._why = "its process was not started"

    async def open(self, deliver: Deliver, lost: Callable[[str], None]) -> None:
        """As `Channel.open`: returns when the process runs, which says nothing of how it goes on."""
        assert self._starting is None, "a channel is opened once"
        self._starting = asyncio.create_task(self._start(deliver, lost), name=f"start of {self._backend.name}")
        # What has begun to start is not left half started: `close` ends it.
        await asyncio.shield(self._starting)

    async def send(self, message: dict[str, Any]) -> None:
        """As `Channel.send`.

        Cancelled in the middle of a message, it ends the process: after half a message nothing makes sense.
        """
        data = _encoded(message)
        async with self._turn:
            link = self._link
            if link is None or not link.alive:
                raise BackendUnavailable(self._backend.name, self._why)
            try:
                await link.writer.write(data)
            except OSError:
                link.give_up("it has closed its standard input")
                if link.writer.cut:
                    raise OutcomeUnknown(self._backend.name, "it went away while a message was sent") from None
                raise BackendUnavailable(self._backend.name, "it has closed its standard input") from None
            except asyncio.CancelledError:
                if link.writer.cut:
                    link.give_up("it did not read a message to its end")
                raise

    def negotiated(self, protocol: str) -> None:
        """As `Channel.negotiated`: a stream is the same in all revisions."""

    @property
    def pid(self) -> int | None:
        """The number of its process; None before there is one."""
        return None if self._link is None else self._link.child.pid

    @property
    def alive(self) -> bool:
        """As `Channel.alive`."""
        return self._link is not None and self._link.alive

    @property
    def skipped(self) -> int:
        """Lines on standard output that were no message."""
        return self._skipped.count

    @property
    def last_words(self) -> str:
        """As `Channel.last_words`; and what stood on standard output that was no message."""
        skipped = self._skipped.text()
        words = self._tail.text(LAST_WORDS - len(skipped) - 1)
        return f"{words}\n{skipped}".strip()

    async def close(self) -> None:
        """As `Channel.close`."""
        if self._starting is None:
            return
        # All of it goes on also when whoever closes it waits no longer.
        await asyncio.wait({self._starting})
        if self._link is not None and self._life is not None:
            self._link.give_up(_CLOSED)
            self._link.writer.close()
            await asyncio.shield(self._life)

    async def _start(self, deliver: Deliver, lost: Callable[[str], None]) -> None:
        table = self._backend
        env = of_this_system(dict(table.env))
        loop = asyncio.get_running_loop()

        def begin() -> Child:
            # Looking for a program and starting it read from the disk.
            command = command_line(table, env)
            return Child(*start(table.name, command, env, table.cwd, self._guard), loop)

        child = await loop.run_in_executor(None, begin)
        self._link = await _Link.joined(child, Output(deliver, self._skipped, self._limit), Errors(self._tail))
        self._why = "its process has ended"
        self._life = asyncio.create_task(self._live(self._link, lost), name=f"backend {table.name}")

    async def _live(self, link: _Link, lost: Callable[[str], None]) -> None:
        reason = await link.over()
        line = "" if reason == _CLOSED else self._tail.last_line()
        self._why = f"{reason} (last words: {line})" if line else reason
        # A message that is being written fails by itself first: it knows how much of it was sent.
        link.writer.close()
        await asyncio.sleep(0)
        try:
            lost(self._why)
        finally:
            await link.child.end()
            link.close()


class _Link:
    """The process and the three streams of an open channel."""

    def __init__(self, child: Child, output: Output, errors: Errors, writer: Writer) -> None:
        self.child = child
        self.writer = writer
        self._output = output
        self._errors = errors
        self._given_up: asyncio.Future[str] = asyncio.get_running_loop().create_future()

    @classmethod
    async def joined(cls, child: Child, output: Output, errors: Errors) -> _Link:
        loop = asyncio.get_running_loop()
        await loop.connect_read_pipe(lambda: output, child.stdout)
        await loop.connect_read_pipe(lambda: errors, child.stderr)
        windows = sys.platform == "win32"
        writer: Writer = await TransportWriter.connected(child.stdin) if windows else PipeWriter(child.stdin)
        return cls(child, output, errors, writer)

    @property
    def alive(self) -> bool:
        signs: tuple[asyncio.Future[Any], ...] = (self.child.exited, self._output.ended, self._given_up)
        return not any(sign.done() for sign in signs)

    def give_up(self, reason: str) -> None:
        if not self._given_up.done():
            self._given_up.set_result(reason)

    async def over(self) -> str:
        """Why it is over, once it is and all that was written is delivered."""
        exited, output, given_up = self.child.exited, self._output.ended, self._given_up
        signs: set[asyncio.Future[Any]] = {exited, output, given_up}
        await asyncio.wait(signs, return_when=asyncio.FIRST_COMPLETED)
        if given_up.done() and given_up.result() == _CLOSED:
            # Nobody listens, and what it still writes as it ends must not hold it up.
            self._output.mute()
            return _CLOSED
        await self._settled()
        # Something that it started may hold the stream open.
        self._output.close()
        await output
        reason = given_up.result() if given_up.done() else "it has closed its standard output"
        return ended(exited.result()) if exited.done() else reason

    async def _settled(self) -> None:
        """Wait for what is still in the pipes; what is being read may take longer than there would be quiet."""
        rest: set[asyncio.Future[Any]] = {self.child.exited, self._output.ended, self._errors.ended}
        loop = asyncio.get_running_loop()
        until, busy = loop.time() + _SETTLE_AT_MOST, True
        while busy and loop.time() < until:
            busy = self._output.busy
            await asyncio.wait(rest, timeout=_SETTLE)
            busy = busy or self._output.busy

    def close(self) -> None:
        self.writer.close()
        self._output.close()
        self._errors.close()


def _encoded(message: Mapping[str, Any]) -> bytes:
    # ASCII alone: some programs on Windows read their input in another encoding than UTF-8.
    try:
        return json.dumps(message, separators=(",", ":"), allow_nan=False).encode("ascii") + b"\n"
    except (ValueError, TypeError, RecursionError) as problem:
        raise InvalidInput("arguments", f"cannot be written as JSON: {problem}") from None
