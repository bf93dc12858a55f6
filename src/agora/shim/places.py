"""Where the data folder is, and in it the socket and the lock of the shared server.

The rules are those of `agora.config`, which takes ten times as long to import as a session may take to start; a
test holds the two against each other.
"""

from __future__ import annotations

import os
import sys

RUN = "run"
"""Folder in the data folder that holds what lasts as long as the server: for its user alone."""

LOCK = "server.lock"
LOG = "server.log"
REPLACED = "server.replaced"
"""A file that says that the server has made room for one that is being started by somebody."""

STOPPED = "server.stopped"
"""A file that says that a person ended the server: sessions start it again when they need it."""

SOCKET = "server.sock"
ADDRESS = "server.address"
"""Where there are no Unix sockets: a file with the port on loopback and the token that the server asks for."""

LONGEST = 100
"""Bytes of a socket's path that every system takes: 104 with its end on macOS, 108 on Linux."""

CONFIG_VARIABLE = "AGORA_CONFIG"
HOME_VARIABLE = "AGORA_HOME"
SHARED_VARIABLE = "AGORA_SERVER_SHARED"


class Unclear(Exception):
    """What is asked for cannot be told without reading the configuration as the server does."""


def home_of(options: dict[str, str], env: dict[str, str]) -> str:
    """The absolute path of the data folder.

    Raises: Unclear if a file that may name another has to be read, or the shared server may be switched off.
    """
    shared = env.get(SHARED_VARIABLE, "").strip().lower()
    if shared and shared not in {"true", "1", "yes", "on", "y", "t"}:
        raise Unclear
    config = options.get("config") or env.get(CONFIG_VARIABLE, "").strip()
    named = options.get("home") or env.get(HOME_VARIABLE, "").strip()
    if config:
        if not named and _mentions(_absolute(config), b"home"):
            raise Unclear
        file = _absolute(config)
        home = _absolute(named) if named else _default(env)
    else:
        home = _absolute(named) if named else _default(env)
        file = home + os.sep + "agora.toml"
    if not shared and _mentions(file, b"shared"):
        raise Unclear
    return home


def socket_of(home: str) -> str:
    """The path of the server's Unix socket: in the data folder, or if that is too long in a short one of the user's."""
    path = os.sep.join((home, RUN, SOCKET))
    if len(os.fsencode(path)) <= LONGEST:
        return path
    return os.sep.join((short_folder(), f"{_hash(os.fsencode(home)):016x}.sock"))


def short_folder() -> str:
    """A folder of this user's whose path is short."""
    base = os.environ.get("XDG_RUNTIME_DIR", "")
    if not base.startswith("/") or len(base) > LONGEST - 40:
        base = "/tmp"  # noqa: S108 - a folder for this user alone is made in it, and checked to be
    return f"{base}/agora-{os.getuid()}" if hasattr(os, "getuid") else f"{base}/agora"


def _hash(data: bytes) -> int:
    """FNV-1a, 64 bits (http://www.isthe.com/chongo/tech/comp/fnv/): a name, not a secret."""
    found = 0xCBF29CE484222325
    for byte in data:
        found = (found ^ byte) * 0x100000001B3 & 0xFFFFFFFFFFFFFFFF
    return found


def _absolute(path: str) -> str:
    return os.path.abspath(os.path.expanduser(path))


def _mentions(file: str, word: bytes) -> bool:
    try:
        fd = os.open(file, os.O_RDONLY)
    except OSError:
        return False
    try:
        return word in os.read(fd, 1 << 20)
    except OSError:
        return True
    finally:
        os.close(fd)


def _default(env: dict[str, str]) -> str:
    """The per-user data folder of the platform, as platformdirs has it.

    Raises: Unclear on Windows, where the system has to be asked.
    """
    if sys.platform == "win32":
        raise Unclear
    if sys.platform == "darwin":
        return _absolute("~/Library/Application Support/agora")
    base = env.get("XDG_DATA_HOME", "").strip()
    return os.path.join(_absolute(base) if base else _absolute("~/.local/share"), "agora")
