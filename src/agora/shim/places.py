"""Where the data folder is, and in it the socket and the lock of the shared server.

The rules are those of `agora.config`, which takes ten times as long to import as a session may take to start; a
test holds the two against each other.
"""

from __future__ import annotations

import os
import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

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
    """The path of the server's Unix socket, which may be longer than the system takes: see `by_short_path`."""
    return os.sep.join((home, RUN, SOCKET))


def by_short_path(path: str, use: Callable[[str], None], descriptors: str = "/proc/self/fd") -> None:
    """Call `use` with a name of the socket at `path` that the system takes, however long `path` is.

    A socket is always in the data folder, where nobody else can put one: no folder that many users share, and no
    variable that one session has and another lacks. `descriptors` is the folder in which the system lists the open
    files of a process; where there is none, the process works in the socket's folder while `use` runs.

    Raises: OSError if the folder of `path` cannot be entered; what `use` raises.
    """
    if len(os.fsencode(path)) <= LONGEST:
        use(path)
        return
    folder, name = os.path.split(path)
    if sys.platform == "linux" and os.path.isdir(descriptors):
        fd = os.open(folder, os.O_PATH | os.O_DIRECTORY)
        try:
            use(f"{descriptors}/{fd}/{name}")
        finally:
            os.close(fd)
        return
    back = os.open(".", os.O_RDONLY)
    try:
        os.chdir(folder)
        try:
            use(name)
        finally:
            os.fchdir(back)
    finally:
        os.close(back)


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
