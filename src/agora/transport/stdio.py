"""The process's standard input and output as a byte transport that nothing else can touch.

    fd 0, the pipe from the client ── duplicated ──> private fd ──> reader thread ──> event loop
    fd 0 afterwards: the null device
    event loop ──> writer thread ──> private fd <── duplicated ── fd 1, the pipe to the client
    fd 1 afterwards: stderr

Only the standard library is imported here, so that a program can claim its streams before it imports what
may print.
"""

from __future__ import annotations

import os
import sys
from dataclasses import dataclass
from typing import TextIO

from agora.errors import ConfigError


@dataclass(frozen=True, slots=True)
class StdioStreams:
    """The private descriptors of the protocol's two pipes, and who is at the other end.

    They stay open for the life of the process: a thread may still be blocked on one when the connection is
    over, and its number must not be given to another file.

    `parent` is the process that started this one. It is noted here, at the first moment there is, because
    one that dies before it is noted cannot be missed.
    """

    read_fd: int
    write_fd: int
    parent: int


_claimed: StdioStreams | None = None


def claim_stdio() -> StdioStreams:
    """The protocol's private streams; from now on nothing else in this process reads or writes them.

    What prints to fd 1 or to `sys.stdout`, here, in a C library or in a child process, goes to stderr. What
    reads fd 0 gets the end of input. Text that was printed before and not flushed goes to stderr too. A
    second call returns the same streams.

    Raises:
        ConfigError: standard input or output is closed.
    """
    global _claimed  # noqa: PLW0603 - the process has one fd 0 and one fd 1
    if _claimed is None:
        _claimed = _claim()
    return _claimed


def _claim() -> StdioStreams:
    # With fd 0 or 1 closed at start the number may by now belong to some other file.
    _require_open(sys.stdin, "input")
    _require_open(sys.stdout, "output")
    try:
        streams = StdioStreams(_private(0), _private(1), os.getppid())
    except OSError as problem:
        raise ConfigError(
            f"standard input or output cannot be used: {problem.strerror}",
            hint="Let an MCP client start this command, with pipes for standard input and output.",
        ) from problem
    _open_stderr()
    _divert(0, os.open(os.devnull, os.O_RDONLY))
    _divert(1, os.dup(2))
    sys.stdout.flush()
    sys.stdout = sys.stderr
    return streams


def _open_stderr() -> None:
    """See that fd 2 is open: the next file to be opened would get its number, and everybody's complaints."""
    if sys.stderr is None:
        nowhere = os.open(os.devnull, os.O_WRONLY)
        if nowhere != 2:
            os.dup2(nowhere, 2)
            os.close(nowhere)
        sys.stderr = os.fdopen(2, "w", encoding="utf-8", errors="backslashreplace", closefd=False)


def _require_open(stream: TextIO | None, name: str) -> None:
    if stream is None:
        raise ConfigError(
            f"standard {name} is closed",
            hint="Let an MCP client start this command, with pipes for standard input and output.",
        )


if sys.platform == "win32":
    import msvcrt

    def _private(fd: int) -> int:
        duplicate = os.dup(fd)
        # Text mode would turn each newline of a frame into two bytes, and end the input at a 0x1a.
        msvcrt.setmode(duplicate, os.O_BINARY)
        return duplicate
else:
    import fcntl

    def _private(fd: int) -> int:
        """A duplicate of `fd` that no child inherits and that is none of 0, 1 and 2."""
        return fcntl.fcntl(fd, fcntl.F_DUPFD_CLOEXEC, 3)


def _divert(fd: int, target: int) -> None:
    os.dup2(target, fd)
    os.close(target)
    if sys.platform == "win32":
        # dup2 changes the C runtime's table; children take their handles from the process's own.
        from mcp.os.win32.utilities import rebind_std_handle_to_fd  # noqa: PLC0415 - Windows alone needs it

        rebind_std_handle_to_fd(fd)
