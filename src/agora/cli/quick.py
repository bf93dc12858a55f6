"""`agora serve` for a client, without the command-line library, which would cost a tenth of the start."""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping
from contextlib import suppress
from typing import NoReturn

from agora.errors import AgoraError

SWITCH_SECONDS = 0.0001
"""How long a thread waits for the interpreter before it asks for it.

The event loop of a busy server lets go of the interpreter at every message and takes it back at once; a thread that is
woken then loses the race and begins to wait anew. With Python's 5 ms a call beside a flood of other requests took a
second, with less than the time between two messages it takes some milliseconds (`bench/fleet`), and nothing is slower.
"""


def leave(status: int) -> NoReturn:
    """End the process now, with what was said written out.

    A server's thread may be importing at this moment. The interpreter's own way to end freezes such a thread with the
    lock of imports, and then waits for that lock.
    """
    for stream in (sys.stdout, sys.stderr):
        # One may be closed, or nobody reads it any more.
        with suppress(OSError, ValueError, AttributeError):
            stream.flush()
    os._exit(status)


def quick_serve(options: Mapping[str, str], *, in_process: bool, reason: str = "") -> NoReturn:
    """Serve over stdio in this process and end it with the exit status; an error is told on stderr.

    `in_process`: the user wants that. Otherwise a shared server was tried and there can be none, for that `reason`;
    without a reason the settings have to be read to know whether one is wanted.
    """
    leave(_served(options, in_process=in_process, reason=reason))


def _served(options: Mapping[str, str], *, in_process: bool, reason: str) -> int:
    from agora.cli.serve_stdio import serve_stdio  # noqa: PLC0415 - see below

    # Notes are the user's alone: every file made from here on is readable by nobody else.
    os.umask(0o077)
    try:
        if not (in_process or reason):
            reason = _shared_after_all(options)
        if reason:
            print(f"agora: {reason}; this session has a server of its own", file=sys.stderr, flush=True)
        return serve_stdio(options, reason=reason)
    except AgoraError as error:
        # It knows the settings, whose import must come after the streams are claimed.
        from agora.cli import output  # noqa: PLC0415 - as said

        output.utf8_streams(sys.stderr)
        return output.fail(error, json_wanted=False)
    except KeyboardInterrupt:
        return 130


def _shared_after_all(options: Mapping[str, str]) -> str:
    """Serve as a session of the shared server if the settings want one; returns if not, with the reason if it failed.

    Raises: ConfigError.
    """
    from agora.config.load import load_settings  # noqa: PLC0415 - a session that is told all has no use for it

    settings = load_settings(options).settings
    if not settings.server.shared:
        return ""
    from agora.shim.session import serve_at  # noqa: PLC0415 - as above

    return serve_at(str(settings.home), dict(options))
