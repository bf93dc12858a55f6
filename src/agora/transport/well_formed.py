"""HTTP bodies that are no message of the protocol, answered as lines that are none are."""

from __future__ import annotations

from typing import Any

from mcp_types import JSONRPCError, JSONRPCResponse
from starlette.responses import JSONResponse, Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from agora.transport.messages import Ignored, NotText, Refusal, parse


class WellFormed:
    """An ASGI application that answers what `agora.transport.messages` refuses, and passes everything else on.

    The SDK would answer with what pydantic says of the body, without the id. Expects each body whole in its first
    message, which is what the SDK's limit on bodies makes of it.
    """

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve or refuse one request."""
        if scope["type"] != "http" or scope["method"] != "POST":
            await self._app(scope, receive, send)
            return
        held: list[Message] = [await receive()]

        async def again() -> Message:
            return held.pop() if held else await receive()

        refused = _refused(held[0].get("body", b"")) if held[0]["type"] == "http.request" else None
        await (refused or self._app)(scope, again, send)


def _refused(body: bytes) -> Response | None:
    match parse(body):
        case Refusal(answer):
            return JSONResponse(_plain(answer), status_code=400)
        case NotText() as message:
            return JSONResponse(_plain(JSONRPCResponse(jsonrpc="2.0", id=message.id, result=message.result())))
        case Ignored():
            return Response(status_code=202)
        case _:
            return None


def _plain(answer: JSONRPCError | JSONRPCResponse) -> dict[str, Any]:
    return answer.model_dump(by_alias=True, exclude_unset=True, mode="json")
