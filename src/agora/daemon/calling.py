"""One call of a tool by the shared server, for a command that wants what only that has: sessions with backends."""

from __future__ import annotations

import json
import os
from _socket import socket
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from agora import __version__
from agora.errors import AgoraError, StoreUnavailable
from agora.shim.reaching import Refused, dial, end_input, greet, hello

_CHUNK = 1 << 16
_REVISION = "2026-07-28"
_ABOUT = "io.modelcontextprotocol/"


class ToldError(AgoraError):
    """An error that the server told of; its code is the server's."""

    def __init__(self, details: Mapping[str, Any]) -> None:
        super().__init__(str(details.get("message", "")), hint=str(details.get("hint", "")))
        self._details = dict(details)
        self.code = str(details.get("code", AgoraError.code))  # type: ignore[misc]

    def details(self) -> dict[str, Any]:
        """As the server told them."""
        return self._details


def call_shared(home: Path, options: dict[str, str], tool: str, given: Mapping[str, Any], seconds: float) -> Any:  # noqa: ANN401 - JSON
    """The structured result of a tool, from the shared server; None if none runs, or it is about to end.

    Raises: ToldError with what the call failed for; StoreUnavailable if the server does not answer.
    """
    try:
        dialled = dial(str(home))
        if dialled is None:
            return None
        sock, token = dialled
        answer, rest = greet(sock, {**hello(str(home), options, dict(os.environ)), "token": token})
    except Refused as reason:
        raise StoreUnavailable(str(reason), hint="`agora server status` shows how it is.") from None
    if answer is None:
        return None
    try:
        if answer.get("ok") is not True:
            if answer.get("again") is True:
                return None
            raise StoreUnavailable(
                str(answer.get("message")), hint="Run `agora server restart` with the settings that you want."
            )
        sock.settimeout(seconds)
        sock.sendall(_request(tool, given))
        return _answer(_lines(sock, rest))
    except OSError as error:
        raise StoreUnavailable(
            f"the shared server did not answer: {error}", hint="A call may have been made all the same: look first."
        ) from error
    finally:
        end_input(sock)
        sock.close()


def _request(tool: str, given: Mapping[str, Any]) -> bytes:
    meta = {
        f"{_ABOUT}protocolVersion": _REVISION,
        f"{_ABOUT}clientInfo": {"name": "agora-cli", "version": __version__},
        f"{_ABOUT}clientCapabilities": {},
    }
    params = {"name": tool, "arguments": dict(given), "_meta": meta}
    return json.dumps({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params}).encode("ascii") + b"\n"


def _lines(sock: socket, rest: bytes) -> Iterator[bytes]:
    while True:
        line, newline, after = rest.partition(b"\n")
        if newline:
            rest = after
            yield line
            continue
        chunk = sock.recv(_CHUNK)
        if not chunk:
            return
        rest += chunk


def _answer(lines: Iterator[bytes]) -> Any:  # noqa: ANN401 - JSON
    for line in lines:
        message = json.loads(line)
        if message.get("id") != 1:
            continue
        if "error" in message:
            error = message["error"]
            raise ToldError(error.get("data") or {"message": error.get("message", ""), "code": "error"})
        found = message["result"]["structuredContent"]
        if "error" in found and message["result"].get("isError"):
            raise ToldError(found["error"])
        return found
    raise StoreUnavailable(
        "the shared server ended before it answered", hint="A call may have been made all the same: look first."
    )
