"""How a shared server is started: once, however many sessions ask for it at the same moment, and as nobody's child."""

from __future__ import annotations

import os
import sys

from agora.shim import places
from agora.shim.locking import locked
from agora.shim.pipes import open_missing
from agora.shim.reaching import Refused

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from typing import NoReturn

_LOG_BYTES = 1 << 20

BREAKAWAY = 0x01000000
"""CREATE_BREAKAWAY_FROM_JOB of the Windows API, "Process Creation Flags"."""


def start(home: str, options: dict[str, str], env: Mapping[str, str] | None = None) -> bool:
    """Start the server of `home`; False if it runs already, or somebody else starts it at this moment.

    `env` is its environment, if not this process's.

    Raises: Refused if the data folder does not allow it.
    """
    # The lock, or what the server writes its log to, must not be where it has its standard input and output.
    open_missing()
    run = home + os.sep + places.RUN
    try:
        _own_folder(home, run)
        lock = _lock(run + os.sep + places.LOCK)
        if lock is None:
            return False
        try:
            _spawn(_command(home, options), lock, _log(run), os.environ if env is None else env)
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
    if sys.platform != "win32":
        # The server refuses it too, but what it says stands in its log, after a second.
        found = os.lstat(run)
        if found.st_mode & 0o170077 != _OWN_FOLDER or found.st_uid != os.geteuid():
            raise Refused(f"{run} is not a folder for this user alone: delete it, or run `chmod 700` on it")


_OWN_FOLDER = 0o040000
"""A folder (inode(7), and `stat`, which takes time to import) without any right for others."""


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


def breaking_away(begin: Callable[[int], object], flags: int) -> None:
    """Begin a process outside the Windows job of this one: many clients end all that is in theirs when they end.

    Inside it where the job lets nothing go: better a server that ends with its first client than none.

    Raises: what `begin` raises otherwise.
    """
    try:
        begin(flags | BREAKAWAY)
    except PermissionError:
        begin(flags)


if sys.platform == "win32":
    import subprocess

    def _spawn(command: list[str], lock: int, log: int, env: Mapping[str, str]) -> None:
        # Locks are not inherited here: the server takes one of its own, and ends if another has it.
        del lock

        def begin(flags: int) -> object:
            return subprocess.Popen(
                command,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                creationflags=flags,
                close_fds=True,
                env=env,
            )

        try:
            breaking_away(begin, subprocess.DETACHED_PROCESS | subprocess.CREATE_NEW_PROCESS_GROUP)
        finally:
            os.close(log)
else:
    import _signal  # type: ignore[import-not-found,unused-ignore] # as in `session`

    def _spawn(command: list[str], lock: int, log: int, env: Mapping[str, str]) -> None:
        """Start `command` as a child of nobody's, with the lock, which is free again when the server is gone."""
        nothing = os.open(os.devnull, os.O_RDONLY)
        # A signal between the fork and the end of the child would be handled in both, as the session does.
        mask = _signal.pthread_sigmask(_signal.SIG_BLOCK, _signal.valid_signals())
        try:
            child = os.fork()
            if not child:
                _become(command, lock, log, nothing, env)
        finally:
            _signal.pthread_sigmask(_signal.SIG_SETMASK, mask)
            os.close(log)
            os.close(nothing)
        try:
            os.waitpid(child, 0)
        except ChildProcessError:
            # Whoever started this process had it ignore its children, and they leave nothing to wait for.
            pass

    def _become(command: list[str], lock: int, log: int, nothing: int, env: Mapping[str, str]) -> NoReturn:
        """Make this process, a fork of the session's, the server."""
        try:
            # What was ignored stays so in a new program; the session's own rules do not.
            for number in _signal.valid_signals():
                if _signal.getsignal(number) == _signal.SIG_IGN:
                    _signal.signal(number, _signal.SIG_DFL)
            os.setsid()
            if os.fork():
                os._exit(0)
            for fd, place in ((nothing, 0), (log, 1), (log, 2)):
                os.dup2(fd, place)
            # A pipe of the client's that this process inherited would never come to its end.
            close_all_but(lock)
            os.set_inheritable(lock, True)
            _signal.pthread_sigmask(_signal.SIG_SETMASK, ())
            os.execve(command[0], [*command, "--lock", str(lock)], env)
        except OSError as problem:
            os.write(2, f"agora: {command[0]} cannot be started: {problem.strerror}\n".encode())
        finally:
            os._exit(127)

    def close_all_but(kept: int) -> None:
        """Close every descriptor of this process but `kept` and the first three."""
        try:
            found = [int(name) for name in os.listdir("/dev/fd")]
        except OSError:
            found = []
        if kept not in found:
            # No such list here, or one of the first three alone.
            found = list(range(min(os.sysconf("SC_OPEN_MAX"), _MOST_DESCRIPTORS)))
        for fd in found:
            if fd > _STANDARD and fd != kept:
                try:
                    os.close(fd)
                except OSError:
                    pass

    _MOST_DESCRIPTORS = 1 << 20
    _STANDARD = 2
