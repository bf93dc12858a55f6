"""The pipes that this process was started with."""

from __future__ import annotations

import os
import sys
import time


def open_missing() -> None:
    """Open what the client left closed: the next file or socket would get its number, and what is meant for it."""
    fd = os.open(os.devnull, os.O_RDWR)
    while fd < _FIRST_FREE:
        fd = os.dup(fd)
    os.close(fd)


_FIRST_FREE = 3


def say(words: str) -> None:
    """Tell whoever reads standard error."""
    try:
        os.write(2, f"agora: {words}\n".encode("utf-8", "backslashreplace"))
    except OSError:
        pass


if sys.platform == "win32":

    def hung_up() -> bool:
        """Nobody can tell here before the input is read to its end."""
        return False

    def wait_for(fd: int, *, writing: bool) -> None:
        """Return when a descriptor that does not block may go on, or be tried again."""
        del fd, writing
        time.sleep(_TRY_SECONDS)

    _TRY_SECONDS = 0.01
else:

    def wait_for(fd: int, *, writing: bool) -> None:
        """Return when a descriptor that does not block may go on: whoever shares a pipe may have made it so."""
        from select import POLLIN, POLLOUT, poll  # noqa: PLC0415 - as below

        asked = poll()
        asked.register(fd, POLLOUT if writing else POLLIN)
        asked.poll()

    def hung_up() -> bool:
        """Whether the client has closed its end of standard input, which may still hold something to read."""
        from select import POLLHUP, poll  # noqa: PLC0415 - most sessions never need it

        asked = poll()
        asked.register(0, 0)
        return any(events & POLLHUP for _, events in asked.poll(0))
