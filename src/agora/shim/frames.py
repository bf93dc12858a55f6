"""What a line of the protocol is to whoever only passes it on: a request, an answer, or neither."""

from __future__ import annotations

from agora.shim.words import is_text, quoted, scan, value_of

_ANSWER = b'{"jsonrpc":"2.0","id":'
_PREFIX = 400
"""Bytes of a frame in which the id is looked for first."""

_UNKNOWN = (
    "outcome_unknown",
    "the shared server ended while this call was under way: it may have been done or not",
    "Look before you try again; saving the same text twice keeps one note.",
)
_NOT_DONE = (
    "store_unavailable",
    "there is no shared server: this call was not done",
    "Try again; `agora server logs` may say why.",
)


class Call:
    """A request that waits for its answer."""

    __slots__ = ("key", "line", "method", "modern", "safe", "tries")

    def __init__(self, key: str, line: bytes, method: str, *, safe: bool, modern: bool) -> None:
        self.key, self.line, self.method = key, line, method
        self.safe, self.modern = safe, modern
        self.tries = 0


def read(line: bytes) -> dict[str, object] | None:
    """The object that a line holds; None for anything else, which the server refuses."""
    try:
        message = value_of(line.decode("utf-8"))
    except UnicodeDecodeError:
        return None
    return message if isinstance(message, dict) else None


def key_of(request_id: object) -> str | None:
    """The id as JSON, so that 1 and "1" are two; None for what is no id."""
    if isinstance(request_id, str):
        return quoted(request_id) if is_text(request_id) else None
    return str(request_id) if isinstance(request_id, int) and not isinstance(request_id, bool) else None


def answered(line: bytes) -> str | None:
    """The key of the request that `line` answers; None for anything but an answer."""
    if line.startswith(_ANSWER):
        start = line[:_PREFIX].decode("utf-8", "replace")
        try:
            found, end = scan(start, len(_ANSWER))
        except (ValueError, StopIteration, RecursionError, SystemError):
            pass
        else:
            if start.startswith((',"result"', ',"error"'), end):
                return key_of(found)
            if start.startswith(',"method"', end):
                return None
    message = read(line)
    return key_of(message.get("id")) if message is not None and "method" not in message else None


def lost(call: Call) -> bytes:
    """The answer to a call that gets none from a server: nobody knows whether it was done, or it was sent to none."""
    code, message, hint = _UNKNOWN if call.tries else _NOT_DONE
    if call.method != "tools/call":
        said = quoted("The shared server ended. Ask again.")
        body = f'"error":{{"code":-32000,"message":{said}}}'
    else:
        retryable = "false" if call.tries else "true"
        error = f'{{"code":"{code}","message":{quoted(message)},"retryable":{retryable},"hint":{quoted(hint)}}}'
        words = quoted(f"{code}: {message}\n{hint}")
        more = ',"resultType":"complete"' if call.modern else ""
        body = (
            f'"result":{{"content":[{{"type":"text","text":{words}}}],"structuredContent":{{"error":{error}}},'
            f'"isError":true{more}}}'
        )
    return f'{{"jsonrpc":"2.0","id":{call.key},{body}}}\n'.encode("ascii")
