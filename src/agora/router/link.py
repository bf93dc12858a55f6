"""The way to one backend: its session, started when it is needed, and what a failure means for the call."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from typing import Any, Literal

from agora.config.backends import BackendTable
from agora.errors import (
    BackendError,
    BackendProtocolError,
    BackendRefused,
    BackendTimeout,
    BackendUnavailable,
    OutcomeUnknown,
)
from agora.ports.backends import Connector, Progress, Session, SessionForgotten
from agora.ports.log import Log
from agora.router.health import Health
from agora.router.pace import Pace

Expand = Callable[[BackendTable], BackendTable]
"""Puts values for every `${VAR}`; raises ConfigError for one that is not set."""

Opened = Callable[["Link", Session], Awaitable[None]]
"""Told of each new session, on the event loop; no call is made on the session before it returns."""

Changed = Callable[["Link", str, Mapping[str, Any]], None]
"""Told of a backend's notification, on the event loop."""


State = Literal["running", "starting", "stopped"]

Check = Callable[[], Awaitable[None]]
"""Raises if a request must not be made."""


@dataclass(frozen=True, slots=True)
class _Try:
    reads: bool
    ends: float
    progress: Progress | None
    check: Check | None


@dataclass(frozen=True, slots=True)
class Answered:
    """The result of a request, the seconds it took and how often it was made."""

    result: dict[str, Any]
    seconds: float
    attempts: int


