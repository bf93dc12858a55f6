"""What goes out: one queue, one task that writes, and the table of requests without an answer yet."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any

import anyio
from mcp.shared.dispatcher import coerce_request_id
from mcp.shared.message import SessionMessage
from mcp_types import (
    CONNECTION_CLOSED,
    INTERNAL_ERROR,
    JSONRPCError,
    JSONRPCMessage,
    JSONRPCRequest,
    JSONRPCResponse,
    RequestId,
)
from pydantic_core import PydanticSerializationError

from agora.transport.lanes import Era
from agora.transport.messages import error, unanswered
from agora.transport.options import Log

QUEUED_FRAMES = 16

# A subscription is a stream: it never answers by itself, so no end of input waits for it.
_STREAMS = frozenset({"subscriptions/listen"})

# What the SDK's dispatcher answers to an exception it cannot place, with the exception's text.
_UNPLACED = 0


@dataclass(frozen=True, slots=True)
class Call:
    """A request that a lane works on."""

    era: Era
    method: str


class Outbound:
    """Writes each message as one whole frame, in order, and each request's answer once.

    Lanes send `SessionMessage` into `stream`. An answer from a lane whose request is not in flight (any
    more) is dropped. Bare messages are the connection's own and are written as they are.
    """

    def __init__(self, write: Callable[[bytes], Awaitable[None]], log: Log, request_prefix: str = "") -> None:
        self._write = write
        self._prefix = request_prefix
        self._log = log
        self._calls: dict[RequestId, Call] = {}
        # Answers on their way. Their ids are free again: who has read an answer may use its id at once, and that
        # can be before `write` returns here.
        self._leaving = 0
        self._changed = anyio.Event()
        self.peer_gone = False
        self.stream, self._receive = anyio.create_memory_object_stream[SessionMessage | JSONRPCResponse | JSONRPCError](
            QUEUED_FRAMES
        )

    def begin(self, request_id: RequestId, call: Call) -> bool:
        """Note a request; False if its id is still in flight."""
        if request_id in self._calls:
            return False
        self._calls[request_id] = call
        return True

    def settle(self, request_id: RequestId) -> Call | None:
        """Forget a request: it was answered, or will never be."""
        call = self._calls.pop(request_id, None)
        self._wake()
        return call

    def _wake(self) -> None:
        """Let everyone who waits for a change look again."""
        self._changed.set()
        self._changed = anyio.Event()

    def cancellable(self, request_id: RequestId) -> Call | None:
        """The one request in flight that the SDK would cancel for `request_id`.

        The SDK takes "7" and 7 for one id here. With both in flight it would end the wrong one: then None.
        """
        alias = coerce_request_id(request_id)
        found = [call for known, call in self._calls.items() if coerce_request_id(known) == alias]
        return found[0] if len(found) == 1 else None

    def of(self, era: Era) -> list[RequestId]:
        """The ids in flight on the lane of `era`."""
        return [request_id for request_id, call in self._calls.items() if call.era is era]

    async def room(self, limit: int) -> None:
        """Return when fewer than `limit` requests are in flight."""
        while len(self._calls) >= limit:
            await self._changed.wait()

    async def quick_room(self, limit: int, slow: frozenset[str]) -> None:
        """Return when fewer than `limit` requests are in flight whose method is not among `slow`."""
        while sum(call.method not in slow for call in self._calls.values()) >= limit:
            await self._changed.wait()

    async def drained(self) -> None:
        """Return when every request but streams has its answer written, or the peer is gone."""
        while not self.peer_gone and (
            self._leaving or any(call.method not in _STREAMS for call in self._calls.values())
        ):
            await self._changed.wait()

    async def run(self) -> None:
        """Write until `stream` is closed by all who send, or nobody reads any more."""
        with self._receive:
            async for item in self._receive:
                message, settled = self._prepare(item)
                frame = None if message is None else self._encode(message)
                if settled is not None:
                    self._calls.pop(settled, None)
                    self._leaving += 1
                if frame is not None:
                    try:
                        await self._write(frame)
                    except (anyio.BrokenResourceError, anyio.ClosedResourceError):
                        self._log.debug("the client reads no more")
                        self.peer_gone = True
                        break
                if settled is not None:
                    self._leaving -= 1
                    self._wake()
        self._changed.set()

    def _prepare(
        self, item: SessionMessage | JSONRPCResponse | JSONRPCError
    ) -> tuple[JSONRPCMessage | None, RequestId | None]:
        """The message to write, if any, and the id that it settles."""
        if not isinstance(item, SessionMessage):
            return item, None
        message = item.message
        if self._prefix and isinstance(message, JSONRPCRequest):
            return message.model_copy(update={"id": f"{self._prefix}{message.id}"}), None
        if not isinstance(message, JSONRPCResponse | JSONRPCError) or message.id is None:
            return message, None
        if message.id not in self._calls:
            self._log.debug("dropped an answer that nobody waits for")
            return None, None
        return self._told(message, self._calls[message.id]), message.id

    @staticmethod
    def _told(answer: JSONRPCResponse | JSONRPCError, call: Call) -> JSONRPCResponse | JSONRPCError:
        """The answer, in words of ours where the SDK's own would tell too much or too little."""
        if not isinstance(answer, JSONRPCError) or answer.id is None:
            return answer
        if answer.error.code == _UNPLACED:
            return error(answer.id, INTERNAL_ERROR, "Internal error")
        if answer.error.code == CONNECTION_CLOSED and call.method == "tools/call":
            return unanswered(answer.id, modern=call.era is Era.MODERN)
        return answer

    def _encode(self, message: JSONRPCMessage) -> bytes | None:
        """The frame, or an internal error in its place, or None if nothing waits for it."""
        try:
            return _dump(message)
        except (PydanticSerializationError, ValueError) as problem:
            # Text that is not Unicode in a result, for one. Nothing that a client cannot read may leave.
            self._log.warning("a message could not be written as JSON: %s", type(problem).__name__)
        if isinstance(message, JSONRPCResponse | JSONRPCError):
            return _dump(error(message.id, INTERNAL_ERROR, "Internal error"))
        return None


def _dump(message: Any) -> bytes:  # noqa: ANN401 - one of the SDK's four models
    text: str = message.model_dump_json(by_alias=True, exclude_unset=True)
    return text.encode("utf-8") + b"\n"
