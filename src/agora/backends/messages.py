"""Lines that a backend writes, and what of them is a message."""

from __future__ import annotations

import json
import re
from typing import Any

_ID = rb'(-?\d{1,18}|"(?:[^"\\\x00-\x1f]|\\.){0,200}")'
_VERSION = rb'"jsonrpc"\s*:\s*"2\.0"'
_ANSWER = rb'"(?:result|error)"'
_ID_FIRST = re.compile(
    rb"\s*\{\s*(?:" + _VERSION + rb'\s*,\s*)?"id"\s*:\s*' + _ID + rb"\s*,\s*(?:" + _VERSION + rb"\s*,\s*)?" + _ANSWER
)
_ANSWER_FIRST = re.compile(rb"\s*\{\s*(?:" + _VERSION + rb"\s*,\s*)?" + _ANSWER)
_ID_LAST = re.compile(rb',\s*"id"\s*:\s*' + _ID + rb"\s*(?:,\s*" + _VERSION + rb"\s*)?\}\s*$")


def messages(line: bytes) -> tuple[list[dict[str, Any]], bool]:
    """The JSON-RPC messages in a line, more than one in a batch, and whether all of it was that.

    What is no UTF-8 is replaced, what is no number (`NaN`) becomes null. Reading a large line lets other threads run.
    """
    try:
        hook = yielding if len(line) > LARGE else None
        found = json.loads(line.decode("utf-8", "replace"), parse_constant=_nothing, object_hook=hook)
    except (ValueError, RecursionError):
        return [], False
    if not isinstance(found, list):
        return ([found], True) if _is_message(found) else ([], False)
    kept = [each for each in found if _is_message(each)]
    return kept, bool(kept) and len(kept) == len(found)


LARGE = 50_000
"""Bytes of a line from which on it is read in a thread: less than half a millisecond's worth."""


def yielding(found: dict[str, Any]) -> dict[str, Any]:
    """The same object: as a hook of the JSON reader it lets other threads run.

    The reader is one step of the interpreter, which no other thread interrupts. A function of ours that it calls for
    every object is where an event loop gets its turn: 8 MB of small objects held it up for 1.2 s without.
    """
    return found


def _nothing(_constant: str) -> None:
    return None


def _is_message(found: object) -> bool:
    return isinstance(found, dict) and found.get("jsonrpc") == "2.0" and ("method" in found or "id" in found)


def answered_id(head: bytes, tail: bytes) -> int | str | None:
    """The id of the request that a line was the answer to, by its first and last bytes; None if they do not tell.

    For lines that cannot be read: too long, or no JSON in the end. Of a request of the backend's own it says nothing.
    """
    match = _ID_FIRST.match(head) or (_ID_LAST.search(tail) if _ANSWER_FIRST.match(head) else None)
    if match is None:
        return None
    try:
        found = json.loads(match[1].decode("utf-8", "replace"))
    except ValueError:
        return None
    return found if isinstance(found, int | str) else None


def unreadable(number: int | str, words: str) -> dict[str, Any]:
    """What is delivered in place of an answer that cannot be read."""
    return {"jsonrpc": "2.0", "id": number, "error": {"code": UNREADABLE, "message": words}}


UNREADABLE = -32700
"""JSON-RPC 2.0, section 5.1: "Parse error"."""
