"""JSON-RPC messages out of bodies and events, without holding up the loop."""

from __future__ import annotations

import asyncio
import json
from typing import Any, NoReturn

from agora.backends.messages import yielding

_IN_A_THREAD = 256 * 1024
"""Bytes from which JSON is read in a thread: less takes about 3 ms."""

Message = dict[str, Any]


class Unreadable(Exception):
    """Not JSON, or nothing that the protocol sends."""


async def read(text: str | bytes | bytearray) -> list[Message]:
    """The messages in one body or event: one object, or a list of them.

    Raises: Unreadable.
    """
    found = _read(text) if len(text) < _IN_A_THREAD else await asyncio.to_thread(_read_slowly, text)
    listed = found if isinstance(found, list) else [found]
    messages = [one for one in listed if isinstance(one, dict)]
    if not messages or len(messages) < len(listed):
        raise Unreadable("it is no JSON-RPC message")
    return messages


def written(message: Message) -> bytes:
    """One message as the body of a request."""
    try:
        return json.dumps(message, ensure_ascii=False, separators=(",", ":")).encode()
    except UnicodeEncodeError:
        # Half a character is no UTF-8, but has an escape in JSON.
        return json.dumps(message, separators=(",", ":")).encode()


def is_answer(message: Message) -> bool:
    """Whether it answers a request, and is none itself."""
    return "method" not in message and ("result" in message or "error" in message)


def error_in(messages: list[Message]) -> Message | None:
    """The error of the protocol, if that is the only message."""
    if len(messages) != 1 or "method" in messages[0]:
        return None
    error = messages[0].get("error")
    return error if isinstance(error, dict) and isinstance(error.get("code"), int) else None


def _read(text: str | bytes | bytearray, **options: Any) -> Any:  # noqa: ANN401 - what JSON holds
    try:
        if not isinstance(text, str):
            text = text.decode("utf-8-sig", "replace")
        return json.loads(text, parse_constant=_no_number, **options)
    except (ValueError, RecursionError) as error:
        raise Unreadable("it is no JSON") from error


def _read_slowly(text: str | bytes | bytearray) -> Any:  # noqa: ANN401 - what JSON holds
    return _read(text, object_hook=yielding)


def _no_number(name: str) -> NoReturn:
    raise ValueError(name)
