"""The backends of the configuration: the way to each, and what its tools are."""

from __future__ import annotations

import asyncio
import difflib
import threading
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from functools import partial
from typing import Any, Protocol

from agora.config.backends import BackendTable
from agora.errors import AgoraError, BackendNotFound, BackendUnavailable, ToolNotFound, ToolQuarantined
from agora.model.backend import ToolDefinition
from agora.model.deadline import Deadline
from agora.model.pins import Pinned
from agora.ports.backends import Connector, Session
from agora.ports.log import Log
from agora.router import listing
from agora.router.link import Expand, Link
from agora.router.loop import LoopThread
from agora.router.offering import CHANGED, Offered, Offers, Rows

Allowed = Callable[[str], bool]
"""Whether a caller may use the backend of that name."""

LOOK_SECONDS = 2.0
"""Seconds between two looks for what a person has approved, where nobody makes a call meanwhile."""

LIST_SECONDS = 15.0
"""Seconds that one page of a backend's list of tools may take."""


class Pins(Protocol):
    """What every backend's tools were when a person, or the first sight, approved them. Thread-safe, blocking."""

    def known(self, backend: str, identity: str) -> Pinned | None:
        """What is known of that backend's tools; None if it was never seen."""
        ...

    def seen(self, backend: str, identity: str, definitions: Iterable[ToolDefinition]) -> Pinned:
        """Compare what a backend lists now with what is known, and remember it."""
        ...


class Tables(Protocol):
    """Where the tables of backends come from."""

    def poll(self) -> tuple[BackendTable, ...] | None:
        """The tables, if they may have changed since they were last asked for; None if they have not."""
        ...

    @property
    def trouble(self) -> dict[str, Any] | None:
        """Why the newest version of them cannot be used, if so; the last one that could goes on."""
        ...


class Backend:
    """One backend: its table, the way to it and its tools. The tools are replaced as a whole, from the event loop."""

    def __init__(self, table: BackendTable, identity: str, link: Link) -> None:
        self.table = table
        self.identity = identity
        self.link = link
        self.tools: Pinned | None = None
        """None until it was seen once, in this process or before."""
        self.relisting: asyncio.Task[None] | None = None
        self.changed_again = False
        self.offers = Offers()
        """Its lists of resources and prompts."""
        self.trouble: str | None = None
        """Why its list of tools could not be read when that was last tried."""

    def tool(self, name: str) -> ToolDefinition:
        """The tool of that name, as it was approved.

        Raises: ToolQuarantined, ToolNotFound.
        """
        tools = self.tools or Pinned({})
        if name in tools.quarantined:
            raise ToolQuarantined(f"{self.table.name}: the tool {name!r} is not what it was when it was approved")
        if name not in tools.approved:
            near = difflib.get_close_matches(name, tools.approved, 1)
            some = ", ".join(sorted(tools.approved)[:10]) or "none"
            raise ToolNotFound(
                f"{self.table.name} has no tool {name[:100]!r}",
                hint=f"Did you mean {near[0]}?" if near else f"Its tools: {some}.",
            )
        return tools.approved[name]


def named(name: str, backends: Iterable[Backend]) -> Backend | None:
    """The one of that name, in any case; None if there is none."""
    wanted = name.strip().casefold()
    return next((each for each in backends if each.table.name.casefold() == wanted), None)


