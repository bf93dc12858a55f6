"""One connection: lines in, frames out, whatever carries them.

`serve_connection` reads messages, answers what is malformed, and gives everything else to the SDK's server
loop of the right era (see `agora.transport.lanes`). docs/adr/0004 says why this is not the SDK's transport.
"""

from __future__ import annotations

from collections.abc import AsyncIterable, Awaitable, Callable
from functools import partial
from typing import Any

import anyio
from anyio.abc import TaskGroup
from mcp.server.lowlevel import Server
from mcp.shared.dispatcher import as_request_id
from mcp.shared.inbound import InboundLadderRejection, classify_inbound_request
from mcp.shared.message import ServerMessageMetadata, SessionMessage
from mcp_types import (
    INTERNAL_ERROR,
    INVALID_PARAMS,
    INVALID_REQUEST,
    SERVER_INFO_META_KEY,
    JSONRPCError,
    JSONRPCNotification,
    JSONRPCRequest,
    JSONRPCResponse,
)

from agora.text.lines import Line, Oversized
from agora.transport.lanes import Era, Lane
from agora.transport.messages import Ignored, Incoming, NotText, Refusal, error, has_envelope, parse
from agora.transport.options import ConnectionOptions
from agora.transport.outbound import Call, Outbound

# After the drain, handlers that were cancelled unwind and the last frames leave. Most need a millisecond.
CLOSE_SECONDS = 0.2

_IN_THREADS = frozenset(
    {
        *("tools/call", "resources/read", "resources/list", "prompts/get", "prompts/list", "completion/complete"),
        "subscriptions/listen",
    }
)
"""Requests whose work is done in threads, or which last: everything else is answered in the event loop, at once."""

_QUICK = 4
"""Requests of one client that the event loop answers before it looks at others: a flood must not hold them up."""

_DEFAULTS = ConnectionOptions()


async def serve_connection(
    server: Server[Any],
    lines: AsyncIterable[Line],
    write: Callable[[bytes], Awaitable[None]],
    *,
    stop: anyio.Event | None = None,
    options: ConnectionOptions = _DEFAULTS,
) -> None:
    """Serve one client until its input ends, `stop` is set, or it reads no more.

    `lines` yields lines without their ends. `write` takes one whole frame with its newline, returns when the
    frame is on its way, is never called twice at once, and raises `anyio.BrokenResourceError` when the
    peer is gone, which ends the connection quietly.

    Every request is answered exactly once, except those that the client cancelled. At the end, requests in
    flight have `options.drain_seconds` to answer; then they are cancelled: a `tools/call` is answered with the
    error `outcome_unknown`, and what else there is by the SDK with -32000.
    The server's lifespan is entered once per era that the client uses.
    """
    await _Connection(server, write, options).serve(lines, stop)


def _read(line: Line) -> Incoming:
    if isinstance(line, Oversized):
        reason = f"Invalid request: the line is longer than {line.limit} bytes, the limit of this server"
        return Refusal(error(None, INVALID_REQUEST, reason))
    return parse(line)


