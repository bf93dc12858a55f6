"""The process that a client starts: a session of the shared server, or the reason why there can be none."""

from __future__ import annotations

import _signal  # type: ignore[import-not-found] # `signal` takes longer to import than the rest
import os
import sys

from agora.shim import places
from agora.shim.pipes import open_missing
from agora.shim.reaching import Reach, Refused
from agora.shim.relay import Relay


def serve_shared(options: dict[str, str]) -> str:
    """Pass lines between the client and the shared server; returns only if there can be no session, with the reason.

    Nothing has been read from standard input then. An empty reason: the settings do not want it, or have to be read
    to know.
    """
    if sys.stderr is None:
        open_missing()
    os.umask(0o077)
    try:
        home = places.home_of(options, dict(os.environ))
    except places.Unclear:
        return ""
    return serve_at(home, options)


def serve_at(home: str, options: dict[str, str]) -> str:
    """As `serve_shared`, for a data folder that is known."""
    if sys.stdin is None or sys.stdout is None:
        return ""
    try:
        reach = Reach(home, options, dict(os.environ))
        connected = reach.connect()
    except Refused as reason:
        return str(reason)
    relay = Relay(reach, connected)
    for name in ("SIGTERM", "SIGINT", "SIGHUP", "SIGBREAK"):
        number = getattr(_signal, name, None)
        # `nohup` starts a program with SIGHUP ignored, and means it.
        if number is not None and not (name == "SIGHUP" and _signal.getsignal(number) is _signal.SIG_IGN):
            _signal.signal(number, lambda *_: relay.end())
    relay.run()
    return ""
