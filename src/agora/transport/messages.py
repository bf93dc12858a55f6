"""One line to one message: JSON-RPC 2.0 as MCP restricts it, or the exact error it deserves.

Nothing here waits or writes. The shape is checked by hand, because the SDK's models lose the id of a line
that they reject, and the error must carry it.
"""

from __future__ import annotations

import json
import sys
from dataclasses import dataclass, replace
from typing import Any, NoReturn, TypeGuard

from mcp_types import (
    INVALID_PARAMS,
    INVALID_REQUEST,
    PARSE_ERROR,
    PROTOCOL_VERSION_META_KEY,
    ErrorData,
    JSONRPCError,
    JSONRPCNotification,
    JSONRPCRequest,
    JSONRPCResponse,
    RequestId,
)
from pydantic import ValidationError

from agora.errors import InvalidInput, OutcomeUnknown
from agora.transport.text import REASON, BadText, depth, find_bad_text, is_text, may_hold_surrogates

# Where the SDK's own JSON reader stops. Python's stops at another depth in each release.
MAX_DEPTH = 200


@dataclass(frozen=True, slots=True)
class Refusal:
    """A line that is answered at once with this error."""

    answer: JSONRPCError


@dataclass(frozen=True, slots=True)
class NotText:
    """A `tools/call` that is well formed but for a lone surrogate in its arguments."""

    id: RequestId
    bad: BadText

    def result(self) -> dict[str, Any]:
        """The result of such a call: an error about the argument, as `InvalidInput.details()`."""
        problem = InvalidInput(self.bad.param, REASON, self.bad.received)
        found: dict[str, Any] = {
            "content": [{"type": "text", "text": problem.message}],
            "structuredContent": {"error": problem.details()},
            "isError": True,
        }
        return found | ({"resultType": "complete"} if self.bad.modern else {})


@dataclass(frozen=True, slots=True)
class Ignored:
    """A message that gets no answer and goes nowhere, and why."""

    reason: str


Incoming = JSONRPCRequest | JSONRPCNotification | JSONRPCResponse | JSONRPCError | Refusal | NotText | Ignored


class _NotJsonError(ValueError):
    """What Python's JSON reader takes and JSON, or this protocol, does not."""


def error(request_id: RequestId | None, code: int, message: str, data: object = None) -> JSONRPCError:
    """An error answer; `data` is left out when it is None."""
    members = {"code": code, "message": message} | ({} if data is None else {"data": data})
    return JSONRPCError(jsonrpc="2.0", id=request_id, error=ErrorData.model_validate(members))


def unanswered(request_id: RequestId, *, modern: bool) -> JSONRPCResponse:
    """The result of a `tools/call` that the server ended before it was answered, as the session's own shim says it."""
    problem = {
        "code": OutcomeUnknown.code,
        "message": "the server ended while this call was under way: it may have been done or not",
        "retryable": False,
        "hint": "Look before you try again; saving the same text twice keeps one note.",
    }
    words = f"{problem['code']}: {problem['message']}\n{problem['hint']}"
    found: dict[str, Any] = {
        "content": [{"type": "text", "text": words}],
        "structuredContent": {"error": problem},
        "isError": True,
    }
    return JSONRPCResponse(jsonrpc="2.0", id=request_id, result=found | ({"resultType": "complete"} if modern else {}))


def has_envelope(params: dict[str, Any] | None) -> bool:
    """Whether a request says of itself that it is stateless (2026-07-28): its `_meta` names a version."""
    meta = params.get("_meta") if params else None
    return isinstance(meta, dict) and PROTOCOL_VERSION_META_KEY in meta


def parse(line: bytes) -> Incoming:
    """The message in `line`, or what to do with a line that holds none."""
    try:
        value = _load(line)
    except _NotJsonError as problem:
        return Refusal(error(None, PARSE_ERROR, f"Parse error: {problem}"))
    if isinstance(value, list):
        return _invalid(None, "a batch is not part of this protocol; send one object a line")
    if not isinstance(value, dict):
        return _invalid(None, "a message is a JSON object")
    bad = find_bad_text(value) if may_hold_surrogates(line) else None
    if "method" not in value and ("result" in value or "error" in value):
        return _response(value, bad)
    return _request(value, bad)


