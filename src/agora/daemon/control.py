"""Asks the shared server of a data folder from outside, and starts it."""

from __future__ import annotations

import os
import threading
import time
from _socket import socket
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from agora.errors import ListenError, StoreUnavailable
from agora.shim import starting
from agora.shim.places import HOME_VARIABLE, LOG, REPLACED, RUN, SHARED_VARIABLE, STOPPED
from agora.shim.reaching import NEXT_START, REPLACED_SECONDS, START_SECONDS, Refused, dial, end_input, greet, hello

ENDS_SECONDS = 10.0
"""How long a server may take to end once its calls have had their `server.drain` seconds: it is ended hard after 2."""

HTTP_ENDS_SECONDS = 3.0
"""The same for the end of HTTP at one address, after which nobody is waited for."""

STARTS = 2
"""Servers that are started before it is given up: the first may have been ended by somebody."""


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


def start(
    home: Path,
    options: dict[str, str],
    env: Mapping[str, str] | None = None,
    on_start: Callable[[], None] = lambda: None,
    *,
    next_start: float = NEXT_START,
    patient: bool = False,
) -> dict[str, Any]:
    """Start the server if none runs; what it says of itself.

    `env` is its environment if not this process's. `on_start` is called at each start; what it raises ends the wait.
    After `next_start` seconds it is looked whether another start is needed. Who is `patient` had a server that has
    ended: if that made room for another, it is left to whoever it made room for to start that.

    Raises: StoreUnavailable if it does not come up, with the last words of its log.
    """
    until = time.monotonic() + START_SECONDS
    tries, again = 0, 0.0
    if patient and (home / RUN / REPLACED).exists():
        again = time.monotonic() + REPLACED_SECONDS
    while (found := ask(home, "status")) is None:
        given_up = time.monotonic() > until
        try:
            # Where a server's lock is not inherited, this says yes while the one that was started still gets ready.
            if time.monotonic() > again and not given_up:
                if tries >= STARTS:
                    given_up = True
                elif starting.start(str(home), options, env):
                    tries += 1
                    again = time.monotonic() + next_start
                    on_start()
        except Refused as reason:
            raise _unusable(home, str(reason)) from None
        if given_up:
            last = log(home, 1) or ["nothing was written to its log"]
            raise _unusable(home, f"the shared server does not start: {last[-1]}")
        time.sleep(0.05)
    return found


_LOOK_SECONDS = 0.5


class Attached:
    """HTTP that the shared server serves for this process, for as long as the connection lasts."""

    def __init__(self, sock: socket, said: Mapping[str, Any]) -> None:
        self._sock = sock
        self._ends_seconds = _drain(said) + HTTP_ENDS_SECONDS
        self.url, self.address = str(said["url"]), str(said["address"])
        self.differing: list[object] = list(said.get("differing") or ())
        """The settings in which the server differs from this process, which it served before."""

    def wait(self, unwanted: threading.Event | None = None) -> None:
        """Return when the server serves it no more.

        Raises: StoreUnavailable if that does not come in time once it is `unwanted`.
        """
        until = float("inf")
        self._sock.settimeout(_LOOK_SECONDS)
        try:
            while True:
                try:
                    if not self._sock.recv(1_000):
                        return
                except TimeoutError:
                    if time.monotonic() > until:
                        raise StoreUnavailable(
                            f"the shared server has not ended HTTP at {self.address} within {self._ends_seconds:g} s",
                            hint="`agora server logs` may say why it hangs. End its process if it goes on.",
                        ) from None
                    if unwanted is not None and unwanted.is_set():
                        until = min(until, time.monotonic() + self._ends_seconds - _LOOK_SECONDS)
        except OSError:
            pass
        finally:
            self._sock.close()

    def hang_up(self) -> None:
        """Want it no more: requests under way are answered, then `wait` returns."""
        end_input(self._sock)


def attach(
    home: Path, options: dict[str, str], address: str, *, authenticate: bool, again: bool = False
) -> Attached | None:
    """The server listens at `address` from now on; None if it is about to end and another is to be asked.

    `again`: another server did before this one. It is served then whatever the settings.

    Raises: ListenError if the address cannot be had; StoreUnavailable if the server has other settings.
    """
    said = {**hello(str(home), options, dict(os.environ)), "open": again}
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
        return Attached(sock, answer)
    sock.close()
    if answer is None or answer.get("again") is True:
        return None
    message = str(answer.get("message"))
    if answer.get("code") == ListenError.code:
        raise ListenError(message, hint=str(answer.get("hint") or ""))
    raise _unusable(home, message)


def stop(home: Path, command: str = "stop") -> dict[str, Any] | None:
    """End the server and wait until it is gone; what it said of itself, None if none ran.

    It is waited for as long as its calls may take to finish, and some seconds.

    Raises: StoreUnavailable if it does not end.
    """
    found = ask(home, command)
    if found is None:
        return None
    until = time.monotonic() + ends_within(found)
    while _alive(int(found["pid"])):
        if time.monotonic() > until:
            raise _unusable(home, f"the shared server (process {found['pid']}) does not end")
        time.sleep(0.02)
    return found


def restart(home: Path, options: dict[str, str]) -> tuple[dict[str, Any], list[str]]:
    """End the server and start it anew with the settings that it had; what the new one says, and what it left out.

    That is: the names of this process's `AGORA_*` variables that the server does not have so. Open sessions were let
    in by the settings that it had. If none ran, or one that does not tell, those of this process are taken. All other
    variables are this process's.

    Raises: StoreUnavailable if it does not end, or the new one does not come up.
    """
    begun = (stop(home, "restart") or {}).get("begun")
    if begun is None:
        return start(home, options), []
    kept = begun["env"]
    env = {name: value for name, value in os.environ.items() if not name.startswith("AGORA_")} | kept
    differing = sorted(
        name
        for name, value in os.environ.items()
        if name.startswith("AGORA_") and name not in _NO_SETTINGS_OF_A_SERVER and kept.get(name) != value
    )
    return start(home, {**begun["options"], **options}, env), differing


_NO_SETTINGS_OF_A_SERVER = frozenset({HOME_VARIABLE, SHARED_VARIABLE, "AGORA_AGENT", "AGORA_NAMESPACE_DEFAULT"})


def ends_within(said: Mapping[str, Any]) -> float:
    """Seconds in which a server that said this of itself is gone."""
    return _drain(said) + ENDS_SECONDS


def _drain(said: Mapping[str, Any]) -> float:
    found = said.get("drain")
    return float(found) if isinstance(found, int | float) else 0.0


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
    return not _has_ended(pid)


def _has_ended(pid: int) -> bool:
    """Whether the process has ended and only its number is left, for a parent that does not ask what became of it.

    The first process of many a container never asks. False where the system does not tell in this way.
    """
    try:
        stat = Path(f"/proc/{pid}/stat").read_bytes()
    except OSError:
        return False
    # proc_pid_stat(5): the state follows the name, which stands in brackets and may hold any.
    return stat[stat.rfind(b")") + 1 :].split()[:1] in ([b"Z"], [b"X"])


def _unusable(home: Path, message: str) -> StoreUnavailable:
    return StoreUnavailable(message, hint=f"`agora server logs` shows what it wrote; the file is {home / RUN / LOG}.")
