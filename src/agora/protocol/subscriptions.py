"""Who wants to know of which change, in both protocol eras."""

from __future__ import annotations

import asyncio
import threading
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from typing import Any

import anyio
import anyio.to_thread
import mcp_types as types
from mcp.server.context import ServerRequestContext
from mcp.server.session import ServerSession
from mcp.server.subscriptions import InMemorySubscriptionBus, ListenHandler
from mcp.shared.exceptions import MCPError
from mcp.shared.subscriptions import (
    PromptsListChanged,
    ResourcesListChanged,
    ResourceUpdated,
    ServerEvent,
    ToolsListChanged,
)
from mcp_types.version import MODERN_PROTOCOL_VERSIONS

from agora.errors import AgoraError
from agora.memory.access import require
from agora.memory.watching import Watch
from agora.model.browse import Event
from agora.model.caller import SHARED
from agora.ports.log import Log
from agora.protocol.context import Connection
from agora.protocol.errors import protocol_error
from agora.protocol.resources.resources import ResourceNotFound
from agora.protocol.resources.table import Asked, parse

_STREAMS = 64
"""Streams of changes that one client may have open."""

RESOURCES = 100 * _STREAMS
"""Resources that one client may subscribe to, on all streams together: each change is held against each of them, in the
loop that serves everybody."""

_LISTED = {"save", "withdraw", "supersede", "settle", "forget", "restore", "expire", "purge", "replaced"}
"""Changes after which the list of resources is another one."""

FACT = "f_"
"""How ids of facts begin."""

_OTHERS = frozenset({"tools", "backends", "offers"})
"""What the watch says of other servers; each client is told of its own part of it."""

Context = ServerRequestContext[Any, Any]

Marks = Callable[[Connection], Mapping[str, object]]
"""Gives something for `tools`, `backends`, `resources`, `prompts` that is equal as long as a client sees the same."""