class _Connection:
    def __init__(
        self, server: Server[Any], write: Callable[[bytes], Awaitable[None]], options: ConnectionOptions
    ) -> None:
        self._server = server
        self._options = options
        self._log = options.log
        self._out = Outbound(write, options.log, options.request_prefix)
        self._lanes: dict[Era, Lane] = {}
        self._lane_over = anyio.Event()
        self._handshake_seen = False

    async def serve(self, lines: AsyncIterable[Line], stop: anyio.Event | None) -> None:
        reading = anyio.CancelScope()
        written = anyio.Event()

        async def write_all() -> None:
            await self._out.run()
            written.set()
            reading.cancel()

        async def wait_for_stop(stop: anyio.Event) -> None:
            await stop.wait()
            reading.cancel()

        async with anyio.create_task_group() as tasks:
            tasks.start_soon(write_all)
            if stop is not None:
                tasks.start_soon(wait_for_stop, stop)
            with reading:
                async for line in lines:
                    await self._take(_read(line), tasks)
            with anyio.move_on_after(self._options.drain_seconds):
                await self._out.drained()
            with anyio.move_on_after(CLOSE_SECONDS):
                await self._close_lanes()
                self._out.stream.close()
                await written.wait()
            tasks.cancel_scope.cancel()

    async def _take(self, message: Incoming, tasks: TaskGroup) -> None:
        match message:
            case JSONRPCRequest():
                await self._request(message, tasks)
            case JSONRPCNotification():
                await self._notification(message)
            case JSONRPCResponse() | JSONRPCError():
                # Only the handshake era lets a server ask its client.
                if (lane := self._lanes.get(Era.LEGACY)) is not None and (own := self._own(message)) is not None:
                    await lane.send(SessionMessage(own))
            case Refusal(answer):
                self._log.debug("refused a line with %s", answer.error.code)
                await self._out.stream.send(answer)
            case NotText():
                await self._out.stream.send(self._refuse_text(message))
            case Ignored(reason):
                self._log.debug("ignored %s", reason)

    def _own(self, message: JSONRPCResponse | JSONRPCError) -> JSONRPCResponse | JSONRPCError | None:
        """The client's answer under the id that the lane gave its question; None if another server asked."""
        prefix = self._options.request_prefix
        if not prefix:
            return message
        given = message.id
        if not isinstance(given, str) or not given.startswith(prefix) or not given[len(prefix) :].isdecimal():
            self._log.debug("ignored an answer to another server")
            return None
        return message.model_copy(update={"id": int(given[len(prefix) :])})

    async def _request(self, request: JSONRPCRequest, tasks: TaskGroup) -> None:
        await self._out.room(self._options.max_in_flight)
        if request.method not in _IN_THREADS:
            await self._out.quick_room(_QUICK, _IN_THREADS)
        era = Era.LEGACY if request.method == "initialize" or not has_envelope(request.params) else Era.MODERN
        refused = self._out_of_order(request) if era is Era.LEGACY else None
        if refused is None and not self._out.begin(request.id, Call(era, request.method)):
            refused = error(request.id, INVALID_REQUEST, "Invalid request: this id is already in flight")
        if refused is not None:
            await self._out.stream.send(refused)
            return
        if request.method == "initialize":
            self._handshake_seen = True
        try:
            unanswered = ServerMessageMetadata(on_request_unanswered=partial(self._settled, request.id))
            await self._lane(era, tasks).send(SessionMessage(request, unanswered))
        except anyio.get_cancelled_exc_class():
            # The end came before a lane had it: nothing must wait for its answer.
            self._out.settle(request.id)
            raise

    async def _notification(self, notification: JSONRPCNotification) -> None:
        # Without a handshake none goes to the legacy lane: the SDK would take `initialized` for a whole one.
        era: Era | None = Era.LEGACY if self._handshake_seen else Era.MODERN
        if notification.method == "notifications/cancelled":
            request_id = as_request_id((notification.params or {}).get("requestId"))
            call = None if request_id is None else self._out.cancellable(request_id)
            era = None if call is None else call.era
        elif has_envelope(notification.params):
            era = Era.MODERN
        lane = None if era is None else self._lanes.get(era)
        if lane is None:
            self._log.debug("ignored a notification that nothing waits for")
        else:
            await lane.send(SessionMessage(notification))

    def _out_of_order(self, request: JSONRPCRequest) -> JSONRPCError | None:
        """The refusal of a request without an envelope that no handshake came before, if it needs either.

        `server/discover` exists in the stateless era alone. `ping` is answered at any time, and a method
        that the server does not have is unknown at any time: the SDK answers both.
        """
        method = request.method
        if method == "server/discover":
            found = classify_inbound_request({"method": method, "params": request.params})
            assert isinstance(found, InboundLadderRejection)
            return error(request.id, found.code, found.message, found.data)
        if self._handshake_seen or method in {"initialize", "ping"}:
            return None
        if self._server.get_request_handler(method) is None:
            return None
        return error(
            request.id,
            INVALID_PARAMS,
            "Invalid params: params._meta lacks io.modelcontextprotocol/protocolVersion, and no initialize came before",
        )

    def _refuse_text(self, message: NotText) -> JSONRPCResponse:
        bad = message.bad
        if self._options.refuse_text is not None:
            result = self._options.refuse_text(bad)
        else:
            result = message.result()
            if bad.modern:
                result["_meta"] = {SERVER_INFO_META_KEY: self._server.server_info_stamp}
        return JSONRPCResponse(jsonrpc="2.0", id=message.id, result=result)

    async def _settled(self, request_id: int | str) -> None:
        self._out.settle(request_id)

    def _lane(self, era: Era, tasks: TaskGroup) -> Lane:
        lane = self._lanes.get(era)
        if lane is None:
            lane = Lane(
                era,
                self._server,
                self._out.stream.clone(),
                self._options,
                partial(self._lane_ended, tasks=tasks),
            )
            self._lanes[era] = lane
            tasks.start_soon(lane.run)
        return lane

    def _lane_ended(self, lane: Lane, tasks: TaskGroup) -> None:
        del self._lanes[lane.era]
        if lane.era is Era.LEGACY:
            self._handshake_seen = False
        # A loop that ended as it should has answered for its requests; one that failed has not.
        for request_id in self._out.of(lane.era) if lane.failed else ():
            answer = error(request_id, INTERNAL_ERROR, "Internal error")
            tasks.start_soon(self._out.stream.send, SessionMessage(answer))
        self._lane_over.set()
        self._lane_over = anyio.Event()

    async def _close_lanes(self) -> None:
        for lane in self._lanes.values():
            lane.close()
        while self._lanes:
            await self._lane_over.wait()
