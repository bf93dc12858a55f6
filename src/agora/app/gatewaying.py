"""The gateway to other MCP servers, put together as the settings want it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from agora.app.tables import Reach
from agora.backends.connecting import McpConnector
from agora.cache.backend_reads import BackendReads
from agora.config.backend_expanding import expanded
from agora.config.backends import BackendTable, identity
from agora.config.settings import Settings
from agora.memory.access import GuardedResults
from agora.ports.clock import Clock
from agora.ports.encoder import Encoder
from agora.ports.log import Log
from agora.protocol.redacting import Guard
from agora.router.choosing import MeaningChooser
from agora.router.dispatch import Dispatcher
from agora.router.gateway import Gateway
from agora.router.keeping import Keeper
from agora.router.loop import LoopThread
from agora.router.pins import Pins
from agora.router.registry import Registry
from agora.router.vectors import TextVectors

if TYPE_CHECKING:
    from agora.backends.channel import Channel
    from agora.cache.disk import Disk
    from agora.memory.notes import Notes
    from agora.stores.sqlite.store import SqliteStore


@dataclass(frozen=True, slots=True)
class Parts:
    """What the gateway shares with the memory."""

    encoder: Encoder
    disk: Disk | None
    clock: Clock
    log: Log
    guard: Guard


def make_gateway(settings: Settings, reach: Reach, store: SqliteStore, notes: Notes, parts: Parts) -> Gateway:
    """The gateway of an open store; no backend is started before it is needed."""
    loop = LoopThread("agora-backends")
    pins = Pins(lambda _: store.tool_pins(), parts.clock)
    registry = Registry(
        reach.tables,
        McpConnector(_channel),
        pins,
        loop,
        parts.log,
        expand=lambda table: expanded(table, reach.env),
        identity=identity,
    )
    keeping = Keeper(
        store.call_log(),
        GuardedResults(lambda _: store.kept_results()),
        notes,
        parts.clock,
        clean=parts.guard.kept,
        hours=settings.gateway.result_hours,
        content_bytes=settings.limits.content_bytes,
    )
    reads = BackendReads(parts.disk) if settings.cache.enabled else None
    dispatcher = Dispatcher(registry, loop, keeping, reads, parts.clock, result_bytes=settings.gateway.result_bytes)
    vectors = TextVectors(parts.encoder, store.tool_vectors())
    chooser = MeaningChooser(lambda _: vectors, settings.gateway, parts.log)
    return Gateway(registry, dispatcher, chooser, loop, keeping)


def _channel(table: BackendTable) -> Channel:
    """What carries the messages of a backend; each is imported when there is one of its kind."""
    if table.transport == "http":
        from agora.backends.http import HttpChannel  # noqa: PLC0415 - see above

        return HttpChannel(table)
    from agora.backends.stdio import StdioChannel  # noqa: PLC0415 - see above

    return StdioChannel(table)