def _load(line: bytes) -> Any:  # noqa: ANN401 - any JSON value
    too_deep = f"nested more than {MAX_DEPTH} levels deep"
    try:
        value = json.loads(line.decode("utf-8"), object_pairs_hook=_object, parse_constant=_constant)
    except UnicodeDecodeError as problem:
        raise _NotJsonError(f"not UTF-8 at byte {problem.start}") from None
    except json.JSONDecodeError as problem:
        raise _NotJsonError(f"not JSON at character {problem.pos}: {problem.msg}") from None
    except RecursionError:
        raise _NotJsonError(too_deep) from None
    except _NotJsonError:
        raise
    except ValueError:
        digits = sys.get_int_max_str_digits()
        raise _NotJsonError(f"an integer has more than {digits} digits") from None
    # Counting brackets is cheap, and few lines have this many.
    if line.count(b"{") + line.count(b"[") > MAX_DEPTH and depth(value) > MAX_DEPTH:
        raise _NotJsonError(too_deep)
    return value


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) != len(pairs):
        # Which of the two counts would be up to the reader: a request that two programs understand
        # differently is not one to act on.
        raise _NotJsonError("a key appears twice in one object")
    return found


def _constant(name: str) -> NoReturn:
    raise _NotJsonError(f"{name} is not JSON")


def _request(value: dict[str, Any], bad: BadText | None) -> Incoming:
    given = value.get("id")
    request_id = given if _is_id(given) else None
    if (reason := _shape_fault(value)) is not None:
        return _invalid(request_id, reason)
    method, params = value["method"], value.get("params")
    if request_id is None:
        return _notification(method, params, bad)
    if isinstance(params, list):
        # JSON-RPC's other way to pass parameters, which this protocol does not use.
        return Refusal(error(request_id, INVALID_PARAMS, "Invalid params: params must be an object"))
    if params is not None and not isinstance(params, dict):
        return _invalid(request_id, "params must be an object")
    if bad is not None:
        return _not_text(request_id, method, params or {}, bad)
    return JSONRPCRequest.model_construct(jsonrpc="2.0", id=request_id, method=method, params=params)


def _shape_fault(value: dict[str, Any]) -> str | None:
    if value.get("jsonrpc") != "2.0":
        return 'jsonrpc must be "2.0"'
    if not isinstance(value.get("method"), str):
        return "method must be a string"
    if "id" in value and not _is_id(value["id"]):
        return "id must be a string or an integer"
    return None


def _notification(method: str, params: object, bad: BadText | None) -> Incoming:
    if bad is not None:
        return Ignored("a notification with a lone surrogate")
    if params is not None and not isinstance(params, dict):
        return Ignored("a notification whose params are not an object")
    return JSONRPCNotification.model_construct(jsonrpc="2.0", method=method, params=params)


def _response(value: dict[str, Any], bad: BadText | None) -> Incoming:
    """A client's answer to a request of the server. Nothing about it is ever answered.

    One that cannot be used still ends the wait of whoever asked, as an error.
    """
    request_id = value.get("id")
    if not _is_id(request_id):
        return Ignored("a response without a usable id")
    if value.get("jsonrpc") == "2.0" and bad is None and ("result" in value) != ("error" in value):
        kind = JSONRPCResponse if "result" in value else JSONRPCError
        try:
            return kind.model_validate(value, by_name=False)
        except ValidationError:
            pass
    return error(request_id, INVALID_REQUEST, "the client's response is malformed")


def _not_text(request_id: RequestId, method: str, params: dict[str, Any], bad: BadText) -> Incoming:
    tool = params.get("name")
    if method == "tools/call" and bad.path.startswith("params.arguments.") and isinstance(tool, str):
        return NotText(request_id, replace(bad, tool=tool, modern=has_envelope(params)))
    return Refusal(error(request_id, INVALID_PARAMS, f"Invalid params: {bad.path} {REASON}"))


def _invalid(request_id: RequestId | None, reason: str) -> Refusal:
    return Refusal(error(request_id, INVALID_REQUEST, f"Invalid request: {reason}"))


def _is_id(value: object) -> TypeGuard[RequestId]:
    if isinstance(value, str):
        return is_text(value)
    return isinstance(value, int) and not isinstance(value, bool)
