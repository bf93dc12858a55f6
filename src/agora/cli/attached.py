"""`agora serve --http` where the shared server does the work: this process asks for it and stays to be ended."""

from __future__ import annotations

import signal
import sys
import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from agora.config.load import load_settings
from agora.daemon import control
from agora.errors import AgoraError, ListenError, StoreUnavailable
from agora.shim.reaching import START_SECONDS, told_differing
from agora.shim.relay import RESTART_SECONDS, RESTARTS
from agora.transport.lifetime import on_signals

AGAIN_SECONDS = 10.0
"""How long the next server is given to listen at the address that the last one has let go."""

_LOOK_SECONDS = 0.2


class Declined(Exception):
    """The shared server does not serve this."""


class _Ended(BaseException):
    """A signal has come while there is no server to end."""


def serve_attached(address: str, options: Mapping[str, str], *, authenticate: bool) -> int:
    """The exit status of `agora serve --http` at an address that the shared server listens at.

    Ends on a signal, with the listening: 0, or as shells have it if nobody listened yet. A server that is replaced or
    killed is followed by the next one at the same address. One that a person stopped is not started again: this waits
    for whoever does.

    Raises: Declined if the shared server has other settings or does not run; ListenError for an address that is taken;
    StoreUnavailable if servers keep ending, or one hangs.
    """
    attachment = _Attachment(load_settings(options).settings.home, options, authenticate=authenticate)
    with _signals_to(attachment):
        try:
            found = attachment.first(address)
        except _Ended as reason:
            return 128 + signal.Signals[str(reason)].value
        # A line that scripts can wait for and read: the port may have been 0.
        print(f"listening on {found.url}", file=sys.stderr, flush=True)
        try:
            while True:
                found.wait(attachment.stop)
                if attachment.stop.is_set():
                    return 0
                found = attachment.next(found.address)
        except _Ended:
            return 0


@contextmanager
def _signals_to(attachment: _Attachment) -> Iterator[None]:
    """Signals end the attachment; whoever serves in its place has those back that were there before."""
    before = {number: signal.getsignal(number) for number in signal.valid_signals()}
    on_signals(attachment.end)
    try:
        yield
    finally:
        for number, handler in before.items():
            if handler is not None and signal.getsignal(number) != handler:
                signal.signal(number, handler)


class Starts:
    """How often a server was started of late: one that keeps ending needs a person. The bounds are a session's."""

    def __init__(self) -> None:
        self._at: list[float] = []

    def count(self, now: float) -> None:
        """Note a server that was started.

        Raises: StoreUnavailable at one too many.
        """
        self._at = [at for at in self._at if now - at < RESTART_SECONDS] + [now]
        if len(self._at) > RESTARTS:
            raise StoreUnavailable(
                f"the shared server has ended {RESTARTS} times within {RESTART_SECONDS:g} s",
                hint="`agora server logs` may say why; `agora serve --http HOST:PORT --in-process` goes without it.",
            )


class _Attachment:
    """The server that listens for this process now, and the wish to end."""

    def __init__(self, home: Path, options: Mapping[str, str], *, authenticate: bool) -> None:
        self._home = home
        self._options = dict(options)
        self._authenticate = authenticate
        self._now: control.Attached | None = None
        self._starts = Starts()
        self.stop = threading.Event()

    def end(self, reason: str) -> None:
        """A signal has come."""
        self.stop.set()
        if self._now is None:
            # What this waits for may take half a minute.
            raise _Ended(reason)
        self._now.hang_up()

    def first(self, address: str) -> control.Attached:
        """A server that listens at `address`, started if need be.

        Raises: ListenError; Declined.
        """
        try:
            return self._attached(address, START_SECONDS)
        except ListenError:
            raise
        except AgoraError as error:
            raise Declined(error.message) from None

    def next(self, address: str) -> control.Attached:
        """Another server that listens at `address`, which the last one may hold for some seconds more.

        Raises: ListenError, StoreUnavailable.
        """
        self._now = None
        if self.stop.is_set():
            raise _Ended
        found = self._attached(address, AGAIN_SECONDS, again=True)
        if found.differing:
            print(f"agora: {told_differing(found.differing)}", file=sys.stderr, flush=True)
        return found

    def _attached(self, address: str, seconds: float, *, again: bool = False) -> control.Attached:
        until = time.monotonic() + seconds
        while True:
            if again and self._waits_while_stopped():
                until = time.monotonic() + seconds
            try:
                control.start(
                    self._home,
                    self._options,
                    on_start=lambda: self._starts.count(time.monotonic()),
                    patient=again,
                )
                found = control.attach(self._home, self._options, address, authenticate=self._authenticate, again=again)
            except ListenError:
                if not again or time.monotonic() > until:
                    raise
                found = None
            if found is not None:
                self._now = found
                return found
            if time.monotonic() > until:
                raise StoreUnavailable(
                    f"no shared server has listened at {address} within {seconds:g} s",
                    hint="`agora server logs` may say why.",
                )
            self.stop.wait(_LOOK_SECONDS)

    def _waits_while_stopped(self) -> bool:
        """Return once nobody has stopped the server, or somebody has started it since; whether that took any time."""
        if not control.is_stopped(self._home):
            return False
        print(
            "agora: the shared server was stopped, and HTTP with it; both go on with `agora server start`, or with the"
            " next message of an agent",
            file=sys.stderr,
            flush=True,
        )
        while control.is_stopped(self._home):
            self.stop.wait(_LOOK_SECONDS)
        return True
