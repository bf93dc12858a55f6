"""A backend's process: started so that it and all that it starts can be ended together, and ended so."""

from __future__ import annotations

import asyncio
import errno
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Mapping
from contextlib import suppress
from typing import IO, Any, Protocol

from agora.backends import guardian, jobs
from agora.backends.guard import Guard
from agora.errors import BackendUnavailable

_KILL_SECONDS = 0.3
"""How long the system may take to end what was killed."""
_PAUSES = (0.002, 0.05)
_SHORT = "The system is short of processes, memory or open files: end some, or raise the limit (`ulimit -a`)."


class Tree(Protocol):
    """A process and what it has started: a process group, or a job on Windows."""

    def terminate(self) -> bool:
        """Ask all of them to end; False where there is no way to ask."""
        ...

    def kill(self) -> None:
        """End all of them."""
        ...

    def gone(self) -> bool:
        """Whether none is left. Only asked once the first of them has ended and its status is known."""
        ...

    def release(self) -> None:
        """They are gone, or cannot be ended."""
        ...


class Group:
    """The process group that a child of ours leads; the guard ends it when Agora is gone."""

    def __init__(self, number: int, guard: Guard) -> None:
        self._number = number
        self._guard = guard
        guard.watch(number)

    def terminate(self) -> bool:
        """As `Tree.terminate`."""
        guardian.signal(self._number, signal.SIGTERM)
        return True

    def kill(self) -> None:
        """As `Tree.kill`."""
        guardian.signal(self._number, signal.SIGKILL)

    def gone(self) -> bool:
        """As `Tree.gone`."""
        # As the first process of a container, Agora is left with the children of its children.
        with suppress(ChildProcessError):
            while os.waitpid(-self._number, os.WNOHANG)[0]:
                pass
        return not guardian.lives(self._number)

    def release(self) -> None:
        """As `Tree.release`."""
        if self.gone():
            self._guard.leave(self._number)


class Child:
    """A running process of a backend. `stdin`, `stdout` and `stderr` are our ends of its pipes."""

    def __init__(self, process: subprocess.Popen[bytes], tree: Tree, loop: asyncio.AbstractEventLoop) -> None:
        self.pid = process.pid
        self.stdin: Any = process.stdin
        self.stdout: Any = process.stdout
        self.stderr: Any = process.stderr
        self.exited: asyncio.Future[int] = loop.create_future()
        """Its exit status once it has ended, negative for a signal; what it started may live on."""
        self._process = process
        self._tree = tree
        # A thread, because nothing else tells of the end of a process on all systems.
        threading.Thread(target=self._wait, args=(loop,), name=f"agora-child-{self.pid}", daemon=True).start()

    def _wait(self, loop: asyncio.AbstractEventLoop) -> None:
        status = self._process.wait()
        with suppress(RuntimeError):
            # The loop may be over: then nobody asks.
            loop.call_soon_threadsafe(self._note, status)

    def _note(self, status: int) -> None:
        if not self.exited.done():
            self.exited.set_result(status)

    async def end(self) -> bool:
        """End it and all that it started, within 2.7 seconds, and return whether they are gone.

        Its input must have ended before: well-behaved ones end by that. Then SIGTERM to all, 2 s later SIGKILL.
        """
        gone = await self._gone_within(guardian.INPUT_SECONDS)
        if not gone and self._tree.terminate():
            gone = await self._gone_within(guardian.TERM_SECONDS)
        if not gone:
            self._tree.kill()
            gone = await self._gone_within(_KILL_SECONDS)
        self._tree.release()
        return gone

    async def _gone_within(self, seconds: float) -> bool:
        loop = asyncio.get_running_loop()
        until = loop.time() + seconds
        await asyncio.wait({self.exited}, timeout=seconds)
        pause = _PAUSES[0]
        while not (self.exited.done() and self._tree.gone()):
            if loop.time() > until:
                return False
            await asyncio.sleep(pause)
            pause = min(2 * pause, _PAUSES[1])
        return True


def ended(status: int) -> str:
    """What an exit status says, in words."""
    if status >= 0:
        return f"its process ended with exit status {status}"
    try:
        return f"its process was ended by {signal.Signals(-status).name}"
    except ValueError:
        return f"its process was ended by signal {-status}"


def start(
    name: str,
    command: list[str],
    env: Mapping[str, str],
    cwd: str | None,
    guard: Guard,
) -> tuple[subprocess.Popen[bytes], Tree]:
    """A process of the backend `name` with three pipes, and what ends it. Blocks for as long as the system needs.

    It inherits no other descriptor and no variable that is not in `env`.

    Raises: BackendUnavailable if the system refuses.
    """
    process: subprocess.Popen[bytes] | None = None
    try:
        _prepare(guard)
        try:
            process = _popen(command, env, cwd)
        except (OSError, ValueError) as problem:
            raise _refused(name, command[0], problem) from None
        return process, _tree(process, guard)
    except OSError as problem:
        if process is not None:
            process.kill()
            process.wait()
            for pipe in (process.stdin, process.stdout, process.stderr):
                _close(pipe)
        raise BackendUnavailable(
            name,
            f"Agora could not see to it that its process ends with Agora: {problem}",
            hint=_SHORT,
        ) from None


def _refused(name: str, program: str, problem: Exception) -> BackendUnavailable:
    words = problem.strerror if isinstance(problem, OSError) and problem.strerror else str(problem)
    if not isinstance(problem, OSError):
        hint = "Look at `command`, `args` and `env` in its table."
    elif problem.errno in {errno.EMFILE, errno.ENFILE, errno.ENOMEM, errno.EAGAIN}:
        hint = _SHORT
    else:
        hint = "A script needs a first line such as `#!/usr/bin/env node` that names a program which is there."
    return BackendUnavailable(name, f"{program} cannot be started: {words}", hint=hint)


def _close(pipe: IO[bytes] | None) -> None:
    if pipe is not None:
        with suppress(OSError):
            pipe.close()


if sys.platform == "win32":
    from asyncio import windows_utils

    def _popen(command: list[str], env: Mapping[str, str], cwd: str | None) -> subprocess.Popen[bytes]:
        # Not `subprocess.Popen`: the event loop needs pipes with overlapped input and output.
        return windows_utils.Popen(
            command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            env=dict(env),
            cwd=cwd,
            creationflags=jobs.SUSPENDED | jobs.NO_WINDOW,
        )

    def _prepare(guard: Guard) -> None:
        # A job needs nobody to watch.
        del guard

    def _tree(process: subprocess.Popen[bytes], guard: Guard) -> Tree:
        del guard
        return jobs.Job(jobs.SystemKernel(), int(process._handle))  # noqa: SLF001 - nothing else has it

else:

    def _popen(command: list[str], env: Mapping[str, str], cwd: str | None) -> subprocess.Popen[bytes]:
        # A session of its own is a process group of its own too, and no terminal's.
        return subprocess.Popen(  # noqa: S603 - what the user's configuration names
            command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            bufsize=0,
            env=dict(env),
            cwd=cwd,
            start_new_session=True,
        )

    def _prepare(guard: Guard) -> None:
        guard.ready()

    def _tree(process: subprocess.Popen[bytes], guard: Guard) -> Tree:
        return Group(process.pid, guard)