class Link:
    """Requests to one backend, each made again only where that can do no harm. Used by one event loop alone.

    The session is opened at the first request, once, however many come at the same time, and again at the next request
    after it is lost. A request is repeated if it was provably not sent, or if it only reads and got lost.
    """

    def __init__(  # noqa: PLR0913 - what there is to a backend, each by its name
        self,
        table: BackendTable,
        connector: Connector,
        *,
        expand: Expand,
        log: Log,
        opened: Opened | None = None,
        changed: Changed = lambda *_: None,
        monotonic: Callable[[], float] = time.monotonic,
    ) -> None:
        self.table = table
        self._connector = connector
        self._expand = expand
        self._log = log
        self._opened = opened
        self._changed = changed
        self._monotonic = monotonic
        self.health = Health(table.name, monotonic)
        self._session: Session | None = None
        self._opening: asyncio.Task[Session] | None = None
        self._closed = False
        self._limits(table)
        self.running = 0

    def _limits(self, table: BackendTable) -> None:
        self._pace = Pace(table.name, table.rate, self._monotonic)
        self._places = asyncio.Semaphore(table.concurrency)

    @property
    def session(self) -> Session | None:
        """The session, while it lives."""
        return self._session if self._session is not None and self._session.alive else None

    @property
    def state(self) -> State:
        """What the session is at."""
        if self.session is not None:
            return "running"
        return "stopped" if self._opening is None else "starting"

    async def replace(self, table: BackendTable, *, restart: bool) -> None:
        """Go on with another table; `restart` ends the session, because it is another program now."""
        self.table = table
        self._limits(table)
        self.health.forgive()
        if restart:
            await self._end()

    async def request(
        self,
        method: str,
        params: Mapping[str, Any],
        *,
        reads: bool,
        seconds: float,
        progress: Progress | None = None,
        check: Check | None = None,
    ) -> Answered:
        """The result of one request, made again where that can do no harm.

        `reads`: that it changes nothing. `seconds` bounds all of it, waiting for its turn included. `check` is called
        before each try, once the session is open, and may raise to prevent it.

        Raises: BackendUnavailable, BackendTimeout, BackendRefused, BackendProtocolError; OutcomeUnknown for what may
        have changed something; RateLimited; ConfigError for a variable that is not set.
        """
        began = self._monotonic()
        ends = began + seconds
        await self._pace.wait(seconds)
        # Given back where it was taken: a changed table brings others.
        places = self._places
        try:
            async with asyncio.timeout(max(0.001, ends - self._monotonic())):
                await places.acquire()
        except TimeoutError:
            raise BackendUnavailable(
                self.table.name,
                f"all of its {self.table.concurrency} places were taken for {seconds:g} s",
                hint="Try again, or raise `concurrency` in its table.",
            ) from None
        self.running += 1
        try:
            return await self._tried(method, params, _Try(reads, ends, progress, check))
        finally:
            self.running -= 1
            places.release()

    async def _tried(self, method: str, params: Mapping[str, Any], given: _Try) -> Answered:
        attempt, renewed = 0, False
        while True:
            attempt += 1
            admitted = self.health.admit()
            try:
                result, seconds = await self._once(method, params, given, admitted)
            except BackendRefused:
                self.health.succeeded()
                raise
            except BackendError as error:
                if isinstance(error, SessionForgotten) and not renewed:
                    # It has answered, so nothing is wrong with it; but a new session at every turn is no use.
                    self.health.let_go(admitted)
                    renewed, attempt = True, attempt - 1
                    continue
                self.health.failed(error.message, admitted)
                await self._end_if_hung()
                pause = self.table.retry_delay * 2.0 ** (attempt - 1)
                left = attempt <= self.table.max_retries and self._monotonic() + pause < given.ends
                if not left or not self._may_repeat(error, given.reads):
                    raise self._as_told(error, given.reads) from error
                self._log.info("backend asked again", backend=self.table.name, method=method, code=error.code)
                # What was lost is often back at once, as a server that was restarted; what fails again takes longer.
                await asyncio.sleep(pause if attempt > 1 else 0.0)
            except BaseException:
                self.health.let_go(admitted)
                raise
            else:
                self.health.succeeded(seconds)
                return Answered(result, seconds, attempt)

    async def _once(
        self, method: str, params: Mapping[str, Any], given: _Try, admitted: int
    ) -> tuple[dict[str, Any], float]:
        """The result, and the seconds that the backend took for it."""
        session = await self._open(admitted)
        if given.check is not None:
            await given.check()
        left = min(self.table.timeout, given.ends - self._monotonic())
        if left <= 0:
            raise _NotStarted(self.table.name, "took so long to start that no time is left for the call")
        began = self._monotonic()
        result = await session.request(method, params, seconds=left, progress=given.progress)
        return result, self._monotonic() - began

    async def _end_if_hung(self) -> None:
        """End a session that answers nothing: the next try gets a new one."""
        if self.health.state == "dead" and self.running <= 1 and self._opening is None:
            await self._end()

    @staticmethod
    def _as_told(error: BackendError, reads: bool) -> BackendError:
        if isinstance(error, BackendTimeout) and not reads:
            return OutcomeUnknown(error.backend, error.reason)
        return error

    def _may_repeat(self, error: BackendError, reads: bool) -> bool:
        if isinstance(error, OutcomeUnknown):
            return reads
        # A program that does not start will not the next moment either; an address may be back.
        return isinstance(error, BackendUnavailable) and not isinstance(error, _NotStarted)

    async def _open(self, admitted: int) -> Session:
        if (session := self.session) is not None:
            return session
        if self._closed:
            raise BackendUnavailable(self.table.name, "it was taken out of the configuration", hint="")
        if self._opening is None:
            self._opening = asyncio.get_running_loop().create_task(self._opened_session(admitted))
            self._opening.add_done_callback(lambda done: done.cancelled() or done.exception())
        opening, task = self._opening, asyncio.current_task()
        try:
            # A caller that gives up does not end what others wait for.
            return await asyncio.shield(opening)
        except asyncio.CancelledError:
            if opening.cancelled() and not (task and task.cancelling()):
                raise BackendUnavailable(self.table.name, "it was ended while it started") from None
            raise

    async def _opened_session(self, admitted: int) -> Session:
        table, began = self.table, self._monotonic()
        try:
            if self._session is not None:
                lost, self._session = self._session, None
                await lost.close()
            session = await self._connector.connect(
                self._expand(table), lambda method, params: self._changed(self, method, params)
            )
            await self._met(session)
        except BackendRefused:
            raise
        except BackendError as error:
            # Counted here: whoever waited for it may have given up long before.
            self.health.failed(error.message, admitted)
            if isinstance(error, BackendProtocolError):
                raise
            told = self._not_opened(error)
            if told is error:
                raise
            raise told from error
        finally:
            self._opening = None
        self._session = session
        self._log.info(
            "backend started",
            backend=table.name,
            protocol=session.server.protocol,
            seconds=round(self._monotonic() - began, 3),
        )
        return session

    def _not_opened(self, error: BackendError) -> BackendUnavailable:
        """What became of a start is known of the call that needs it: it was not sent."""
        again = self.table.transport == "http" and not isinstance(error, BackendTimeout)
        if again and isinstance(error, BackendUnavailable):
            return error
        kind = BackendUnavailable if again else _NotStarted
        hint = None if isinstance(error, OutcomeUnknown) else error.hint
        return kind(self.table.name, error.reason, hint=hint)

    async def _met(self, session: Session) -> None:
        if self._opened is None:
            return
        try:
            await self._opened(self, session)
        except BaseException:
            await session.close()
            raise

    async def ready(self) -> Session:
        """The open session, started if it has to be; whoever waits is not counted as a call.

        Raises: as `request`.
        """
        if (session := self.session) is not None:
            return session
        admitted = self.health.admit()
        try:
            session = await self._open(admitted)
        except BackendError as error:
            self.health.failed(error.message, admitted)
            raise
        except BaseException:
            self.health.let_go(admitted)
            raise
        self.health.succeeded()
        return session

    async def close(self) -> None:
        """End the session; later requests are refused."""
        self._closed = True
        await self._end()

    async def _end(self) -> None:
        if (opening := self._opening) is not None:
            opening.cancel()
            await asyncio.wait({opening})
        session, self._session = self._session, None
        if session is not None:
            await session.close()

    def details(self) -> dict[str, Any]:
        """State of the session and of the backend, as plain data."""
        session = self.session
        found: dict[str, Any] = {"state": self.state, **self.health.details(), "running_calls": self.running}
        if session is not None:
            server = session.server
            found["server"] = {"name": server.name, "version": server.version, "protocol": server.protocol}
        return found


class _NotStarted(BackendUnavailable):
    """The session could not be opened, and trying again at once would not help."""
