"""Where an HTTP server listens: `HOST:PORT` as a bound socket."""

from __future__ import annotations

import errno
import ipaddress
import re
import socket
import sys
from dataclasses import dataclass

from agora.errors import ConfigError, ListenError

PATH = "/mcp"
"""The one path that the protocol is served at."""

BACKLOG = 1024
"""Connections that may wait to be accepted, for instance while the server starts."""

_WRITTEN = re.compile(r"(?:\[(?P<six>[0-9A-Fa-f:.%\w]+)\]|(?P<name>[^\s:/\[\]@]+)):(?P<port>[0-9]{1,5})")
_LOOPBACK_NAMES = frozenset({"localhost"})

_HINTS = {
    errno.EADDRINUSE: "Stop the program that has it, or take another port; port 0 takes a free one.",
    errno.EACCES: "Take a port above 1023, or one that no other user holds; port 0 takes a free one.",
    errno.EADDRNOTAVAIL: "Name an address of this machine: 127.0.0.1 for this machine alone.",
}


@dataclass(frozen=True, slots=True)
class Listener:
    """A socket that listens, and its address in numbers: a name could mean another server to a client."""

    sock: socket.socket
    host: str
    port: int

    @property
    def loopback(self) -> bool:
        """Whether only programs on this machine can reach it."""
        return is_loopback(self.host)

    @property
    def authority(self) -> str:
        """Host and port as in a URL."""
        return f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"

    @property
    def url(self) -> str:
        """What a client is configured with."""
        return f"http://{self.authority}{PATH}"


def is_loopback(host: str) -> bool:
    """Whether `host`, in lower case and without brackets, is this machine and nothing else, whatever DNS says."""
    if host in _LOOPBACK_NAMES:
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def parse_address(written: str) -> tuple[str, int]:
    """Host, without brackets, and port of `HOST:PORT` or `[IPV6]:PORT`.

    Raises: ListenError.
    """
    found = _WRITTEN.fullmatch(written)
    port = int(found["port"]) if found else -1
    if found is None or port > 65_535:
        raise ListenError(
            f"{written!r} is not an address to listen at",
            hint="Write HOST:PORT, as in 127.0.0.1:8765 or [::1]:8765; port 0 takes a free one.",
        )
    return found["six"] or found["name"], port


def require_loopback(host: str, written: str) -> None:
    """Return if only programs on this machine can reach `host`, where no token is asked for.

    Raises: ConfigError, about the address as it was `written`.
    """
    if not is_loopback(host):
        raise ConfigError(
            f"--no-auth is refused at {written}, which other machines can reach",
            hint="Leave it out, or listen at 127.0.0.1.",
        )


def listen(written: str) -> Listener:
    """A listening socket at `HOST:PORT`; for a name, at the first of its addresses, IPv4 before IPv6.

    Clients may connect from now on; they wait until somebody accepts.

    Raises: ListenError if the address is malformed, unknown, not this machine's, taken or forbidden.
    """
    host, port = parse_address(written)
    try:
        found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)
    except (OSError, UnicodeError) as problem:
        raise ListenError(
            f"cannot listen on {written}: the name {host!r} is not known here", hint=_HINTS[errno.EADDRNOTAVAIL]
        ) from problem
    family, kind, protocol, _, address = min(found, key=lambda each: each[0] != socket.AF_INET)
    sock = socket.socket(family, kind, protocol)
    try:
        _claim(sock, family)
        sock.bind(address)
        sock.listen(BACKLOG)
    except OSError as problem:
        sock.close()
        hint = _HINTS.get(problem.errno or 0, "Take another address or port.")
        raise ListenError(f"cannot listen on {written}: {problem.strerror or problem}", hint=hint) from problem
    bound = sock.getsockname()
    return Listener(sock, str(bound[0]), int(bound[1]))


def _claim(sock: socket.socket, family: int) -> None:
    if sys.platform == "win32":
        # Without it another program could bind the same port beside us, and read the tokens.
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_EXCLUSIVEADDRUSE, 1)
    else:
        # A port that the last server has just let go can be used at once; one that is in use cannot.
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    if family == socket.AF_INET6:
        # `[::]` means IPv6 on every system, not IPv4 too on some.
        sock.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 1)
