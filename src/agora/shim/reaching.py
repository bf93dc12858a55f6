"""A connection to the shared server of a data folder, which is started if it does not run."""

from __future__ import annotations

import os
import sys
import time
from _socket import AF_INET, SHUT_RDWR, SHUT_WR, SOCK_STREAM, socket

from agora import __version__
from agora.shim import places
from agora.shim.pipes import say
from agora.shim.words import value_of, written

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

PROTOCOL = 1
"""Version of what the two say to each other before a client's first line."""

HELLO_SECONDS = 15.0
"""A server that lives answers at once, one that has just been started when its imports are done."""

START_SECONDS = 30.0
"""How long a server may take to listen: a second on an idle machine, more when many start at once."""

STARTS = 3
"""Servers that are started for one connection before it is given up."""

_PAUSES = (0.005, 0.05)
NEXT_START = 10.0 if sys.platform == "win32" else 1.0
"""Seconds after a start at which it is looked whether another is needed."""
REPLACED_SECONDS = 3.0
"""How long sessions of a server that made room leave the start of the next one to whoever it made room for."""

_CHUNK = 65_536
_LONGEST_ANSWER = 1 << 22
"""Bytes of a server's first line: `agora server status` has every session in it."""

_INTERRUPTED = 130
"""128 and the number of SIGINT, as shells have it."""


class Refused(Exception):
    """The shared server cannot be used, and why."""


class Unwanted(Exception):
    """Nobody waits for a server any more."""


class Connected:
    """A connection whose server has said that it is there.

    `safe` names the tools whose calls change nothing, which may be sent again; `drain` is how many seconds calls under
    way have when the session ends.
    """

    __slots__ = ("drain", "rest", "safe", "sock")

    def __init__(self, sock: socket, rest: bytes, safe: frozenset[str], drain: float) -> None:
        self.sock, self.rest, self.safe, self.drain = sock, rest, safe, drain


class Reach:
    """Finds or starts the server of `home`, as often as it is asked to."""

    def __init__(self, home: str, options: dict[str, str], env: dict[str, str]) -> None:
        """`options` are the settings that the command line gave."""
        self.home = home
        self.starts = 0
        self._options = options
        self._hello = hello(home, options, env)
        self._log = os.sep.join((home, places.RUN, places.LOG))
        # Settings of the server in which it differs from an open session, as they were last told.
        self._differing: object = None

    def connect(
        self,
        seconds: float = START_SECONDS,
        *,
        patient: bool = False,
        wanted: Callable[[], bool] = lambda: True,
    ) -> Connected:
        """A connection that the server has answered; who is `patient` had one to a server that has ended.

        At Ctrl-C the process ends.

        Raises: Refused; Unwanted once `wanted` says no.
        """
        try:
            return self._connected(seconds, patient, wanted)
        except KeyboardInterrupt:
            # Nothing has been read from the client yet, and nobody wants to see where this was.
            os._exit(_INTERRUPTED)

    def _connected(self, seconds: float, patient: bool, wanted: Callable[[], bool]) -> Connected:
        until = time.monotonic() + seconds
        pause, starts = _PAUSES[0], 0
        # A server that made room did so for a session which starts the next one: it knows what it needs.
        next_start = time.monotonic() + REPLACED_SECONDS if self._leaves(places.REPLACED) and patient else 0.0
        while True:
            dialled = dial(self.home)
            if dialled is not None:
                found = self._greet(*dialled, patient=patient)
                if found is not None:
                    return found
            elif time.monotonic() > next_start:
                from agora.shim import starting  # noqa: PLC0415 - most sessions find one that runs

                if starts >= STARTS:
                    raise Refused(f"the shared server does not start; {self._log} says why")
                if starting.start(self.home, self._options):
                    starts += 1
                    self.starts += 1
                    next_start = time.monotonic() + NEXT_START
            if time.monotonic() > until:
                raise Refused(f"the shared server is not there after {seconds:g} s; {self._log} may say why")
            time.sleep(pause)
            pause = min(2 * pause, _PAUSES[1])
            if not wanted():
                raise Unwanted

    def is_stopped(self) -> bool:
        """Whether a person has ended the server and nobody has started it since."""
        return self._leaves(places.STOPPED)

    def _leaves(self, mark: str) -> bool:
        return os.path.exists(os.path.join(self.home, places.RUN, mark))

    def _greet(self, sock: socket, token: str, *, patient: bool) -> Connected | None:
        """The connection once the server has answered; None if it is about to end, and another is to be tried.

        Raises: Refused.
        """
        said = {**self._hello, "token": token} if token else self._hello
        answer, rest = greet(sock, {**said, "open": True} if patient else said)
        if answer is None:
            return None
        if answer.get("ok") is True:
            self._tell(answer.get("differing"))
            safe = answer.get("safe")
            drain = answer.get("drain")
            return Connected(
                sock,
                rest,
                frozenset(safe if isinstance(safe, list) else ()),
                float(drain) if isinstance(drain, int | float) else 1.0,
            )
        sock.close()
        if answer.get("again") is True:
            return None
        raise Refused(str(answer.get("message", "the shared server refused the connection")))

    def _tell(self, differing: object) -> None:
        if isinstance(differing, list) and differing and differing != self._differing:
            say(told_differing(differing))
        self._differing = differing


