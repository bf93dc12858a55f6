"""An MCP session with a backend, over whatever channel carries its messages."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine, Mapping
from typing import Any

from agora import __version__
from agora.abridging import abridge
from agora.backends.channel import Channel
from agora.backends.requests import METHOD_NOT_FOUND, Requests
from agora.errors import (
    BackendError,
    BackendProtocolError,
    BackendRefused,
    BackendTimeout,
    BackendUnavailable,
    OutcomeUnknown,
)
from agora.model.backend import ServerInfo
from agora.ports.backends import Progress, Told
from agora.unseen import shown

HANDSHAKES = ("2025-11-25", "2025-06-18", "2025-03-26", "2024-11-05")
"""Revisions that begin with `initialize`, newest first."""

MODERN = "2026-07-28"
"""The revision without a handshake: `server/discover`, and every request says who asks."""

_ABOUT = "io.modelcontextprotocol/"
_CLIENT = {"name": "agora", "version": __version__}
_UNSUPPORTED_VERSION = -32022
_PARTING = 1.0
"""Seconds that a note to the backend may take that nobody waits any more."""


class McpSession:
    """Implements `agora.ports.backends.Session`: handshake, requests, and answers to what the backend asks.

    A backend may ask for nothing: no roots, no sampling, no input. What it asks is answered with an error, so that it
    does not wait.
    """

    def __init__(self, backend: str, channel: Channel, told: Told) -> None:
        self._backend = backend
        self._channel = channel
        self._told = told
        self._requests = Requests(backend)
        self._tasks: set[asyncio.Task[None]] = set()
        self._server: ServerInfo | None = None
        self._gone: str | None = None

    @property
    def server(self) -> ServerInfo:
        """As `Session.server`."""
        assert self._server is not None, "it is known once the session is open"
        return self._server

    @property
    def alive(self) -> bool:
        """As `Session.alive`."""
        return self._gone is None and self._channel.alive

    @property
    def last_words(self) -> str:
        """As `Session.last_words`."""
        return self._channel.last_words

    @property
    def strays(self) -> int:
        """Answers of the backend that belonged to no request."""
        return self._requests.strays

    async def open(self, seconds: float) -> None:
        """Connect and shake hands; what fails leaves nothing behind.

        Raises: BackendUnavailable, BackendTimeout, BackendProtocolError.
        """
        try:
            async with asyncio.timeout(seconds):
                await self._channel.open(self._deliver, self._lose)
                self._server = await self._introduced(seconds)
                self._channel.negotiated(self._server.protocol)
                if self._server.protocol != MODERN:
                    await self._channel.send(_notification("notifications/initialized"))
                else:
                    self._background(self._listen(self._server))
        except TimeoutError:
            await self.close()
            raise BackendTimeout(
                self._backend,
                f"did not finish its handshake within {seconds:g} s{self._words()}",
                hint="Raise start_timeout in its table if it needs longer to start.",
            ) from None
        except BackendProtocolError:
            await self.close()
            raise
        except BackendError as error:
            words = self._words() if self._channel.last_words.strip()[-60:] not in error.message else ""
            await self.close()
            # Whatever became of a handshake, no call was sent.
            raise BackendUnavailable(
                self._backend,
                f"{error.reason}{words}",
                hint=None if isinstance(error, OutcomeUnknown) else error.hint,
            ) from error
        except BaseException:
            await self.close()
            raise

    async def request(
        self, method: str, params: Mapping[str, Any], *, seconds: float, progress: Progress | None = None
    ) -> dict[str, Any]:
        """As `Session.request`."""
        modern = self._server is not None and self._server.protocol == MODERN
        return await self._request(method, params, seconds, progress, modern=modern)

    async def close(self) -> None:
        """As `Session.close`."""
        self._lose("the session was closed")
        for task in list(self._tasks):
            task.cancel()
        await self._channel.close()

    async def _request(
        self, method: str, params: Mapping[str, Any], seconds: float, progress: Progress | None, *, modern: bool
    ) -> dict[str, Any]:
        if self._gone is not None:
            raise BackendUnavailable(self._backend, self._gone)
        number, answer = self._requests.begin(progress)
        sending = self._background(self._channel.send(_request(number, method, params, progress, modern=modern)))
        both: set[asyncio.Future[Any]] = {sending, answer}
        ends = asyncio.get_running_loop().time() + seconds
        try:
            await asyncio.wait(both, timeout=seconds, return_when=asyncio.FIRST_COMPLETED)
            if answer.done() and isinstance(answer.exception(), OutcomeUnknown):
                # The channel is lost. It may know that this one message was not sent.
                await asyncio.wait({sending}, timeout=_PARTING)
            if sending.done() and (not answer.done() or isinstance(sending.exception(), BackendUnavailable)):
                # What went wrong on the way is told here.
                sending.result()
                await asyncio.wait({answer}, timeout=max(0.0, ends - asyncio.get_running_loop().time()))
            if answer.done():
                return answer.result()
        except asyncio.CancelledError:
            self._take_back(number, sending, "the call was cancelled")
            raise
        finally:
            self._requests.end(number)
        self._take_back(number, sending, "the call took too long")
        raise BackendTimeout(self._backend, f"did not answer within {seconds:g} s")

    def _take_back(self, number: int, sending: asyncio.Task[None], reason: str) -> None:
        """Tell the backend that nobody waits any more; over HTTP that ends the exchange too."""

        async def tell() -> None:
            try:
                async with asyncio.timeout(_PARTING):
                    cancelled = {"requestId": number, "reason": reason}
                    await self._channel.send(_notification("notifications/cancelled", cancelled))
            except (BackendError, TimeoutError):
                pass
            finally:
                sending.cancel()

        if self._gone is None:
            self._background(tell())

    async def _introduced(self, seconds: float) -> ServerInfo:
        asked = {"protocolVersion": HANDSHAKES[0], "capabilities": {}, "clientInfo": _CLIENT}
        try:
            result = await self._request("initialize", asked, seconds, None, modern=False)
        except BackendRefused as error:
            if error.number not in {METHOD_NOT_FOUND, _UNSUPPORTED_VERSION}:
                raise
            return await self._discovered(seconds)
        protocol = result.get("protocolVersion")
        if protocol not in HANDSHAKES:
            raise BackendProtocolError(
                self._backend, f"speaks revision {shown(str(abridge(protocol, 40)))!r} of the protocol, Agora does not"
            )
        return self._info(result, result.get("serverInfo"), str(protocol))

    async def _discovered(self, seconds: float) -> ServerInfo:
        result = await self._request("server/discover", {}, seconds, None, modern=True)
        supported = result.get("supportedVersions")
        if not isinstance(supported, list) or MODERN not in supported:
            raise BackendProtocolError(self._backend, "speaks no revision of the protocol that Agora does")
        meta = result.get("_meta")
        return self._info(result, meta.get(f"{_ABOUT}serverInfo") if isinstance(meta, dict) else None, MODERN)

    def _info(self, result: Mapping[str, Any], server: object, protocol: str) -> ServerInfo:
        about = server if isinstance(server, dict) else {}
        capabilities, instructions = result.get("capabilities"), result.get("instructions")
        return ServerInfo(
            name=shown(str(abridge(about.get("name", ""), 100))),
            version=shown(str(abridge(about.get("version", ""), 100))),
            protocol=protocol,
            capabilities=capabilities if isinstance(capabilities, dict) else {},
            instructions=instructions if isinstance(instructions, str) else "",
        )

    async def _listen(self, server: ServerInfo) -> None:
        """Hear of changed lists for as long as the session lives: in the newest revision one has to ask."""
        wanted = {
            f"{kind}ListChanged": True
            for kind in ("tools", "resources", "prompts")
            if isinstance(server.capabilities.get(kind), dict) and server.capabilities[kind].get("listChanged")
        }
        if not wanted:
            return
        number, answer = self._requests.begin(None)
        params = {"notifications": wanted}
        try:
            await self._channel.send(_request(number, "subscriptions/listen", params, None, modern=True))
            await answer
        except BackendError:
            # A backend that cannot tell is asked again when its list is needed.
            pass
        finally:
            self._requests.end(number)

    def _deliver(self, message: dict[str, Any]) -> None:
        method = message.get("method")
        if not isinstance(method, str):
            self._requests.take(message)
        elif "id" in message:
            self._background(self._answer(message["id"], method))
        else:
            given = message.get("params")
            params = given if isinstance(given, dict) else {}
            if method == "notifications/progress":
                self._requests.told(params)
            else:
                self._told(method, params)

    async def _answer(self, number: object, method: str) -> None:
        answer: dict[str, Any] = {"jsonrpc": "2.0", "id": number}
        if method == "ping":
            answer["result"] = {}
        else:
            answer["error"] = {"code": METHOD_NOT_FOUND, "message": f"Agora does not offer {abridge(method, 100)}"}
        await self._channel.send(answer)

    def _lose(self, reason: str) -> None:
        if self._gone is None:
            self._gone = reason
            self._requests.lose(reason)

    def _words(self) -> str:
        words = self._channel.last_words.strip()
        return f"; it wrote: {words[-500:]}" if words else ""

    def _background(self, work: Coroutine[Any, Any, None]) -> asyncio.Task[None]:
        task = asyncio.get_running_loop().create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        # Whoever waits for it asks for its error; for the others there is nobody to tell.
        task.add_done_callback(lambda done: done.cancelled() or done.exception())
        return task


def _request(
    number: int, method: str, params: Mapping[str, Any], progress: Progress | None, *, modern: bool
) -> dict[str, Any]:
    meta: dict[str, Any] = {} if progress is None else {"progressToken": number}
    if modern:
        meta |= {
            f"{_ABOUT}protocolVersion": MODERN,
            f"{_ABOUT}clientInfo": _CLIENT,
            f"{_ABOUT}clientCapabilities": {},
        }
    given = {**params, "_meta": meta} if meta else dict(params)
    return {"jsonrpc": "2.0", "id": number, "method": method, "params": given}


def _notification(method: str, params: Mapping[str, Any] | None = None) -> dict[str, Any]:
    return {"jsonrpc": "2.0", "method": method, **({} if params is None else {"params": dict(params)})}
