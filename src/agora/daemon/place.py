"""Where the shared server listens: a socket that its user alone can connect to."""

from __future__ import annotations

import hmac
import os
import secrets
import socket
import stat
import sys
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

from agora.errors import StoreUnavailable
from agora.shim.places import ADDRESS, RUN, by_short_path, socket_of
from agora.shim.reaching import user_of

BACKLOG = 512

REPLACE_SECONDS = 2.0
"""How long clients may read the file that is to be replaced; each takes less than a millisecond."""


class Place:
    """A listening socket, and the file by which clients find it."""

    def __init__(self, sock: socket.socket, file: Path, token: str = "") -> None:
        self.sock = sock
        self.file = file
        # The system keeps the number from being given away for as long as the socket is open.
        self._made = file.stat()
        self._token = token
        self._left = False

    def leave(self) -> None:
        """Be found by no more clients; the file of another server stays. May be called again."""
        if self._left:
            return
        self._left = True
        with suppress(OSError):
            if self.is_there():
                self.file.unlink()

    def close(self) -> None:
        """Take no more connections; those that wait are refused."""
        self.leave()
        self.sock.close()

    def is_there(self) -> bool:
        """Whether clients find it: False once its file was deleted, moved or replaced; True if that cannot be told."""
        try:
            return os.path.samestat(self.file.stat(), self._made)
        except (FileNotFoundError, NotADirectoryError):
            return False
        except OSError:
            return True

    def admits(self, sock: socket.socket, token: str) -> bool:
        """Whether the other end of `sock` is a process of this user's."""
        if self._token:
            return hmac.compare_digest(token.encode(), self._token.encode())
        return user_of(sock) == os.geteuid()


def run_folder(home: Path) -> Path:
    """The folder of lock, socket and log, made if need be.

    Raises: StoreUnavailable if others could write to it.
    """
    folder = home / RUN
    try:
        home.mkdir(mode=0o700, parents=True, exist_ok=True)
    except OSError as problem:
        raise StoreUnavailable(
            f"the data folder {home} cannot be made: {problem.strerror}", hint="Set AGORA_HOME to a folder of yours."
        ) from problem
    _require_own(folder)
    return folder


def _require_own(folder: Path) -> None:
    """Make the folder, for this user alone.

    Raises: StoreUnavailable if it is somebody else's, or open to others.
    """
    try:
        with suppress(FileExistsError):
            folder.mkdir(mode=0o700)
        found = folder.lstat()
    except OSError as problem:
        raise StoreUnavailable(
            f"the folder {folder} cannot be made: {problem.strerror}", hint="Set AGORA_HOME to a folder of yours."
        ) from problem
    if sys.platform == "win32":
        return
    if not stat.S_ISDIR(found.st_mode) or found.st_uid != os.geteuid() or found.st_mode & 0o077:
        raise StoreUnavailable(
            f"{folder} is not a folder for this user alone", hint=f"Delete it, or run `chmod 700 {folder}`."
        )


def listen_loopback(home: Path) -> Place:
    """Listen on loopback; the port, and a token that every client has to show, are in a file of this user's.

    Raises: StoreUnavailable if the folder does not allow it.
    """
    folder = run_folder(home)
    token = secrets.token_hex(32)
    sock = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
    try:
        sock.bind(("127.0.0.1", 0))
        sock.listen(BACKLOG)
        file = folder / ADDRESS
        fresh = folder / f"{ADDRESS}.{os.getpid()}"
        fresh.write_text(f"{sock.getsockname()[1]} {token}\n", "ascii")
        fresh.chmod(0o600)
        persist(lambda: fresh.replace(file))
    except OSError as problem:
        sock.close()
        raise _cannot(folder / ADDRESS, problem) from problem
    return Place(sock, file, token)


def persist(replace: Callable[[], object], seconds: float = REPLACE_SECONDS) -> None:
    """Call `replace` until it is let: Windows replaces no file that somebody reads at this moment.

    Raises: PermissionError if that lasts; whatever else `replace` raises.
    """
    until = time.monotonic() + seconds
    while True:
        try:
            replace()
        except PermissionError:
            if time.monotonic() > until:
                raise
        else:
            return
        time.sleep(0.01)


def _cannot(file: Path, problem: OSError) -> StoreUnavailable:
    return StoreUnavailable(
        f"{file} cannot be listened on: {problem.strerror}",
        hint="Set AGORA_SERVER_SHARED=false, and each session has a server of its own.",
    )


if sys.platform == "win32":
    listen = listen_loopback

else:

    def listen(home: Path) -> Place:
        """Listen on a Unix socket.

        It is made under another name and renamed: whoever finds it finds it listening.

        Raises: StoreUnavailable if the folder does not allow it.
        """
        run_folder(home)
        file = Path(socket_of(str(home)))
        fresh = file.with_name(f"{file.name[:8]}.{os.getpid()}")
        sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        try:
            fresh.unlink(missing_ok=True)
            by_short_path(str(fresh), sock.bind)
            fresh.chmod(0o600)
            sock.listen(BACKLOG)
            fresh.replace(file)
        except OSError as problem:
            sock.close()
            raise _cannot(file, problem) from problem
        return Place(sock, file)
