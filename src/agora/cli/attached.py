"""`agora serve --http` where the shared server does the work: this process asks for it and stays to be ended."""

from __future__ import annotations

import sys
import threading
import time
from collections.abc import Mapping
from pathlib import Path

from agora.config.load import load_settings
from agora.daemon import control
from agora.errors import AgoraError, ListenError
from agora.transport.lifetime import on_signals

AGAIN_SECONDS = 10.0
"""How long the next server is given to listen at the address that the last one has let go."""


class Declined(Exception):
    """The shared server does not serve this."""


def serve_attached(address: str, options: Mapping[str, str], *, authenticate: bool) -> int:
    """The exit status of `agora serve --http` at an address that the shared server listens at.

    Ends on a signal, with the listening. A server that is replaced or killed is followed by the next one at the same
    address.

    Raises: Declined if the shared server has other settings or does not run; ListenError for an address that is taken.
    """
    attachment = _Attachment(load_settings(options).settings.home, options, authenticate=authenticate)
    on_signals(attachment.end)
    try:
        found = attachment.next(address)
    except ListenError:
        raise
    except AgoraError as error:
        raise Declined(error.message) from None
    # A line that scripts can wait for and read: the port may have been 0.
    print(f"listening on {found.url}", file=sys.stderr, flush=True)
    address = found.address
    while not attachment.stop.is_set():
        found.wait()
        if not attachment.stop.is_set():
            found = attachment.next(address, seconds=AGAIN_SECONDS)
    found.wait()
    return 0


class _Attachment:
    """The server that listens for this process now, and the wish to end."""

    def __init__(self, home: Path, options: Mapping[str, str], *, authenticate: bool) -> None:
        self._home = home
        self._options = dict(options)
        self._authenticate = authenticate
        self._now: control.Attached | None = None
        self.stop = threading.Event()

    def end(self, _reason: str) -> None:
        """A signal has come."""
        self.stop.set()
        if self._now is not None:
            self._now.hang_up()

    def next(self, address: str, seconds: float = 0.0) -> control.Attached:
        """A server that listens at `address`, which the last one may hold for some seconds more.

        Raises: ListenError, StoreUnavailable.
        """
        until = time.monotonic() + seconds
        while True:
            try:
                control.start(self._home, self._options)
                found = control.attach(self._home, self._options, address, authenticate=self._authenticate)
            except ListenError:
                if time.monotonic() > until:
                    raise
                found = None
            if found is not None:
                self._now = found
                if self.stop.is_set():
                    found.hang_up()
                return found
            self.stop.wait(0.1)
