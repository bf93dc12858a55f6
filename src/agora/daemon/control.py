"""Asks the shared server of a data folder from outside, and starts it."""

from __future__ import annotations

import os
import time
from _socket import SHUT_WR, socket
from contextlib import suppress
from pathlib import Path
from typing import Any

from agora.errors import ListenError, StoreUnavailable
from agora.shim import starting
from agora.shim.places import LOG, RUN, STOPPED
from agora.shim.reaching import START_SECONDS, Refused, dial, greet, hello

ENDS_SECONDS = 15.0
"""How long a server may take to end: its calls have `server.drain` seconds, and it is ended hard after that."""


def ask(home: Path, command: str) -> dict[str, Any] | None:
    """The server's answer; None if none runs.

    Raises: StoreUnavailable if it does not answer.
    """
    try:
        dialled = dial(str(home))
        if dialled is None:
            return None
        sock, token = dialled
        answer, _ = greet(sock, {**hello(str(home), {}, {}), "command": command, "token": token})
        sock.close()
    except Refused as reason:
        raise _unusable(home, str(reason)) from None
    if answer is None:
        return None
    if answer.get("ok") is not True:
        raise _unusable(home, str(answer.get("message")))
    return {name: value for name, value in answer.items() if name not in {"agora", "ok"}}


def start(home: Path, options: dict[str, str]) -> dict[str, Any]:
    """Start the server if none runs; what it says of itself.

    Raises: StoreUnavailable if it does not come up, with the last words of its log.
    """
    until = time.monotonic() + START_SECONDS
    tries = 0
    while (found := ask(home, "status")) is None:
        try:
            if starting.start(str(home), options):
                tries += 1
        except Refused as reason:
            raise _unusable(home, str(reason)) from None
        if tries > 1 or time.monotonic() > until:
            last = log(home, 1) or ["nothing was written to its log"]
            raise _unusable(home, f"the shared server does not start: {last[-1]}")
        time.sleep(0.05)
    return found


class Attached:
    """HTTP that the shared server serves for this process, for as long as the connection lasts."""

    def __init__(self, sock: socket, url: str, address: str) -> None:
        self._sock = sock
        self.url, self.address = url, address

    def wait(self) -> None:
        """Return when the server serves it no more."""
        try:
            while self._sock.recv(1_000):
                pass
        except OSError:
            pass
        self._sock.close()

    def hang_up(self) -> None:
        """Want it no more: requests under way are answered, then `wait` returns."""
        with suppress(OSError):
            self._sock.shutdown(SHUT_WR)


def attach(home: Path, options: dict[str, str], address: str, *, authenticate: bool) -> Attached | None:
    """The server listens at `address` from now on; None if it is about to end and another is to be asked.

    Raises: ListenError if the address cannot be had; StoreUnavailable if the server has other settings.
    """
    said = hello(str(home), options, dict(os.environ))
    arguments = {"address": address, "authenticate": authenticate}
    try:
        dialled = dial(str(home))
        if dialled is None:
            return None
        sock, token = dialled
        answer, _ = greet(sock, {**said, "command": "http", "arguments": arguments, "token": token})
    except Refused as reason:
        raise _unusable(home, str(reason)) from None
    if answer is not None and answer.get("ok") is True:
        return Attached(sock, str(answer["url"]), str(answer["address"]))
    sock.close()
    if answer is None or answer.get("again") is True:
        return None
    message = str(answer.get("message"))
    if answer.get("code") == ListenError.code:
        raise ListenError(message, hint=str(answer.get("hint") or ""))
    raise _unusable(home, message)


def stop(home: Path, command: str = "stop") -> dict[str, Any] | None:
    """End the server and wait until it is gone; what it said of itself, None if none ran.

    Raises: StoreUnavailable if it does not end.
    """
    found = ask(home, command)
    if found is None:
        return None
    until = time.monotonic() + ENDS_SECONDS
    while _alive(int(found["pid"])):
        if time.monotonic() > until:
            raise _unusable(home, f"the shared server (process {found['pid']}) does not end")
        time.sleep(0.02)
    return found


def is_stopped(home: Path) -> bool:
    """Whether a person ended the server and nobody has started it since."""
    return (home / RUN / STOPPED).exists()


def log(home: Path, lines: int) -> list[str]:
    """The last lines of the server's log."""
    try:
        text = (home / RUN / LOG).read_text("utf-8", "replace")
    except OSError:
        return []
    return text.splitlines()[-lines:]


def _alive(pid: int) -> bool:
    if os.name == "nt":
        import ctypes  # noqa: PLC0415 - Windows alone has no other way

        kernel = ctypes.windll.kernel32  # type: ignore[attr-defined,unused-ignore] # it is there on Windows alone
        handle = kernel.OpenProcess(0x100000, 0, pid)
        if not handle:
            return False
        ended = kernel.WaitForSingleObject(handle, 0) == 0
        kernel.CloseHandle(handle)
        return not ended
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return True


def _unusable(home: Path, message: str) -> StoreUnavailable:
    return StoreUnavailable(message, hint=f"`agora server logs` shows what it wrote; the file is {home / RUN / LOG}.")