class Subscriptions:
    """The subscriptions of one client. Used by the event loop alone; the watch calls in from its own thread.

    Nothing is watched before the client asks for something that may change.
    """

    def __init__(self, connection: Connection, watch: Watch, marks: Marks, log: Log) -> None:
        """`watch` tells of changes of the store and, beside it, of prompts and of other servers.

        What it says of these is told as far as the `marks` of this client have become others.
        """
        self._marks = marks
        self._seen: dict[str, object] = {}
        self._beginning: asyncio.Task[None] | None = None
        self._connection = connection
        self._watch = watch
        self._log = log
        self._starting = anyio.Lock()
        self._closed = False
        self._bus = InMemorySubscriptionBus()
        self._listen = ListenHandler(self._bus, max_subscriptions=_STREAMS)
        self._uris: Counter[str] = Counter()
        self._session: ServerSession | None = None
        self._hears: set[type[ServerEvent]] = set()
        """Of which lists a client of the handshake era hears: who has never asked for one is not disturbed."""
        self._subscribed: set[str] = set()
        self._stop: Callable[[], None] | None = None
        self._telling: set[asyncio.Task[None]] = set()

    async def listen(
        self, ctx: Context, params: types.SubscriptionsListenRequestParams
    ) -> types.SubscriptionsListenResult:
        """Serve one `subscriptions/listen` stream until the client ends it."""
        uris = list(params.notifications.resource_subscriptions or ())
        _require_room(self._uris.total() + len(uris))
        for uri in uris:
            self._known(uri, ctx)
        await self._watched(ctx)
        self._uris.update(uris)
        try:
            return await self._listen(ctx, params)
        finally:
            self._uris.subtract(uris)
            self._uris += Counter()

    async def subscribe(self, ctx: Context, params: types.SubscribeRequestParams) -> types.EmptyResult:
        """Answer `resources/subscribe` of the handshake era."""
        uri = str(params.uri)
        self._known(uri, ctx)
        _require_room(len(self._subscribed | {uri}))
        await self.seen(ctx)
        self._subscribed.add(uri)
        return types.EmptyResult()

    async def unsubscribe(self, ctx: Context, params: types.UnsubscribeRequestParams) -> types.EmptyResult:
        """Answer `resources/unsubscribe`; one that was never made is no mistake."""
        del ctx
        self._subscribed.discard(str(params.uri))
        return types.EmptyResult()

    async def seen(self, ctx: Context) -> None:
        """A client of the handshake era has asked for something of which it wants to hear changes."""
        if ctx.protocol_version not in MODERN_PROTOCOL_VERSIONS:
            self._session = ctx.session
            self._hears |= {ResourcesListChanged, PromptsListChanged}
            await self._watched(ctx)

    def listed_tools(self, ctx: Context) -> None:
        """A client of the handshake era has got the list of tools and wants to hear when it changes.

        It waits for nothing: what is watched may have to be opened first, and is, in the background.
        """
        if ctx.protocol_version in MODERN_PROTOCOL_VERSIONS:
            return
        self._session = ctx.session
        self._hears.add(ToolsListChanged)
        if self._stop is None and self._beginning is None:
            self._beginning = asyncio.get_running_loop().create_task(self._begin(ctx))

    def sees(self, kind: str, mark: object) -> None:
        """The client is getting this of that kind now: only what becomes another is news to it."""
        self._seen[kind] = mark

    def close(self) -> None:
        """Tell of nothing any more."""
        self._closed = True
        self._listen.close()
        if self._stop is not None:
            self._stop()
            self._stop = None
        self._session = None

    async def _watched(self, ctx: Context) -> None:
        # What this program may hear of depends on what it calls itself too.
        self._connection.caller(client_of(ctx))
        try:
            await self._watching()
        except AgoraError as error:
            raise protocol_error(error, ctx.protocol_version) from error

    async def _begin(self, ctx: Context) -> None:
        self._connection.caller(client_of(ctx))
        try:
            await self._watching()
        except AgoraError as error:
            # Nobody waits for it. Whoever lists tools again has it tried again.
            self._log.debug("changes are not watched", code=error.code)
        finally:
            self._beginning = None

    async def _watching(self) -> None:
        """Return once changes are told.

        Raises: StoreUnavailable.
        """
        loop, given_up = asyncio.get_running_loop(), threading.Event()

        def told(events: tuple[Event, ...], changed: frozenset[str]) -> None:
            # The loop may be closed already, at the very end.
            with suppress(RuntimeError):
                loop.call_soon_threadsafe(self._take, events, self._others(changed))

        def subscribe() -> tuple[Callable[[], None], frozenset[str]]:
            stop = self._watch.subscribe(told, self._connection.listener)
            if given_up.is_set():
                stop()
            # What became another between what the client has seen last and now.
            return stop, self._others(_OTHERS)

        async with self._starting:
            if self._stop is not None:
                return
            # It reads the store, which may have to be opened first.
            try:
                self._stop, missed = await anyio.to_thread.run_sync(subscribe, abandon_on_cancel=True)
            except BaseException:
                given_up.set()
                raise
            if self._closed:
                # The client went while the store was opened: `close` has found nothing to stop.
                self.close()
            elif missed:
                self._take((), missed)

    def _others(self, changed: frozenset[str]) -> frozenset[str]:
        """What of `changed` is another for this client too. In the watch's thread."""
        if not changed & _OTHERS:
            return changed
        marks = self._marks(self._connection)
        news = {kind for kind, mark in marks.items() if self._seen.get(kind, mark) != mark}
        self._seen |= marks
        return changed - _OTHERS | news

    def _known(self, uri: str, ctx: Context) -> None:
        """Return if there can be such a resource; a namespace that it names is reached from now on, as by a call.

        Raises: MCPError.
        """
        try:
            asked = parse(uri)
            if asked is None:
                raise ResourceNotFound(uri)
            caller = self._connection.caller(client_of(ctx), namespace=_namespace(asked))
            require(caller, caller.scope.visible() if _namespace(asked) is None else (caller.scope.own,))
        except AgoraError as error:
            raise protocol_error(error, ctx.protocol_version) from error

    def _take(self, events: tuple[Event, ...], changed: frozenset[str]) -> None:
        news: list[ServerEvent] = [ResourceUpdated(uri) for uri in self._touched(events, changed)]
        if "resources" in changed or any(event.operation in _LISTED for event in events):
            news.insert(0, ResourcesListChanged())
        if "prompts" in changed:
            news.insert(0, PromptsListChanged())
        if "tools" in changed:
            news.insert(0, ToolsListChanged())
        if news:
            task = asyncio.get_running_loop().create_task(self._tell(news))
            self._telling.add(task)
            task.add_done_callback(self._telling.discard)

    def _touched(self, events: Iterable[Event], changed: frozenset[str]) -> list[str]:
        events = list(events)
        backends = "backends" in changed
        own = self._connection.namespace
        return sorted(
            uri
            for uri in {*self._uris, *self._subscribed}
            if (asked := parse(uri)) is not None
            and (
                (backends and asked.kind.name in {"backends", "status"})
                or any(_concerns(asked, event, own) for event in events)
            )
        )

    async def _tell(self, news: list[ServerEvent]) -> None:
        for event in news:
            await self._bus.publish(event)
        session = self._session
        if session is None:
            return
        try:
            for event in news:
                if isinstance(event, ResourceUpdated):
                    if event.uri in self._subscribed:
                        await session.send_resource_updated(event.uri)
                elif type(event) not in self._hears:
                    continue
                elif isinstance(event, ResourcesListChanged):
                    await session.send_notification(types.ResourceListChangedNotification())
                elif isinstance(event, ToolsListChanged):
                    await session.send_notification(types.ToolListChangedNotification())
                else:
                    await session.send_notification(types.PromptListChangedNotification())
        except Exception as error:  # noqa: BLE001 - the outermost loop of a task; the client may be gone
            self._log.debug("a change could not be told", error=repr(error))


def _require_room(wanted: int) -> None:
    if wanted > RESOURCES:
        raise MCPError(code=types.INVALID_PARAMS, message=f"More than {RESOURCES} subscriptions")


def client_of(ctx: ServerRequestContext[Any, Any]) -> str:
    """What the program that sent a request calls itself; empty if it did not say."""
    params = ctx.session.client_params
    info = params.client_info if params else None
    return info.name if info else ""


def _namespace(asked: Asked) -> str | None:
    return asked.value if asked.kind.name == "namespaces" else asked.options.get("namespace")


def _concerns(asked: Asked, event: Event, own: str) -> bool:
    """Whether a change may have made the resource another. Rather once too often: who is told reads it again."""
    if event.namespace is None:
        return True
    value, asked_for = asked.value, _namespace(asked)
    # Whose note it is that another agent hides or replaces, the journal's row does not say.
    other = event.operation != "save"
    concerned = {
        "notes": event.id == value,
        "agents": other or event.agent == value,
        "sessions": other or event.session == value,
        "namespaces": event.namespace == value,
        "search": event.namespace in ({asked_for} if asked_for else {own, SHARED}),
        "changes": event.namespace in {own, SHARED},
        # Of whom it is, the journal's row does not say.
        "facts": event.namespace in {own, SHARED} and (event.id or "").startswith(FACT),
        "status": True,
    }
    return concerned.get(asked.kind.name, False)