def told_differing(differing: list[object]) -> str:
    """What the user is told of a server that has taken over an open session and has other settings."""
    return (
        f"the shared server has other settings than this session now: {', '.join(map(str, differing))}; the session"
        " goes on with the server's"
    )


def hello(home: str, options: dict[str, str], env: dict[str, str]) -> dict[str, object]:
    """What a client's process says of itself first."""
    try:
        cwd = os.getcwd()
    except OSError:
        cwd = home
    return {
        "agora": PROTOCOL,
        "version": __version__,
        "pid": os.getpid(),
        "cwd": cwd,
        "home": home,
        "options": options,
        "env": {name: value for name, value in env.items() if name.startswith("AGORA_")},
    }


def greet(sock: socket, said: dict[str, object]) -> tuple[dict[str, object] | None, bytes]:
    """The server's answer to `said`, and what came after it; None if the server ended instead.

    Raises: Refused if it answers nothing, or not as a server of Agora does.
    """
    sock.settimeout(HELLO_SECONDS)
    got = b""
    try:
        sock.sendall((written(said) + "\n").encode("ascii"))
        while b"\n" not in got:
            chunk = sock.recv(_CHUNK)
            if not chunk or len(got) > _LONGEST_ANSWER:
                break
            got += chunk
    except TimeoutError:
        sock.close()
        raise Refused(f"the shared server has not answered within {HELLO_SECONDS:g} s") from None
    except OSError:
        got = b""
    line, newline, rest = got.partition(b"\n")
    answer = value_of(line.decode("utf-8", "replace")) if newline else None
    if not isinstance(answer, dict):
        sock.close()
        if newline:
            raise Refused("what listens in the data folder is not a server of Agora")
        return None, b""
    sock.settimeout(None)
    return answer, rest


def dial_loopback(home: str) -> tuple[socket, str] | None:
    """A connection to the server of `home` and the token that it asks for; None if nobody listens."""
    try:
        fd = os.open(os.path.join(home, places.RUN, places.ADDRESS), os.O_RDONLY)
    except OSError:
        return None
    try:
        port, _, token = os.read(fd, 200).decode("ascii", "replace").strip().partition(" ")
    finally:
        os.close(fd)
    if not (port.isdigit() and token):
        return None
    sock = socket(AF_INET, SOCK_STREAM)
    try:
        sock.connect(("127.0.0.1", int(port)))
    except (OSError, OverflowError):
        sock.close()
        return None
    return sock, token


if sys.platform == "win32":
    dial = dial_loopback

    def user_of(sock: socket) -> int:
        """Nobody can tell here: a token takes its place."""
        raise NotImplementedError
else:
    from _socket import AF_UNIX, SOL_SOCKET

    if sys.platform != "darwin":
        from _socket import SO_PEERCRED

    def dial(home: str) -> tuple[socket, str] | None:
        """A connection to the server of `home`, which asks for no token; None if nobody listens.

        Raises: Refused where there can be none.
        """
        sock = socket(AF_UNIX, SOCK_STREAM)
        # Without it the call waits for ever at a server that takes no connections any more.
        sock.settimeout(HELLO_SECONDS)
        try:
            places.by_short_path(places.socket_of(home), sock.connect)
        except _NOT_NOW:
            sock.close()
            return None
        except OSError as problem:
            sock.close()
            raise Refused(f"the socket of the shared server cannot be used: {problem.strerror}") from None
        if user_of(sock) != os.geteuid():
            # It would be told the settings, and the data folder may be one that others can write to.
            sock.close()
            raise Refused("what listens at the socket of the shared server belongs to another user")
        return sock, ""

    def user_of(sock: socket) -> int:
        """The user of the process at the other end of a Unix socket.

        Both systems have it in the second four bytes: struct ucred of socket(7), struct xucred of sys/ucred.h.
        """
        if sys.platform == "darwin":
            found: bytes = sock.getsockopt(_SOL_LOCAL, _LOCAL_PEERCRED, 76)
        else:
            found = sock.getsockopt(SOL_SOCKET, SO_PEERCRED, 12)
        return int.from_bytes(found[4:8], sys.byteorder)

    _SOL_LOCAL, _LOCAL_PEERCRED = 0, 1

    # The last: more wait already than the system lets wait.
    _NOT_NOW = (
        FileNotFoundError,
        NotADirectoryError,
        ConnectionRefusedError,
        ConnectionResetError,
        BlockingIOError,
    )


def end_input(sock: socket) -> None:
    """Tell the other end that nothing more comes; what it still sends can be read."""
    try:
        sock.shutdown(SHUT_WR)
    except OSError:
        pass


def hang_up(sock: socket) -> None:
    """End a connection whatever else waits on it."""
    try:
        sock.shutdown(SHUT_RDWR)
    except OSError:
        pass