class Registry:
    """Every backend by name. Thread-safe; sessions live on the loop alone."""

    def __init__(  # noqa: PLR0913 - the parts it is made of
        self,
        tables: Tables,
        connector: Connector,
        pins: Pins,
        loop: LoopThread,
        log: Log,
        *,
        expand: Expand,
        identity: Callable[[BackendTable], str],
    ) -> None:
        self._tables = tables
        self._connector = connector
        self._pins = pins
        self._loop = loop
        self._log = log
        self._expand = expand
        self._identity = identity
        self._lock = threading.Lock()
        self._polling = threading.Lock()
        self._backends: dict[str, Backend] = {}
        self._due: tuple[BackendTable, ...] | None = None
        """Tables that are not taken up yet: the store may not have been there when they came."""
        self.version = 0
        """Grows with every change of backends and of their tools."""
        self._looked = 0.0

    def all(self) -> list[Backend]:
        """The backends as the configuration has them now, in its order."""
        found = self._polled()
        for backend in found:
            self.look_again(backend)
        return found

    def glance(self) -> list[Backend]:
        """As `all`, for who asks several times a second; what a person approves shows within `LOOK_SECONDS`."""
        now = time.monotonic()
        if now - self._looked < LOOK_SECONDS:
            return self._polled()
        self._looked = now
        return self.all()

    def _polled(self) -> list[Backend]:
        # One after the other, or an older version of the tables could be taken after a newer one.
        with self._polling:
            tables = self._tables.poll()
            with self._lock:
                self._due = self._due if tables is None else tables
                if self._due is not None:
                    self._take(self._due)
                    self._due = None
                return list(self._backends.values())

    def usable(self, allowed: Allowed) -> list[Backend]:
        """Those of `all` that the caller may use."""
        return [each for each in self.all() if allowed(each.table.name)]

    def get(self, name: str, allowed: Allowed) -> Backend:
        """The backend of that name, in any case, of those that the caller may use.

        Raises: BackendNotFound.
        """
        mine = self.usable(allowed)
        found = named(name, mine)
        if found is None:
            names = [each.table.name for each in mine]
            near = difflib.get_close_matches(name, names, 1)
            raise BackendNotFound(
                f"there is no backend {name[:100]!r}",
                hint=f"Did you mean {near[0]}?" if near else _there_are(names),
            )
        return found

    def learn(self, backends: Iterable[Backend], seconds: float, deadline: Deadline) -> dict[str, AgoraError]:
        """Start those whose tools were never seen, all at once, and read their lists; what failed, by name.

        One that takes longer than `seconds` goes on starting, and counts as failed until it is there.
        """
        unseen = [each for each in backends if each.tools is None]
        if not unseen:
            return {}

        async def ready(backend: Backend) -> AgoraError | None:
            try:
                async with asyncio.timeout(seconds):
                    await backend.link.ready()
            except TimeoutError:
                return BackendUnavailable(
                    backend.table.name, f"has not started within {seconds:g} s", hint="Try again in a few seconds."
                )
            except AgoraError as error:
                return error
            return None

        async def every() -> list[AgoraError | None]:
            return await asyncio.gather(*map(ready, unseen))

        outcomes = zip(unseen, self._loop.run(every, deadline), strict=True)
        return {backend.table.name: error for backend, error in outcomes if error is not None}

    def learn_soon(self, backends: Iterable[Backend]) -> None:
        """Start those whose tools were never seen; nobody waits for it, and what fails shows in their health."""

        async def ready(backend: Backend) -> None:
            with suppress(AgoraError):
                await backend.link.ready()

        for each in backends:
            if each.tools is None:
                self._loop.soon(partial(ready, each))

    def offered(self, backends: Sequence[Backend], kind: Offered, deadline: Deadline) -> dict[str, Rows]:
        """What each of them has of that kind, all asked at once; nothing of one that does not answer soon."""
        if not backends:
            return {}

        async def every() -> list[Rows]:
            return await asyncio.gather(*(each.offers.rows(each.link, kind) for each in backends))

        names = (each.table.name for each in backends)
        return dict(zip(names, self._loop.run(every, deadline), strict=True))

    def newest(self, backend: Backend, name: str, deadline: Deadline) -> ToolDefinition:
        """The tool of that name; a backend that does not run may have got it since, and is started to be asked.

        Raises: ToolNotFound, ToolQuarantined; as `Link.ready`.
        """
        try:
            return backend.tool(name)
        except ToolNotFound:
            if backend.link.session is not None:
                raise
        self._loop.run(backend.link.ready, deadline)
        return backend.tool(name)

    async def settled(self, backend: Backend, tool: ToolDefinition) -> None:
        """Return if the tool is still what it was approved as, once every list that has changed is read.

        Raises: ToolQuarantined, ToolNotFound.
        """
        if backend.relisting is not None:
            await asyncio.shield(backend.relisting)
        now = backend.tool(tool.name)
        if now is not tool and now.digest() != tool.digest():
            raise ToolQuarantined(f"{backend.table.name}: the tool {tool.name!r} has changed a moment ago")

    async def close(self) -> None:
        """End every session."""
        with self._lock:
            backends = list(self._backends.values())
            self._backends.clear()
        await asyncio.gather(*(each.link.close() for each in backends), return_exceptions=True)

    @property
    def trouble(self) -> dict[str, Any] | None:
        """As `Tables.trouble`."""
        return self._tables.trouble

    def look_again(self, backend: Backend) -> None:
        """Take up what a person has decided meanwhile, in whatever process, of tools that are quarantined."""
        if backend.tools is None or not backend.tools.quarantined:
            return
        tools = self._pins.known(backend.table.name, backend.identity)
        if tools is not None and tools != backend.tools:
            with self._lock:
                backend.tools = tools
                self.version += 1

    def _take(self, tables: tuple[BackendTable, ...]) -> None:
        # What the store says comes first: if it cannot be asked, nothing has changed.
        known = {
            table.name: self._pins.known(table.name, self._identity(table)) for table in tables if self._new(table)
        }
        before, self._backends = self._backends, {}
        for table in tables:
            key = table.name.casefold()
            backend = before.get(key)
            if backend is None or backend.table.name != table.name:
                backend = Backend(table, self._identity(table), self._link(table))
                backend.tools = known[table.name]
            else:
                del before[key]
                if backend.table != table:
                    self._replace(backend, table, known)
            self._backends[key] = backend
        for gone in before.values():
            self._loop.soon(gone.link.close)
        self.version += 1

    def _new(self, table: BackendTable) -> bool:
        """Whether what is known of a table's tools is not at hand: another name, or another program."""
        backend = self._backends.get(table.name.casefold())
        return backend is None or backend.table.name != table.name or backend.identity != self._identity(table)

    def _replace(self, backend: Backend, table: BackendTable, known: Mapping[str, Pinned | None]) -> None:
        restart = _program(backend.table) != _program(table)
        backend.table, link = table, backend.link
        if table.name in known:
            backend.identity = self._identity(table)
            backend.tools = known[table.name]
        self._loop.soon(lambda: link.replace(table, restart=restart))

    def _link(self, table: BackendTable) -> Link:
        return Link(
            table,
            self._connector,
            expand=self._expand,
            log=self._log,
            opened=self._opened,
            changed=self._changed,
        )

    def _of(self, link: Link) -> Backend | None:
        with self._lock:
            return next((each for each in self._backends.values() if each.link is link), None)

    async def _opened(self, link: Link, session: Session) -> None:
        if (backend := self._of(link)) is not None:
            await self._list(backend, session)

    async def _list(self, backend: Backend, session: Session) -> None:
        name = backend.table.name
        found = await listing.tools(name, session, LIST_SECONDS)
        tools = await asyncio.to_thread(self._pins.seen, name, backend.identity, found)
        backend.trouble = None
        if tools != backend.tools:
            backend.tools = tools
            with self._lock:
                self.version += 1
            self._log.info("tools listed", backend=name, tools=len(tools.approved), quarantined=len(tools.quarantined))

    def _changed(self, link: Link, method: str, params: Mapping[str, Any]) -> None:
        del params
        backend, session = self._of(link), link.session
        if backend is not None and method in CHANGED:
            backend.offers.forget(CHANGED[method])
        if method != "notifications/tools/list_changed" or backend is None or session is None:
            return
        if backend.relisting is not None:
            # However often it says so: one list is read, and one more after it.
            backend.changed_again = True
            return

        async def relist() -> None:
            try:
                backend.changed_again = True
                while backend.changed_again:
                    backend.changed_again = False
                    await self._list(backend, session)
            except AgoraError as error:
                backend.trouble = error.message
                self._log.warning("tools were not listed", backend=backend.table.name, code=error.code)
            finally:
                backend.relisting = None

        backend.relisting = asyncio.get_running_loop().create_task(relist())


def _there_are(names: list[str]) -> str:
    if names:
        return f"There are: {', '.join(names)}."
    return "There is none for you: agora.toml has them as `[[backends]]`, and `backends` of its [[access]] gives them."


def _program(table: BackendTable) -> tuple[object, ...]:
    """What a session depends on: with any of it changed it is started anew."""
    return (
        *(table.transport, table.command, table.args, table.cwd, table.env),
        *(table.url, table.headers, table.bearer_token),
    )
