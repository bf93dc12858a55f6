"""How a shared server is started: once, however many sessions ask for it at the same moment, and as nobody's child."""

from __future__ import annotations

import os
import sys

from agora.shim import places
from agora.shim.locking import locked
from agora.shim.reaching import Refused

_LOG_BYTES = 1 << 20


def start(home: str, options: dict[str, str]) -> bool:
    """Start the server of `home`; False if it runs already, or somebody else starts it at this moment.

    Raises: Refused if the data folder does not allow it.
    """
    run = home + os.sep + places.RUN
    try:
        _own_folder(home, run)
        lock = _lock(run + os.sep + places.LOCK)
        if lock is None:
            return False
        try:
            _spawn(_command(home, options), lock, _log(run))
        finally:
            os.close(lock)
    except OSError as problem:
        name = problem.filename or home
        raise Refused(f"the shared server cannot be started: {name}: {problem.strerror or problem}") from None
    return True


def _own_folder(home: str, run: str) -> None:
    os.makedirs(home, 0o700, exist_ok=True)
    try:
        os.mkdir(run, 0o700)
    except FileExistsError:
        pass


def _command(home: str, options: dict[str, str]) -> list[str]:
    # -P: what lies in the folder that a session works in must not be imported in place of a module.
    command = [sys.executable, "-P", "-m", "agora", "server", "run", "--home", home]
    if "config" in options:
        command += ["--config", os.path.abspath(options["config"])]
    return command


def _log(run: str) -> int:
    """A descriptor of the file that takes what the server says on stderr; what is there stays, up to a megabyte."""
    path = run + os.sep + places.LOG
    try:
        if os.stat(path).st_size > _LOG_BYTES:
            os.replace(path, path + ".1")
    except OSError:
        pass
    return os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)


def _lock(path: str) -> int | None:
    """The descriptor of the locked file; None if somebody else holds it, which a running server does."""
    # On Windows locks are not inherited: there this one holds while a server is started, which takes one of its own.
    fd = os.open(path + (".start" if sys.platform == "win32" else ""), os.O_RDWR | os.O_CREAT, 0o600)
    if locked(fd):
        return fd
    os.close(fd)
    return None


if sys.platform == "win32":
    import subprocess

    def _spawn(command: list[str], lock: int, log: int) -> None:
        # Locks are not inherited here: the server takes one of its own, and ends if another has it.
        del lock
        flags = subprocess.DETACHED_PROCESS | subprocess.CREATE_NEW_PROCESS_GROUP
        try:
            subprocess.Popen(
                command,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                creationflags=flags,
                close_fds=True,
            )
        finally:
            os.close(log)
else:

    def _spawn(command: list[str], lock: int, log: int) -> None:
        """Start `command` as a child of nobody's, with the lock, which is free again when the server is gone."""
        nothing = os.open(os.devnull, os.O_RDONLY)
        child = os.fork()
        if child:
            os.close(log)
            os.close(nothing)
            os.waitpid(child, 0)
            return
        try:
            os.setsid()
            if os.fork():
                os._exit(0)
            for fd, place in ((nothing, 0), (log, 1), (log, 2)):
                os.dup2(fd, place)
            # A pipe of the client's that this process inherited would never come to its end.
            os.closerange(3, lock)
            os.closerange(lock + 1, 1024)
            os.set_inheritable(lock, True)
            os.execv(command[0], [*command, "--lock", str(lock)])
        finally:
            os._exit(127)
