"""What the SDK refuses, in words that say which method or parameter it was and what to change."""

from __future__ import annotations

from typing import Any

import mcp_types as types
from mcp.server.context import CallNext, HandlerResult, ServerRequestContext
from mcp.shared.exceptions import MCPError
from mcp_types import methods
from pydantic import ValidationError

from agora.abridging import abridge

_REASONS = {"missing": "is missing", "model_type": "must be an object", "dict_type": "must be an object"}
"""In place of pydantic's words, which speak of Python."""


async def in_words(ctx: ServerRequestContext[Any, Any], call_next: CallNext) -> HandlerResult:
    """Middleware: -32601 names the method and why there is none, -32602 the first parameter that is wrong and why."""
    try:
        return await call_next(ctx)
    except MCPError as error:
        if ctx.request_id is None or error.error.code != types.METHOD_NOT_FOUND:
            raise
        raise _not_found(ctx) from error
    except ValidationError as error:
        wrong = None if ctx.request_id is None else _wrong(ctx, error)
        if wrong is None:
            raise
        raise _invalid(wrong) from None


def _not_found(ctx: ServerRequestContext[Any, Any]) -> MCPError:
    method = abridge(ctx.method)
    reason = "this server does not offer it"
    if ctx.method in methods.SPEC_CLIENT_METHODS and not _spoken(ctx):
        reason = f"revision {ctx.protocol_version} of the protocol has no such method"
    return MCPError(
        code=types.METHOD_NOT_FOUND,
        message=f"Method not found: {method}: {reason}",
        data={"method": method, "reason": reason},
    )


def _spoken(ctx: ServerRequestContext[Any, Any]) -> bool:
    try:
        methods.validate_client_request(ctx.method, ctx.protocol_version, ctx.params)
    except KeyError:
        return False
    except ValidationError:
        pass
    return True


def _wrong(ctx: ServerRequestContext[Any, Any], error: ValidationError) -> ValidationError | None:
    """What is wrong with the parameters; None if `error` is about something else."""
    try:
        methods.validate_client_request(ctx.method, ctx.protocol_version, ctx.params)
    except KeyError:
        return None
    except ValidationError as found:
        return found
    # A handshake is read by the rules of the newest revision too.
    return error if ctx.method == "initialize" else None


def _invalid(error: ValidationError) -> MCPError:
    first = error.errors(include_url=False, include_context=False, include_input=False)[0]
    path = [str(step) for step in first["loc"]]
    param = abridge(".".join(path if path[:1] == ["params"] else ["params", *path]))
    reason = _REASONS.get(first["type"], first["msg"])
    return MCPError(
        code=types.INVALID_PARAMS,
        message=f"Invalid params: {param}: {reason}",
        data={"param": param, "reason": reason},
    )
