"""Ends process groups when the process that named them is gone: the program of the guard, which Agora starts by path.

It is told one line a time on standard input, `+GROUP` and `-GROUP`, in decimal; the end of input is the end of Agora,
however it came. Next to nothing is imported: it lives as long as Agora does, and is started with `-I -S`.
"""

from __future__ import annotations

import _signal  # type: ignore[import-not-found,unused-ignore] # `signal` alone would double the time of the start
import os
import time

INPUT_SECONDS = 0.4
"""How long a process has to end by itself once its input has ended."""
TERM_SECONDS = 2.0
"""How long it has after SIGTERM, before SIGKILL."""
_PAUSE = 0.02
_CHUNK = 65_536


def lives(group: int) -> bool:
    """Whether there is still something in a process group that a signal of ours would reach."""
    try:
        os.killpg(group, 0)
    except (ProcessLookupError, PermissionError):
        # macOS refuses for a group of which nothing is left but processes that nobody has asked about yet.
        return False
    return True


def signal(group: int, number: int) -> None:
    """Send a signal to all of a process group; to none if it is gone."""
    try:  # noqa: SIM105 - contextlib takes longer to import than all that is here
        os.killpg(group, number)
    except (ProcessLookupError, PermissionError):
        pass


def followed(lines: list[bytes], groups: set[int]) -> None:
    """Do what the lines say to `groups`."""
    for line in lines:
        if line[1:].isdigit() and int(line[1:]) > 1:
            (groups.add if line[:1] == b"+" else groups.discard)(int(line[1:]))


def end(groups: set[int]) -> None:
    """End all of them; returns after 2.4 seconds at the latest."""
    if not _gone(groups, INPUT_SECONDS):
        for group in groups:
            signal(group, _signal.SIGTERM)
        if not _gone(groups, TERM_SECONDS):
            for group in groups:
                signal(group, _signal.SIGKILL)


def _gone(groups: set[int], seconds: float) -> bool:
    until = time.monotonic() + seconds
    while any(map(lives, groups)):
        if time.monotonic() > until:
            return False
        time.sleep(_PAUSE)
    return True


def main() -> None:
    """Listen until the end of input."""
    for number in (_signal.SIGINT, _signal.SIGTERM, _signal.SIGHUP):
        # Whoever ends all processes of a session means Agora; this one goes when Agora is gone.
        _signal.signal(number, _signal.SIG_IGN)
    groups: set[int] = set()
    rest = b""
    while chunk := os.read(0, _CHUNK):
        *lines, rest = (rest + chunk).split(b"\n")
        followed(lines, groups)
    end(groups)


if __name__ == "__main__":
    main()
